"""Is the server fit, and the way to it?"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from ostinato.durations import format_duration
from ostinato.health.finding import Finding, fail, ok, warn
from ostinato.store.doctor import Pin, Pooler, Server, Table

OLDEST, NEWEST = 14, 18
MOST_SKEW: Final = timedelta(seconds=2)
LONG: Final = timedelta(minutes=5)
MANY_TRANSACTIONS: Final = 1_000_000
MANY_DEAD: Final = 50_000
LISTEN_AROUND: Final = "set OSTINATO_LISTEN_DSN to a DSN that leads to the server directly; until then workers poll"


def judge_version(server: Server) -> Finding:
    major = server.version // 10_000
    saw = f"PostgreSQL {major}.{server.version % 10_000}"
    if server.standby:
        return fail("version", f"{saw}, a standby", "jobs are written: use the DSN of the primary")
    if server.read_only:
        advice = f'alter role "{server.user}" reset default_transaction_read_only; or the same of the database'
        return fail("version", f"{saw}, where transactions are read-only", advice)
    if major < OLDEST:
        return fail("version", saw, f"upgrade the server: PostgreSQL {OLDEST} to {NEWEST} is supported")
    if major > NEWEST:
        return warn("version", saw, f"newer than what was tested ({NEWEST}): look for a newer ostinato")
    return ok("version", saw)


def judge_clock(before: datetime, database: datetime, after: datetime) -> Finding:
    """The database was asked between `before` and `after`, by our clock."""
    skew = max(before - database, database - after, timedelta(0))
    if skew > MOST_SKEW:
        side = "ahead of" if database > after else "behind"
        return warn(
            "clock",
            f"the database's clock is {format_duration(skew)} {side} this machine's",
            "jobs follow the database's clock alone; run an NTP client on both, or logs will not match",
        )
    return ok("clock", f"within {format_duration(MOST_SKEW)} of this machine's")


def judge_notifications(seconds: float | None, *, own_dsn: bool) -> Finding:
    way = "OSTINATO_LISTEN_DSN" if own_dsn else "the DSN"
    if seconds is None:
        saw = f"a notification did not arrive through {way}"
        return warn("notifications", saw, LISTEN_AROUND)
    return ok("notifications", f"one arrived through {way} after {seconds * 1000:.0f} ms")


def judge_pooler(pooler: Pooler, server: Server, *, flagged: bool, own_listen_dsn: bool) -> Finding:
    """`flagged`: we know of it, so that nothing is prepared on one server and used on another."""
    if not pooler.between:
        return ok("pooler", "none: connected to the server itself")
    if not pooler.shared:
        return ok("pooler", "one in session mode, or with a server to spare for each client")
    saw = "one in transaction mode, such as PgBouncer"
    if not flagged:
        return fail("pooler", saw, "add pgbouncer=true to the DSN's options, or set OSTINATO_PGBOUNCER=true")
    if not own_listen_dsn:
        return warn("pooler", f"{saw}, through which LISTEN hears nothing", LISTEN_AROUND)
    if server.jit:
        return warn("pooler", f"{saw}, and jit is on", f'alter role "{server.user}" set jit = off')
    return ok("pooler", saw)


def judge_autovacuum(server: Server, tables: Sequence[Table]) -> Finding:
    if not (server.autovacuum and server.track_counts):
        off = "autovacuum" if not server.autovacuum else "track_counts"
        return fail("autovacuum", f"{off} is off", f"alter system set {off} = on; then select pg_reload_conf()")
    if excluded := [table.name for table in tables if table.excluded]:
        names = ", ".join(f"ostinato.{name}" for name in excluded)
        return fail("autovacuum", f"off for {names}", "alter table … reset (autovacuum_enabled), for each")
    for table in tables:
        if table.dead > max(MANY_DEAD, 2 * table.live):
            saw = f"{_counted(table)}: it does not keep up"
            return warn("autovacuum", saw, "see what pins the horizon below; else raise autovacuum_max_workers")
    jobs = [table for table in tables if table.name == "jobs"]
    return ok("autovacuum", "; ".join(["on", *map(_counted, jobs)]))


def _counted(table: Table) -> str:
    when = f"last vacuum {table.vacuumed_at:%Y-%m-%d %H:%M} UTC" if table.vacuumed_at else "never vacuumed yet"
    return f"ostinato.{table.name} has {table.live:,} live and {table.dead:,} dead rows, {when}"


def judge_horizon(pins: Sequence[Pin], server: Server) -> Finding:
    for pin in pins:
        if (pin.lasts or timedelta(0)) > LONG or pin.transactions > MANY_TRANSACTIONS:
            return warn("horizon", _pinned(pin), ENDINGS[pin.kind].format(name=pin.name))
    if not server.sees_all:
        advice = f'grant pg_read_all_stats to "{server.user}", for doctor to see them'
        return warn("horizon", "other users' transactions cannot be seen", advice)
    return ok("horizon", f"no transaction, prepared transaction or slot holds it for over {format_duration(LONG)}")


ENDINGS: Final = {
    "transaction": "dead rows pile up until it ends: select pg_terminate_backend({name}), and mend the program",
    "prepared transaction": "dead rows pile up until it ends: commit prepared '{name}', or rollback prepared '{name}'",
    "replication slot": "dead rows pile up behind it: if nobody reads it, select pg_drop_replication_slot('{name}')",
}


def _pinned(pin: Pin) -> str:
    lasts = f"for {format_duration(pin.lasts)}" if pin.lasts else f"over {pin.transactions:,} transactions"
    query = f": {pin.query}" if pin.query else ""
    return f"{pin.kind} {pin.name} ({pin.who}) holds it {lasts}{query}"
