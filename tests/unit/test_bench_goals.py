"""Whether a bench run reached its goals, as arithmetic."""

from typing import Any

from bench.peers.goals import Verdict, judge
from bench.peers.report import summary

TRIED = [
    {"conf": {"default": True}, "rate": 90.0, "rate_from_go": 90.0},
    {"conf": {"concurrency": 100}, "rate": 100.0, "rate_from_go": 100.0},
]


def throughput(rate: float, **more: Any) -> dict[str, Any]:
    return {"rate": rate, "all_rates": [rate], "foreign_cores": 0.0, "tried": TRIED, **more}


def verdict_on(goal: str, **peers: dict[str, Any]) -> Verdict:
    return next(verdict for verdict in judge(peers) if verdict.goal.startswith(goal))


def test_our_rate_is_held_against_the_best_peers_and_never_against_the_limits() -> None:
    rates = {"ours": 130.0, "river": 100.0, "pgqueuer": 50.0, "limit": 900.0}

    verdict = verdict_on("S1L", **{name: {"S1L": throughput(rate)} for name, rate in rates.items()})

    assert verdict.against is not None
    assert (verdict.against.of, verdict.ratio, str(verdict)) == ("river", 1.3, "reached")


def test_less_than_the_wanted_ratio_is_missed() -> None:
    assert str(verdict_on("S1L", ours={"S1L": throughput(124)}, river={"S1L": throughput(100)})) == "missed"


def test_of_latencies_the_lowest_peers_counts_and_the_same_is_good_enough() -> None:
    ours, slow, quick = ({"S3": {"p50": p50, "p99": 9.0, "foreign_cores": 0.0}} for p50 in (1.0, 3.0, 1.0))

    assert str(verdict_on("S3 p50", ours=ours, chancy=slow, river=quick)) == "reached"
    assert str(verdict_on("S3 p50", ours={"S3": {**ours["S3"], "p50": 2.0}}, chancy=slow, river=quick)) == "missed"


def test_each_kind_of_enqueueing_has_its_own_best_peer() -> None:
    ours = {"S4": {"single": throughput(125), "bulk": throughput(100)}}
    one = {"S4": {"single": throughput(100), "bulk": throughput(10)}}
    other = {"S4": {"single": throughput(10), "bulk": throughput(100)}}

    assert str(verdict_on("S4 single", ours=ours, one=one, other=other)) == "reached"
    assert str(verdict_on("S4 bulk", ours=ours, one=one, other=other)) == "missed"


def test_business_rows_that_are_not_atomic_reach_nothing() -> None:
    peer = {"S6": throughput(100, atomic=False)}

    assert str(verdict_on("S6", ours={"S6": throughput(500, atomic=True)}, graphile_worker=peer)) == "reached"
    assert str(verdict_on("S6", ours={"S6": throughput(500, atomic=False)}, graphile_worker=peer)) == "not measured"


def test_a_pinned_horizon_is_held_against_its_first_round_and_against_a_long_run() -> None:
    ours = {"S1L": throughput(100), "S7": {"rates": [80.0, 79.0], "ratio": 0.99, "foreign_cores": 0.0}}

    assert str(verdict_on("S7 horizon", ours=ours)) == "reached"
    assert str(verdict_on("S7 last round, over our S1L", ours=ours)) == "missed"


def test_an_idle_worker_must_stay_below_its_bounds() -> None:
    ours = {"idle": {"cores": 0.004, "queries_per_second": 1.0, "foreign_cores": 0.0}}

    assert str(verdict_on("idle worker, cores", ours=ours)) == "reached"
    assert str(verdict_on("idle worker, queries", ours=ours)) == "missed"


def test_default_settings_are_held_against_the_best_that_were_tried() -> None:
    verdict = verdict_on("default settings", ours={"S1L": throughput(100)})

    assert (verdict.ratio, str(verdict)) == (0.9, "reached")


def test_what_was_not_measured_or_failed_is_neither_reached_nor_missed() -> None:
    assert {str(verdict) for verdict in judge({})} == {"not measured"}
    assert str(verdict_on("S1L", ours={"S1L": {"error": "it died"}}, river={"S1L": throughput(1)})) == "not measured"


def test_a_figure_that_a_neighbour_disturbed_says_so() -> None:
    noisy = throughput(200, worst_foreign_cores=0.4)

    assert str(verdict_on("S1L", ours={"S1L": noisy}, river={"S1L": throughput(100)})) == "reached NOISY"


def test_a_peer_that_failed_leaves_the_table_whole() -> None:
    table = summary({"peers": {"river": {"error": "it needs `go` on the PATH"}}}).partition("\n\n")[0].splitlines()

    assert len({line.count("|") for line in table}) == 1
    assert "it needs `go` on the PATH" in table[-1]
