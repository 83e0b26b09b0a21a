"""`ostinato`: the command line."""

import click


@click.group()
def main() -> None:
    """Recurring and one-off jobs on Postgres."""
