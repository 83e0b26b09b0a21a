"""awa's older engine: one mutable row per job; deprecated, and used only by databases that came from awa 0.5."""

from collections.abc import Sequence
from typing import Any, ClassVar

import uvloop

from bench.peers.adapters.awa import Awa, Noop
from bench.peers.adapters.protocol import main


class Canonical(Awa):
    meta: ClassVar[dict[str, Any]] = {
        **Awa.meta,
        "peer": "awa-canonical",
        "versions": {**Awa.meta["versions"], "awa-canonical": Awa.meta["versions"]["awa"]},
        "left_sql": "SELECT count(*) FROM awa.jobs_hot WHERE state NOT IN ('completed', 'failed', 'cancelled')",
        "backlog_sql": "SET session_replication_role = replica; INSERT INTO awa.jobs_hot (kind, queue, args) "
        "SELECT 'noop', 'default', jsonb_build_object('i', g) FROM generate_series(1, %(n)s) g",
        "backlog_chunk": None,
        "note": "deprecated engine; keeps completed jobs (24 hours by default)",
    }
    engine, role = "canonical", "canonical_drain"

    async def enqueue_many(self, ids: Sequence[int]) -> None:
        await self.client.insert_many_copy([Noop(i) for i in ids])


if __name__ == "__main__":
    main(Canonical(), uvloop.run)
