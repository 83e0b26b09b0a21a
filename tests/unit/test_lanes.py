"""Where a worker starts looking."""

from datetime import UTC, datetime, timedelta

from ostinato.store import Lanes

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def test_two_claims_may_share_the_lanes() -> None:
    """The first claim is under way when the second looks for lanes, and finds the first one's empty."""
    lanes = Lanes("default", ["default"])
    lanes.found([("default", 0)])
    lanes.found([("default", 5)])

    lanes.reached({("default", 0, "work"): NOON, ("default", 5, "work"): NOON})

    assert [(lane.priority, lane.mark) for lane in lanes.in_order()] == [(5, NOON)]


def test_a_mark_never_goes_back() -> None:
    lanes = Lanes("default", ["default"])
    lanes.found([("default", 0)])

    for run_at in (NOON, NOON - timedelta(hours=1)):
        lanes.reached({("default", 0, "work"): run_at})

    assert [lane.mark for lane in lanes.in_order()] == [NOON]
