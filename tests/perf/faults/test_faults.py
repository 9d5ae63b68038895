"""The cases of the faults campaign and how they are judged."""

from __future__ import annotations

import pytest

from perf.faults.faults import (
    ALL_OPERATIONS,
    COMMANDS,
    KINDS,
    OPERATIONS,
    Case,
    Fault,
    Outcome,
    bound_s,
    group_cases,
    judge,
    plan_cases,
    table,
)


def test_wrong_answer_is_a_miss_with_and_without_a_fault() -> None:
    for fault in (Fault(), Fault(count=1, kind="lying")):
        lied = Outcome(case=Case(operation="list", fault=fault, transport="http"), seconds=[0.1], wrong=["wrong bytes"])
        verdicts = judge([outcome("list", Fault(), 0.1), lied])
        assert [verdict.holds for verdict in verdicts] == [True, False]
        assert "**missed** (wrong: wrong bytes)" in table(verdicts)


def outcome(operation: str, fault: Fault, *seconds: float, errors: tuple[str, ...] = (), cold: bool = False) -> Outcome:
    case = Case(operation=operation, fault=fault, transport="http", cold=cold)
    return Outcome(case=case, seconds=seconds, errors=errors)


def test_plan_when_made_begins_with_the_healthy_cases_of_each_transport_and_stalls_every_kind() -> None:
    cases = plan_cases(["http", "foolscap"], kinds=True, cold=True)
    assert len(set(cases)) == len(cases)
    for transport in ("http", "foolscap"):
        own = [case for case in cases if case.transport == transport]
        assert [case.operation for case in own[: len(OPERATIONS)]] == list(OPERATIONS)
        assert not any(case.fault.count for case in own[: len(OPERATIONS)])
        for name, kinds in KINDS.items():
            stalled = {case.fault.kind for case in own if case.operation == name and case.fault.count == 3}
            assert stalled >= {*kinds, "*"}


def test_operations_are_all_that_a_plan_has() -> None:
    assert {case.operation for case in plan_cases(["http"], kinds=True, cold=True)} == set(ALL_OPERATIONS)


def test_commands_when_grouped_share_their_fault_and_cases_of_a_gateway_do_not() -> None:
    cases = plan_cases(["http"], kinds=False, cold=True)
    groups = group_cases(cases)
    assert [case for group in groups for case in group] == cases
    shared = [group for group in groups if len(group) > 1]
    gateway = [group for group in shared if not group[0].cold]
    assert [(str(group[0].fault), len(group)) for group in gateway] == [("1 gone", len(OPERATIONS))]
    assert [[case.operation for case in group] for group in shared if group[0].cold] == [list(COMMANDS)] * 7
    assert all((case.cold, case.fault) == (group[0].cold, group[0].fault) for group in shared for case in group)


@pytest.mark.parametrize(
    ("operation", "fault", "bound"),
    [
        ("mkdir", Fault(count=1), 1.2),
        ("mkdir", Fault(count=3, kind="test_and_write"), 1.4),
        ("mkdir", Fault(count=7, kind="gone"), 1.0),
        ("get 8 MB", Fault(count=3), 1.5),
        ("get 8 MB", Fault(count=7, kind="gone"), 2.0),
        ("list", Fault(count=1), 1.1),
        ("range", Fault(count=7, kind="gone"), 1.3),
        ("check", Fault(count=3), 2.0),
        ("verify", Fault(count=1), 3.5),
        ("put 8 MB", Fault(count=1, kind="slow"), 1.5),
        ("get 8 MB", Fault(count=1, kind="lying"), 1.5),
        ("mkdir", Fault(count=1, kind="gone"), 1.2),
        ("get 100 MB", Fault(count=7, kind="gone"), 1.3),
        ("get 1 KB", Fault(count=1), 1.5),
    ],
)
def test_bound_when_an_operation_takes_a_second_is_that_of_the_table(
    operation: str, fault: Fault, bound: float
) -> None:
    assert bound_s(Case(operation=operation, fault=fault, transport="http"), 1.0) == pytest.approx(bound)


def test_verdict_when_the_first_repetition_pays_looks_at_those_after_it() -> None:
    healthy = outcome("list", Fault(), 0.1, 0.1, 0.1)
    learned, never = outcome("list", Fault(count=1), 5.0, 0.15, 0.15), outcome("list", Fault(count=1), 0.1, 0.5, 0.5)
    assert [verdict.holds for verdict in judge([healthy, learned, never])] == [True, True, False]
    assert "1 of 2 cases" in table(judge([healthy, learned, never]))


def test_verdict_when_an_operation_fails_holds_only_where_it_must_fail() -> None:
    gone = Fault(count=7, kind="gone")
    healthy = [outcome(name, Fault(), 0.1, 0.1) for name in ("mkdir", "list")]
    failed = outcome("mkdir", gone, 0.5, 0.5, errors=("no", "no"))
    claimed = outcome("mkdir", gone, 0.5, 0.5)
    broken = outcome("list", gone, 0.1, 0.1, errors=("no",))
    assert [verdict.holds for verdict in judge([*healthy, failed, claimed, broken])][2:] == [True, False, False]


def test_command_when_it_is_judged_has_no_first_repetition_to_learn_from() -> None:
    healthy = outcome("list", Fault(), 0.5, 0.5, cold=True)
    assert not judge([healthy, outcome("list", Fault(count=1), 3.0, 3.0, 0.5, cold=True)])[1].holds
