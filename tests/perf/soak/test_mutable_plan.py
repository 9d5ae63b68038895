"""What a soak does with mutable objects, and which results it accepts, without a real grid."""

from __future__ import annotations

import random
from typing import Any

from perf.soak.mutable_plan import MOST, MOST_LAYERS, MutablePlan
from perf.soak.plan import ENCODINGS
from perf.soak.soak_mutable import bytes_of, keystream


def play(seed: int, count: int, answer: dict[str, Any] | None = None) -> tuple[MutablePlan, list[dict[str, Any]]]:
    """The plan after `count` operations, one a batch, all successful, and the operations."""
    plan = MutablePlan(random.Random(seed), ENCODINGS)
    operations = []
    for index in range(count):
        operation = plan.operation(index % 2)
        plan.begin([operation])
        is_new = operation["op"] == "mutable-create"
        assert plan.ended(operation, {"cap": f"cap{index}"} if is_new else {}) is None
        operations.append(operation)
    return plan, operations


def a_change(plan: MutablePlan) -> dict[str, Any]:
    """The next operation that changes an object."""
    while True:
        operation = plan.operation(0)
        plan.begin([operation])
        if operation["op"] in ("mutable-update", "mutable-overwrite"):
            return operation
        plan.ended(operation, {"cap": "new"})


def a_read(plan: MutablePlan, number: int) -> dict[str, Any]:
    """The next read of that object."""
    while True:
        operation = plan.operation(0)
        plan.begin([operation])
        if operation["op"] == "mutable-read" and operation["object"] == number:
            return operation
        plan.ended(operation, {"cap": "new"})


def test_plan_when_the_seed_is_the_same_is_the_same() -> None:
    assert play(3, 80)[1] == play(3, 80)[1]
    assert play(3, 80)[1] != play(4, 80)[1]


def test_plan_when_it_runs_long_does_everything_within_bounds() -> None:
    _, operations = play(1, 2000)
    done = {(operation["op"], operation["kind"]) for operation in operations}
    files = {(op, kind) for op in ("create", "read", "update", "overwrite") for kind in ("sdmf", "mdmf")}
    expected = files | {(op, "directory") for op in ("create", "read", "update")}
    assert done == {(f"mutable-{op}", kind) for op, kind in expected}
    assert len({operation["object"] for operation in operations}) == MOST
    for operation in operations:
        if "layer" in operation:
            assert operation["layer"][1] >= 0 and len(operation["version"]["layers"]) <= MOST_LAYERS
            assert len(bytes_of(operation["version"])) == operation["version"]["size"]
    reads = [operation for operation in operations if operation["op"] == "mutable-read"]
    assert any(operation["length"] for operation in reads) and any(operation["length"] is None for operation in reads)


def test_read_when_a_write_is_acknowledged_may_give_that_version_only() -> None:
    plan, _ = play(2, 200)
    change = a_change(plan)
    meanwhile = {"op": "mutable-read", "object": change["object"]}
    plan.begin([meanwhile])
    assert len(meanwhile["allowed"]) == 2 and meanwhile["allowed"][1] == change["version"] and meanwhile["contended"]
    assert plan.ended(meanwhile, {"error": "ConflictError: the file was changed"}) is None
    assert plan.ended(meanwhile, {"wrong": "a mix"}) == "a mix"
    assert plan.ended(change, {}) is None
    read = a_read(plan, change["object"])
    assert read["allowed"] == [change["version"]] and not read["contended"]
    assert plan.ended(read, {"error": "ConflictError: the file was changed"})


def test_read_when_a_write_has_failed_may_give_either_version_until_the_next() -> None:
    plan, _ = play(2, 200)
    change = a_change(plan)
    assert plan.ended(change, {"error": "NotHappyError: no"}) == "NotHappyError: no"
    read = a_read(plan, change["object"])
    assert len(read["allowed"]) == 2 and change["version"] in read["allowed"] and not read["contended"]


def test_bytes_when_layers_overlap_are_those_of_the_last_one() -> None:
    one, two = "01" * 16, "02" * 16
    data = bytes_of({"size": 30, "layers": [[one, 0, 20], [two, 15, 15]]})
    assert data == keystream(one, 20)[:15] + keystream(two, 15)
