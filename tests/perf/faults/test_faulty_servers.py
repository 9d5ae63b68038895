"""Servers that are slow or lie, how answers are checked, and how a workload records what came of each case."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from attrs import define, field

from grid.ports import ShareNumber, ShareWrite, SlotAnswer, TestWrite
from perf.faults.faults import Case, Fault, Outcome, may_fail
from perf.faults.faulty_grid import RefusedError, Step, WrongAnswerError, perform
from perf.peers.contract import PeerError
from perf.records.record import Record
from perf.systems.stalling_node import LYING, SLOW_BYTES_PER_S, Line, data_size, falsified, stall
from perf.workloads import growing
from tests.perf.workloads.test_workloads import run

ONE, TWO = ShareNumber(1), ShareNumber(2)


def test_lying_server_changes_every_byte_and_no_number_or_size() -> None:
    wrong = falsified([{ONE: [b"ab", memoryview(b"c")]}, None])
    assert wrong == [{ONE: [bytes([158, 157]), bytes([156])]}, None]
    answer = SlotAnswer(passed=True, data={TWO: [b"\0"]})
    assert falsified(answer) == SlotAnswer(passed=True, data={TWO: [b"\xff"]})
    assert falsified(7) == 7


def test_slow_line_is_shared_by_all_data_that_goes_through_it() -> None:
    line = Line(lambda: 5.0)
    assert [line.wait_s(SLOW_BYTES_PER_S), line.wait_s(0), line.wait_s(SLOW_BYTES_PER_S)] == [1.0, 1.0, 2.0]


def test_data_within_arguments_and_answers_is_counted() -> None:
    writes = [ShareWrite(ONE, 0, [b"123", memoryview(b"45")])]
    assert data_size(((writes,), {"writes": {ONE: TestWrite(writes=[(0, b"678")])}}, {ONE: [b"9"]})) == 9
    assert data_size((("index", 7), {}, None)) == 0


def test_method_lies_only_while_the_file_says_so(tmp_path: Path) -> None:
    class Server:
        async def read(self) -> list[bytes]:
            return [b"\0"]

    names = tmp_path / "stalled"
    stall(Server, "read", names, Line())
    assert asyncio.run(Server().read()) == [b"\0"]
    names.write_text(LYING)
    assert asyncio.run(Server().read()) == [b"\xff"]
    names.unlink()
    assert asyncio.run(Server().read()) == [b"\0"]


@pytest.mark.parametrize(
    ("refused", "wrong", "said"),
    [
        (None, None, ("", "")),
        (RefusedError("no room"), None, ("no room", "")),
        (TimeoutError("late"), None, ("late", "")),
        (None, WrongAnswerError("wrong bytes came back"), ("", "WrongAnswerError: wrong bytes came back")),
    ],
)
def test_step_is_refused_or_ends_well_and_is_checked(
    refused: Exception | None, wrong: Exception | None, said: tuple[str, str]
) -> None:
    def fail(error: Exception | None) -> bytes:
        if error is not None:
            raise error
        return b""

    def check(_: bytes) -> None:
        fail(wrong)

    assert perform(Step(lambda: fail(refused), check))[1:] == said


@define
class FakeGrid:
    """Refuses what may fail, lies about one operation, and breaks at one fault."""

    transport: str
    durability: str
    measured: list[Case] = field(factory=list)

    def __enter__(self) -> FakeGrid:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def measure(self, group: Sequence[Case], repetitions: int) -> list[Outcome]:
        self.measured += group
        if group[0].fault == Fault(count=3):
            raise PeerError("the servers did not come back")
        return [
            Outcome(
                case=case,
                seconds=[1.0] * repetitions,
                errors=["no"] if may_fail(case) else [],
                wrong=["wrong bytes came back"] if str(case.fault) == "1 lying" and case.operation == "list" else [],
            )
            for case in group
        ]


def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, system: str) -> tuple[Record, FakeGrid]:
    """The record of the workload on such a grid."""
    made: list[FakeGrid] = []

    def make(_: Path, transport: str, __: object, durability: str) -> FakeGrid:
        made.append(FakeGrid(transport, durability))
        return made[-1]

    monkeypatch.setattr(growing, "FaultyGrid", make)
    record = run(f'driver = "faults"\npurpose = "mine"\nsystems = ["{system}"]\n', tmp_path)
    return record, made[0]


def test_workload_has_a_failure_only_for_what_went_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record, grid = measured(tmp_path, monkeypatch, "grid@http/gateway")

    failed = {(one.scenario, one.factors["fault"]) for one in record.failures()}
    assert failed == {("prepare", "3 silent"), ("list", "1 lying")}
    assert grid.durability == "full"
    refused = {one.scenario for one in record.samples if one.factors["fault"] == "7 gone" and "refusal" in one.scenario}
    assert "refusal of repair" in refused
    assert len({one.factors["fault"] for one in record.samples}) == 7


def test_workload_goes_through_faults_in_a_random_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, grid = measured(tmp_path, monkeypatch, "grid@foolscap/cli")

    faults = list(dict.fromkeys(str(case.fault) for case in grid.measured))
    assert sorted(faults) == ["1 gone", "1 lying", "1 silent", "1 slow", "3 silent", "7 gone", "none"]
    assert faults != ["none", "1 silent", "3 silent", "1 slow", "1 lying", "1 gone", "7 gone"]
    assert {case.operation for case in grid.measured} >= {"get 1 KB", "get 100 MB"}
    assert grid.transport == "foolscap"
