"""Which events are kept, and of which operations."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from grid.ports import Event, ServerId
from perf.sampling.timeline import DETAIL, KEPT, KEPT_PER_KIND, EventLog, Outliers

TEXT = json.dumps({"left_out": 0, "events": []})


def test_log_counts_requests_to_servers_and_numbers_them() -> None:
    log = EventLog()
    for at, what, server in ((2.0, "phase", None), (2.5, "send", "v0-b"), (2.75, "send", "v0-a"), (3.0, "send", None)):
        log(Event(at=at, what=what, detail="d" * 200, server_id=ServerId(server) if server else None, count=9))
    kept = json.loads(log.to_json())
    assert log.requests == 2
    assert kept["left_out"] == 0
    assert [(event[0], event[1], event[3]) for event in kept["events"]] == [
        (0.0, "phase", -1),
        (500.0, "send", 0),
        (750.0, "send", 1),
        (1000.0, "send", -1),
    ]
    assert {len(event[2]) for event in kept["events"]} == {DETAIL}


def test_log_of_very_many_events_keeps_both_ends() -> None:
    log = EventLog()
    for number in range(5 * KEPT):
        log(Event(at=float(number), what="progress", count=number))
    kept = json.loads(log.to_json())
    assert (len(kept["events"]), kept["left_out"]) == (2 * KEPT, 3 * KEPT)
    assert (kept["events"][0][5], kept["events"][-1][5]) == (0, 5 * KEPT - 1)


def test_outliers_are_those_far_above_the_median_of_their_kind() -> None:
    outliers = Outliers()
    for order, seconds in enumerate([1.0, 1.1, 0.9, 1.0, 1.6, 1.4]):
        outliers.add("get", (0, order), seconds, TEXT)
    outliers.add("put", (0, 9), 100.0, TEXT)
    ((kept, median),) = outliers.chosen()
    assert (kept.place, kept.timeline, median) == ((0, 4), json.loads(TEXT), 1.05)


def test_outliers_of_a_later_run_are_judged_by_all_runs() -> None:
    first = Outliers()
    for order in range(5):
        first.add("get", (0, order), 1.0, TEXT)
    second = Outliers(first.times)
    second.add("get", (1, 0), 2.0, TEXT)
    second.add("get", (1, 1), 2.0, None)
    assert [kept.place for kept, _ in second.chosen()] == [(1, 0)]


@given(st.lists(st.floats(0.01, 100.0), max_size=40))
def test_outliers_are_few_and_the_slowest(times: list[float]) -> None:
    outliers = Outliers()
    for order, seconds in enumerate(times):
        outliers.add("get", (0, order), seconds, TEXT)
    chosen = [kept.seconds for kept, _ in outliers.chosen()]
    assert len(chosen) <= KEPT_PER_KIND
    assert chosen == sorted(times, reverse=True)[: len(chosen)]
