"""`ostinato cron`: what an expression means, and when it is due next."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, Final
from zoneinfo import ZoneInfo

import click

from ostinato.durations import format_duration
from ostinato.timing import Change, Cron, Gap, Overlap, changes, find_zone, in_words, read_timing
from ostinato_cli.document import show_json
from ostinato_cli.options import instant, output_option
from ostinato_cli.table import note, show_table

HEADERS: Final = ["LOCAL", "UTC", "CLOCKS"]
POLICIES: Final = {
    Gap.RUN_AFTER: "a time that does not exist runs right after the gap",
    Gap.SKIP: "a time that does not exist is left out",
    Overlap.FIRST: "one that exists twice runs the first time",
    Overlap.SECOND: "one that exists twice runs the second time",
    Overlap.BOTH: "one that exists twice runs both times",
}
ELAPSED: Final = "by elapsed time: it is due whenever the clock shows a matching time"


@click.command()
@click.argument("expression", metavar="EXPR")
@click.option("--tz", "time_zone", metavar="ZONE", default="UTC", help="Such as Europe/Berlin. Default: UTC.")
@click.option("--next", "count", type=click.IntRange(1, 1000), default=10, help="How many. Default: 10.")
@click.option("--from", "start", type=instant, metavar="TIME", help="Later than this. Default: now.")
@click.option(
    "--gap",
    type=click.Choice([gap.value for gap in Gap]),
    default=Gap.RUN_AFTER.value,
    help="For times that do not exist.",
)
@click.option(
    "--overlap",
    type=click.Choice([overlap.value for overlap in Overlap]),
    default=Overlap.FIRST.value,
    help="For times that exist twice.",
)
@click.option("--name", metavar="NAMESPACE/NAME", help="Of the schedule: what H is hashed from.")
@output_option
def cron(
    expression: str,
    *,
    time_zone: str,
    count: int,
    start: datetime | None,
    gap: str,
    overlap: str,
    name: str | None,
    output: str,
) -> None:
    """Explain a cron expression and list the next instants at which it is due. Needs no database.

    \b
    Examples:
      ostinato cron '30 2 * * MON-FRI' --tz Europe/Berlin
      ostinato cron '0 9 * * 5#2' --tz Asia/Seoul --next 3 --from 2026-01-01T00:00:00Z -o json
      ostinato cron 'H H * * *' --name payments/seller-disbursement
    """
    start = start or datetime.now(UTC)
    timing = read_timing(cron=expression, time_zone=time_zone, gap=gap, overlap=overlap, key=name)
    read, zone = Cron.parse(expression, name), find_zone(time_zone)
    instants = [due.at for due in timing.upcoming(start, count)]
    clocks = [_last_change(zone, before, at) for before, at in pairwise([start, *instants])]
    document = {
        "expression": expression,
        "words": in_words(read),
        "time_zone": time_zone,
        "elapsed": read.elapsed,
        "next": [_row(zone, at, change) for at, change in zip(instants, clocks, strict=True)],
    }
    if output == "json":
        show_json(document)
    else:
        _show(document, ELAPSED if read.elapsed else f"{POLICIES[Gap(gap)]}, {POLICIES[Overlap(overlap)]}")
        if len(instants) < count:
            note("never again after that" if instants else "never again")


def _show(document: dict[str, Any], policy: str) -> None:
    click.echo(f"{document['words']} ({document['time_zone']})\nwhere clocks change: {policy}\n")
    rows = document["next"]
    if rows:
        show_table(HEADERS, [[_plain(row["local"]), f"{row['at']:%Y-%m-%d %H:%M:%S}", row["clocks"]] for row in rows])


def _row(zone: ZoneInfo, at: datetime, change: Change | None) -> dict[str, Any]:
    local = at.astimezone(zone)
    twice = local.replace(fold=0).utcoffset() != local.replace(fold=1).utcoffset()
    which = [f"the {'second' if local.fold else 'first'} {local:%H:%M}"] if twice else []
    return {"at": at, "local": local.isoformat(), "clocks": ", ".join([*_put(change), *which])}


def _put(change: Change | None) -> Iterator[str]:
    """In the zone's own time, as a newspaper would say it."""
    if change is not None:
        at, length = change.at + change.before, format_duration(abs(change.shift))
        yield f"put {'forward' if change.shift > timedelta(0) else 'back'} {length} on {at:%Y-%m-%d at %H:%M}"


def _last_change(zone: ZoneInfo, after: datetime, until: datetime) -> Change | None:
    """What makes this instant's offset differ from the one before it."""
    if after.astimezone(zone).utcoffset() == until.astimezone(zone).utcoffset():
        return None
    first, last = (at.astimezone(UTC).replace(tzinfo=None) for at in (after, until))
    known = [change for year in range(first.year, last.year + 1) for change in changes(zone, year)]
    return max((change for change in known if first < change.at <= last), key=lambda change: change.at)


def _plain(local: str) -> str:
    """'2026-03-29 03:00:00 +02:00'"""
    return f"{local[:10]} {local[11:19]} {local[19:]}"
