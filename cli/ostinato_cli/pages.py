"""Pages that are made from the code, so that they cannot be wrong.

python -m ostinato_cli.pages            write them
python -m ostinato_cli.pages --check    say which differ
"""

import sys
from pathlib import Path
from typing import Final

from ostinato.lifecycle import MOVES, ROOMS, State

PROJECT: Final = Path(__file__).parents[2]

LIFECYCLE: Final = """\
# The life of a job

<!-- Made from core/ostinato/lifecycle.py by `make verify`. -->

A job is always in one state, and each state has its room (a table). These moves, and no others, lead from one state to
another. The database holds the same rules by itself: triggers and CHECK constraints refuse everything else, whoever
tries it. A move's name is also its statement in `core/ostinato/store/sql/moves.sql`, its function in `ostinato.store`,
its log event and its metric label.

```mermaid
stateDiagram-v2
    [*] --> pending: enqueue
{arrows}
```

| move | from | to | when |
|---|---|---|---|
{rows}

| room | holds |
|---|---|
{rooms}

A running job that a person cancels is asked to stop: its `cancel_requested_at` is set and its worker is told. Whatever
the worker then does with it (retry, snooze, release, dead letter), it ends as `cancelled`; only if the handler returns
first is it `completed`.
"""


def lifecycle_page() -> str:
    return LIFECYCLE.format(
        arrows="\n".join(
            f"    {source} --> {move.target}: {move.name}" for move in MOVES for source in _sorted(move.sources)
        ),
        rows="\n".join(f"| `{m.name}` | {', '.join(_sorted(m.sources))} | {m.target} | {m.why} |" for m in MOVES),
        rooms="\n".join(f"| `{room}` | {', '.join(_sorted(states))} |" for room, states in ROOMS.items()),
    )


def _sorted(states: frozenset[State]) -> list[State]:
    return sorted(states, key=list(State).index)


PAGES: Final = {PROJECT / "docs" / "lifecycle.md": lifecycle_page}


def main(arguments: list[str]) -> int:
    if arguments == ["--check"]:
        stale = [path for path, page in PAGES.items() if not path.exists() or path.read_text() != page()]
        for path in stale:
            sys.stderr.write(f"{path.relative_to(PROJECT)} is not what the code says: run `make verify`\n")
        return 1 if stale else 0
    for path, page in PAGES.items():
        path.write_text(page())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
