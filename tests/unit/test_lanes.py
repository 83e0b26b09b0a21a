"""Where a worker starts looking."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from ostinato.store import Lanes

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
MARK = (NOON, UUID(int=7))


def test_two_claims_may_share_the_lanes() -> None:
    """The first claim is under way when the second looks for lanes, and finds the first one's empty."""
    lanes = Lanes("default", ["default"])
    lanes.found([("default", 0)])
    lanes.found([("default", 5)])

    lanes.reached({("default", 0, "work"): MARK, ("default", 5, "work"): MARK})

    assert [(lane.priority, lane.mark) for lane in lanes.in_order()] == [(5, MARK)]


def test_a_mark_never_goes_back() -> None:
    lanes = Lanes("default", ["default"])
    lanes.found([("default", 0)])

    for mark in (MARK, (NOON, UUID(int=6)), (NOON - timedelta(hours=1), UUID(int=8))):
        lanes.reached({("default", 0, "work"): mark})

    assert [lane.mark for lane in lanes.in_order()] == [MARK]
