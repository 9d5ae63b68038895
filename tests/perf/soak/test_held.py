"""Verdicts of a soak on the memory and the descriptors of its processes."""

from __future__ import annotations

from perf.sampling.growth import Allowance
from perf.soak.held import MOST_RESIDENT, Holdings, Process

NODE = Process(name="storage0", pid=7, is_node=True)
CLIENT = Process(name="client", pid=8)
MIB = 2**20


def holdings(process: Process, values: list[float], kind: str = "descriptors", peak: int = 0) -> Holdings:
    """Samples of one process, a second apart."""
    held = Holdings({"descriptors": Allowance(amount=5), "rss": Allowance(amount=10 * MIB)})
    for at, value in enumerate(values):
        held.note(process, float(at), {kind: value}, peak)
    return held


def test_holdings_that_come_back_to_where_they_were_are_no_defect() -> None:
    held = holdings(NODE, [20.0, *[24.0] * 30, 21.0])
    assert held.defects() == []
    assert held.lines() == ["storage0 descriptors: 20 first, 21 last, 24 early, 24 late"]


def test_holdings_that_grow_or_stay_are_defects() -> None:
    assert holdings(NODE, [20.0, *map(float, range(20, 80))]).defects()[0].startswith("grows: storage0 descriptors")
    assert holdings(CLIENT, [20.0, *[30.0] * 30]).defects() == ["keeps descriptors: client: 20 -> 30"]


def test_storage_node_that_ever_holds_more_than_it_may_is_a_defect() -> None:
    assert holdings(NODE, [MIB], "rss", MOST_RESIDENT).defects() == []
    assert holdings(NODE, [MIB], "rss", MOST_RESIDENT + 1).defects() == [
        "holds too much: storage0 had 200 MiB resident"
    ]
    assert holdings(CLIENT, [MIB], "rss", MOST_RESIDENT + 1).defects() == []


def test_memory_that_a_process_at_rest_keeps_is_a_defect() -> None:
    kept = [70.0 * MIB, *[180.0 * MIB] * 30]
    held = holdings(CLIENT, [*kept, 169.0 * MIB], "rss")
    assert held.defects() == []
    held = holdings(CLIENT, [*kept, 171.0 * MIB], "rss")
    assert held.defects() == ["keeps memory: client: 70 MiB -> 171 MiB"]
    held.note(NODE, 100.0, {"rss": MIB}, 0)
    assert held.defects() == [], "it ended under load"


def test_processes_that_were_started_again_have_no_line() -> None:
    held = holdings(NODE, [60.0 * MIB] * 3, "rss", 90 * MIB)
    assert held.lines() == ["storage0 rss: 60 MiB first, 60 MiB last, 90 MiB at most"]
    held.note(Process(name="storage0", pid=9, is_node=True), 4.0, {"rss": 50.0 * MIB}, 0)
    assert held.lines() == []
