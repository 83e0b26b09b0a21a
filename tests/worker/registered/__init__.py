"""A package of handlers, some of them deeper."""

from ostinato import job


@job("shallow")
async def shallow() -> None: ...
