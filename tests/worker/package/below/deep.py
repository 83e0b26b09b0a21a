from ostinato import job


@job("deep", isolation="process")
def deep() -> str:
    return "deep"
