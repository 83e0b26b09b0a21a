"""What a job is expected to be like, and how one differs from that. No I/O."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Self

from pydantic_core import from_json
from typing_extensions import TypedDict

from ostinato.durations import Duration, parse_duration
from ostinato.errors import InvalidArgument, shown
from ostinato.handler import Handler
from ostinato.lifecycle import State
from ostinato.names import check_job_type
from ostinato.newjob import check_timeout
from ostinato.payload import encode_object
from ostinato.store.job import Job

SHOWN: Final = 5

JobType = str | Handler | type  # a class under @job is a Handler, too, which type checkers do not see


class Expectations(TypedDict, total=False):
    """What may be asked of a job beside its type and payload. `context`, as the payload, may be only a part."""

    namespace: str
    queue: str
    priority: int
    run_at: datetime
    delay: Duration
    dedup_key: str
    concurrency_key: str
    max_attempts: int
    timeout: Duration
    context: Any
    job_version: int
    state: str


@dataclass(frozen=True)
class Expected:
    job_type: str | None
    parts: Mapping[str, Any]  # of payload and context: what they must hold
    facts: Mapping[str, Any]

    @classmethod
    def read(cls, job_type: JobType | None, payload: Any, facts: Mapping[str, Any]) -> Self:
        facts = dict(facts)
        if unknown := facts.keys() - Expectations.__annotations__.keys():
            raise TypeError(f"there is no {min(unknown)!r}; there are {', '.join(Expectations.__annotations__)}")
        if isinstance(job_type, Handler):
            facts = {"job_version": job_type.version} | facts
            job_type = job_type.name
        parts = {"payload": payload, "context": facts.pop("context", None)}
        return cls(
            None if job_type is None else check_job_type(job_type),
            {name: from_json(encode_object(name, part)) for name, part in parts.items() if part is not None},
            {name: READERS[name](value) if name in READERS else value for name, value in facts.items()},
        )

    def of_type(self, jobs: Sequence[Job]) -> list[Job]:
        return [job for job in jobs if self.job_type in (None, job.job_type)]

    def differences(self, job: Job) -> list[str]:
        """None of them: it is as expected."""
        found = [line for name, part in self.parts.items() for line in _compare(name, part, getattr(job, name))]
        for name, value in self.facts.items():
            has = job.run_at - job.created_at if name == "delay" else getattr(job, name)
            if has != value:
                found.append(f"{name} is {_say(has)}, not {_say(value)}")
        return found

    def __str__(self) -> str:
        said = [f"{name} {_say(value)}" for name, value in (*self.parts.items(), *self.facts.items())]
        return f"{self.job_type or 'job'}" + (f" with {', '.join(said)}" if said else "")


def _compare(path: str, expected: Any, found: Any) -> list[str]:
    """Objects may hold more than is expected of them; everything else must be the same."""
    if isinstance(expected, dict) and isinstance(found, dict):
        return [line for key, part in expected.items() for line in _compare_key(f"{path}.{key}", key, part, found)]
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        pairs = enumerate(zip(expected, found, strict=True))
        return [line for place, (part, has) in pairs for line in _compare(f"{path}[{place}]", part, has)]
    # Python takes True for 1, JSON does not.
    same = expected == found and isinstance(expected, bool) == isinstance(found, bool)
    return [] if same else [f"{path} is {_say(found)}, not {_say(expected)}"]


def _compare_key(path: str, key: str, expected: Any, found: dict[str, Any]) -> list[str]:
    return _compare(path, expected, found[key]) if key in found else [f"{path} is missing, not {_say(expected)}"]


def describe(expected: Expected, jobs: Sequence[Job]) -> str:
    """What there is instead, the nearest first."""
    if not jobs:
        return "nothing was enqueued at all; what another connection has not committed cannot be seen"
    mine = sorted(expected.of_type(jobs), key=lambda job: len(expected.differences(job)))
    lines = [line for job in mine[:SHOWN] for line in (f"  {_name(job)}", *_indented(expected.differences(job)))]
    if len(mine) > SHOWN:
        lines.append(f"  and {len(mine) - SHOWN} more")
    if others := [job.job_type for job in jobs if job not in mine]:
        counts = {name: others.count(name) for name in sorted(set(others))}
        lines.append("of other types: " + ", ".join(f"{name} ({count})" for name, count in counts.items()))
    return "\n".join(["what was enqueued:", *lines])


def _name(job: Job) -> str:
    return f"{job.job_type} {job.id} ({job.state}) {shown(job.payload)}"


def _indented(differences: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in differences]


def _say(value: Any) -> str:
    return str(value) if isinstance(value, State) else shown(value)


def _state(value: str) -> State:
    try:
        return State(value)
    except ValueError:
        raise InvalidArgument("state", value, f"it must be one of {', '.join(State)}") from None


READERS: Final[Mapping[str, Any]] = {
    "delay": lambda value: parse_duration("delay", value),
    "timeout": check_timeout,
    "state": _state,
}
