"""A job before it is one: what the caller asks for, checked. No I/O."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Any, Final, Literal, NamedTuple, get_args
from uuid import UUID

from ostinato.durations import Duration, parse_duration
from ostinato.errors import InvalidArgument
from ostinato.names import check_job_type, check_key, check_namespace, check_queue
from ostinato.payload import encode_object

Dedup = Literal["skip", "enqueue", "replace"]
Options = dict[str, str | int | None]

SMALLEST, LARGEST = -(2**15), 2**15 - 1
FIRST: Final = datetime(1970, 1, 1, tzinfo=UTC)
LAST: Final = datetime(9999, 1, 1, tzinfo=UTC)
LONGEST_TIMEOUT: Final = timedelta(days=366)
EMPTY: Final[dict[str, Any]] = {}


class Enqueued(NamedTuple):
    """What became of it. `created` is False where an earlier job of the same key stands for this one."""

    id: UUID
    created: bool


@dataclass(slots=True)
class NewJob:
    """What None means is decided by the database: its default."""

    job_type: str
    payload: Any = None
    namespace: str | None = None
    queue: str | None = None
    priority: int | None = None
    run_at: datetime | None = None
    delay: Duration | None = None
    dedup_key: str | None = None
    dedup: Dedup | None = None
    idempotency_key: str | None = None
    idempotency_ttl: Duration | None = None
    max_attempts: int | None = None
    timeout: Duration | None = None
    context: Any = None
    job_version: int | None = None
    concurrency_key: str | None = None

    @property
    def keyed(self) -> bool:
        return self.dedup_key is not None or self.idempotency_key is not None

    def encoded_payload(self) -> str:
        return encode_payload(self.payload)

    def options(self) -> Options:
        """As the statements take them, but for the payload; raises InvalidArgument if one breaks a rule."""
        job_type, *values = self.raw_options()
        return check_options(job_type, dict(zip(CHECKS, values, strict=True)))

    def raw_options(self) -> tuple[Any, ...]:
        """Everything but the payload, as it was given, the type first."""
        options: tuple[Any, ...] = _raw_options(self)
        return options


def encode_payload(payload: object) -> str:
    return encode_object("payload", EMPTY if payload is None else payload)


def check_options(job_type: object, options: Mapping[str, Any]) -> Options:
    """Those that were given; None means that one was not."""
    given: Options = {"job_type": check_job_type(job_type)}
    for name, value in options.items():
        if name not in CHECKS:
            raise TypeError(f"there is no option {name!r}; there are {', '.join(CHECKS)}")
        if value is not None:
            given[name] = CHECKS[name](value)
    if "run_at" in given and "delay" in given:
        raise InvalidArgument("delay", options["delay"], "give run_at or delay, not both")
    return given


def check_integer(argument: str, value: object, smallest: int, largest: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not smallest <= value <= largest:
        raise InvalidArgument(argument, value, f"it must be a whole number from {smallest:,} to {largest:,}")
    return value


def _check_run_at(value: object) -> str:
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise InvalidArgument("run_at", value, "it must be a datetime with a time zone, such as datetime.now(UTC)")
    if not FIRST <= value < LAST:
        raise InvalidArgument("run_at", value, "it must be from 1970 to 9998")
    return value.astimezone(UTC).isoformat()


def _check_delay(value: Duration) -> str:
    return as_interval(parse_duration("delay", value))


def check_timeout(value: Duration) -> timedelta:
    timeout = parse_duration("timeout", value)
    if not timedelta(0) < timeout <= LONGEST_TIMEOUT:
        raise InvalidArgument("timeout", value, "it must be more than 0 and at most 366 days")
    return timeout


def _check_ttl(value: Duration) -> str:
    return as_interval(parse_duration("idempotency_ttl", value))


def _check_dedup(value: object) -> str:
    if value not in get_args(Dedup):
        raise InvalidArgument("dedup", value, f"it must be one of {', '.join(get_args(Dedup))}")
    return str(value)


def as_interval(duration: timedelta) -> str:
    """As every driver can send it."""
    # Seconds alone would do, but Postgres refuses more than 2^31 of the unit "seconds" before version 15.
    return f"{duration.days} days {duration.seconds} seconds {duration.microseconds} microseconds"


CHECKS: Final[Mapping[str, Any]] = {
    "namespace": check_namespace,
    "queue": check_queue,
    "priority": lambda value: check_integer("priority", value, SMALLEST, LARGEST),
    "run_at": _check_run_at,
    "delay": _check_delay,
    "dedup_key": lambda value: check_key("dedup_key", value),
    "dedup": _check_dedup,
    "idempotency_key": lambda value: check_key("idempotency_key", value),
    "idempotency_ttl": _check_ttl,
    "max_attempts": lambda value: check_integer("max_attempts", value, 1, LARGEST),
    "timeout": lambda value: as_interval(check_timeout(value)),
    "context": lambda value: encode_object("context", value),
    "job_version": lambda value: check_integer("job_version", value, 1, 2**31 - 1),
    "concurrency_key": lambda value: check_key("concurrency_key", value),
}

_raw_options: Final = attrgetter("job_type", *CHECKS)
