"""What a soak does, without a real grid."""

from __future__ import annotations

from typing import Any

from perf.soak.plan import ENCODINGS, MOST_AWAY, WEB_ENCODING, SoakPlan

PUTS = ("put", "web-put")
READS = ("read", "web-read")


def play(seed: int, batches: int, kept_bytes: int = 50_000_000) -> tuple[SoakPlan, list[dict[str, Any]], list[str]]:
    """The plan after `count` batches, all operations, and the caps that it forgot."""
    plan = SoakPlan(seed, clients=2, mortal=[5, 6, 7], largest=20_000_000, kept_bytes=kept_bytes)
    operations: list[dict[str, Any]] = []
    forgotten: list[str] = []
    for _ in range(batches):
        batch = plan.batch()
        for operation in batch:
            if operation["op"] in PUTS:
                forgotten += [file.cap for file in plan.stored(operation, f"cap{len(operations)}")]
            operations.append(operation)
    return plan, operations, forgotten


def test_plan_when_the_seed_is_the_same_is_the_same() -> None:
    assert play(3, 50)[1] == play(3, 50)[1]
    assert play(3, 50)[1] != play(4, 50)[1]


def test_plan_when_it_runs_long_does_everything() -> None:
    _, operations, _ = play(1, 600)
    puts = [operation for operation in operations if operation["op"] in PUTS]
    reads = [operation for operation in operations if operation["op"] in READS]
    assert {operation["encoding"] for operation in puts} == set(ENCODINGS)
    assert {operation["client"] for operation in operations} == {0, 1}
    assert {operation["op"] for operation in operations} >= {*PUTS, *READS}
    assert all(operation["encoding"] == WEB_ENCODING for operation in puts if operation["op"] == "web-put")
    assert min(operation["size"] for operation in puts) <= 55
    assert max(operation["size"] for operation in puts) > 10_000_000
    assert {operation["keep"] for operation in reads} == {True, False}
    assert any(operation["offset"] == 0 for operation in reads)
    assert any(operation["offset"] > 1000 for operation in reads)


def test_plan_when_it_reads_asks_for_what_is_there() -> None:
    _, operations, _ = play(2, 300, kept_bytes=10**12)
    sizes = {operation["key"]: operation["size"] for operation in operations if operation["op"] in PUTS}
    for operation in operations:
        if operation["op"] in READS:
            assert 0 <= operation["offset"] <= operation["offset"] + operation["length"] <= sizes[operation["key"]]


def test_plan_when_too_much_is_kept_forgets_the_oldest() -> None:
    plan, operations, forgotten = play(5, 300, kept_bytes=30_000_000)
    puts = sum(operation["op"] in PUTS for operation in operations)
    assert forgotten
    assert len(plan.files) + len(forgotten) == puts
    assert sum(file.size for file in plan.files) <= 30_000_000
    assert not {file.cap for file in plan.files} & set(forgotten)


def test_last_look_of_a_plan_reads_all_of_every_file_that_is_kept() -> None:
    plan, _, _ = play(5, 300, kept_bytes=30_000_000)
    look = plan.last_look()
    assert [operation["cap"] for operation in look] == [file.cap for file in plan.files]
    assert [(operation["offset"], operation["length"]) for operation in look] == [(0, file.size) for file in plan.files]


def test_plan_when_enough_servers_are_away_takes_no_more() -> None:
    plan, _, _ = play(1, 1)
    assert not any(plan.disturbance(MOST_AWAY) for _ in range(300))
    seen = [disturbed for _ in range(300) if (disturbed := plan.disturbance(MOST_AWAY - 1))]
    assert {disturbed.server for disturbed in seen} == {5, 6, 7}
    assert {disturbed.how for disturbed in seen} == {"kill", "freeze"}


def test_encodings_tolerate_the_most_servers_that_are_away() -> None:
    for k, n, happy in ENCODINGS:
        assert k + MOST_AWAY <= happy <= min(n - 1, 10 - MOST_AWAY - 1)
