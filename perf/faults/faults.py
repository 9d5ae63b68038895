"""The faults campaign's cases and bounds: what silent, slow, lying and missing servers may cost each operation. Pure.

Operations run through a gateway and as single commands. perf.faults.faulty_grid carries them out, perf.faults.command
reports.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from attrs import frozen

SILENT_COUNTS = (1, 3)
GONE = 7
SINGLE_KINDS = ("slow", "lying", "gone")
"""Faults of one server, beside silence: it sends and takes data at 1 %, returns wrong bytes, or is dead."""

REPAIRS = frozenset(("verify", "repair"))
SMALL_WRITES = frozenset(("put 3 KB", "link", "mkdir", "overwrite"))
LARGE = frozenset(("put 8 MB", "get 8 MB"))
SMALL_READS = frozenset(("list", "range"))
OPERATIONS = (*sorted(SMALL_WRITES), *sorted(LARGE), *sorted(SMALL_READS), "check", *sorted(REPAIRS))

WRITES = SMALL_WRITES | {"put 8 MB"}
"""With seven of ten servers gone, these cannot succeed, and must fail soon."""

ERROR_WITHIN_S = 1.0

KINDS = {
    "put 3 KB": ("find_shares", "find_each", "allocate", "store_shares"),
    "put 8 MB": ("get_version", "find_shares", "find_each", "allocate", "write", "close"),
    "get 8 MB": ("find_shares", "find_each", "read_shares"),
    "range": ("find_shares", "find_each", "read_shares"),
    "link": ("read_slot", "test_and_write"),
    "mkdir": ("test_and_write",),
    "overwrite": ("read_slot", "test_and_write"),
    "list": ("read_slot",),
    "check": ("find_shares", "find_each"),
    "verify": ("find_shares", "find_each", "read_shares"),
    "repair": ("find_shares", "find_each", "read_shares", "allocate", "write", "close"),
}
"""The messages that each operation sends; each is also stalled on its own."""

GETS = ("get 1 KB", "get 100 MB")
"""Gets with nothing running when they begin."""

ALL_OPERATIONS = (*OPERATIONS, *GETS)

COMMANDS = ("put 3 KB", "mkdir", "get 8 MB", *GETS, "list", "check")
"""Operations also measured as commands, without a running client."""


@frozen(kw_only=True)
class Fault:
    """A fault of servers. count: how many.

    kind: the message they do not answer, `*` for all; `gone` if they are dead, or another of SINGLE_KINDS.
    """

    count: int = 0
    kind: str = "*"

    @property
    def leaves_few(self) -> bool:
        """Whether just enough servers are left for reading."""
        return self.kind == "gone" and self.count >= GONE

    def __str__(self) -> str:
        if not self.count:
            return "none"
        if self.kind in SINGLE_KINDS:
            return f"{self.count} {self.kind}"
        return f"{self.count} silent" if self.kind == "*" else f"{self.count} silent on {self.kind}"


@frozen(kw_only=True)
class Case:
    """One operation under one fault over one transport. cold: as a command, without a running client."""

    operation: str
    fault: Fault
    transport: str
    cold: bool = False


@frozen(kw_only=True)
class Outcome:
    """seconds: of each repetition. errors: messages of the repetitions that failed, in the same order.

    wrong: what was wrong with what the others did, although they ended well.
    """

    case: Case
    seconds: Sequence[float]
    errors: Sequence[str] = ()
    wrong: Sequence[str] = ()


def plan_cases(transports: Iterable[str], *, kinds: bool, cold: bool) -> list[Case]:
    """All cases; for each transport, those without a fault come first.

    kinds: also stall each kind of message on its own.
    """
    cases: list[Case] = []
    for transport in transports:
        faults = [
            Fault(),
            *(Fault(count=count) for count in SILENT_COUNTS),
            *(Fault(count=1, kind=kind) for kind in SINGLE_KINDS),
            Fault(count=GONE, kind="gone"),
        ]
        cases += [Case(operation=name, fault=fault, transport=transport) for fault in faults for name in OPERATIONS]
        if kinds:
            cases += [
                Case(operation=name, fault=Fault(count=count, kind=kind), transport=transport)
                for name in OPERATIONS
                for kind in KINDS[name]
                for count in SILENT_COUNTS
            ]
        if cold:
            cases += [
                Case(operation=name, fault=fault, transport=transport, cold=True)
                for fault in faults
                for name in COMMANDS
            ]
    return cases


def group_cases(cases: Iterable[Case]) -> list[list[Case]]:
    """The cases that share one occurrence of their fault: neighboring commands, which nothing that runs connects, and those
    with one server gone, which a gateway notices at once.

    A gateway would know any other fault from the case before.
    """
    groups: list[list[Case]] = []
    for case in cases:
        last = groups[-1][-1] if groups else None
        if (
            last is not None
            and (case.cold or (case.fault.kind == "gone" and not case.fault.leaves_few))
            and (last.fault, last.transport, last.cold) == (case.fault, case.transport, case.cold)
        ):
            groups[-1].append(case)
        else:
            groups.append([case])
    return groups


def bound_s(case: Case, healthy_s: float) -> float:
    """Seconds that the case may take. healthy_s: its duration without a fault."""
    name, count = case.operation, case.fault.count
    three = count > 1
    if case.fault.leaves_few and name in WRITES:
        return ERROR_WITHIN_S + (healthy_s if case.cold else 0.0)
    if name in GETS:
        return healthy_s + 0.3 if case.fault.kind == "gone" else 1.5 * healthy_s
    if case.cold:
        return healthy_s + (2.0 if three else 1.0)
    if name in REPAIRS:
        return 1.5 * healthy_s + 2.0
    if name == "check":
        return healthy_s + 1.0
    if name in LARGE:
        return (2.0 if case.fault.kind == "gone" else 1.5) * healthy_s
    if name in SMALL_READS:
        return healthy_s + (0.3 if case.fault.kind == "gone" else 0.2 if three else 0.1)
    return healthy_s + (0.4 if three else 0.2)


def may_fail(case: Case) -> bool:
    """Whether the fault leaves too few servers for the operation, or too few shares for a repair."""
    return case.fault.leaves_few and case.operation in WRITES | {"repair"}


@frozen(kw_only=True)
class Verdict:
    """typical_s, worst_s: of the repetitions after the first. first_s: of the first.

    holds: whether the typical one is in bounds.
    """

    outcome: Outcome
    first_s: float
    typical_s: float
    worst_s: float
    bound_s: float
    holds: bool


def judge(outcomes: Sequence[Outcome]) -> list[Verdict]:
    """Compare each outcome under a fault with its bound: the median of all but the first; for commands, of all."""
    healthy = {
        (outcome.case.operation, outcome.case.transport, outcome.case.cold): median(outcome.seconds)
        for outcome in outcomes
        if not outcome.case.fault.count
    }
    verdicts = []
    for outcome in outcomes:
        case = outcome.case
        later = outcome.seconds if case.cold else outcome.seconds[1:] or outcome.seconds
        bound = bound_s(case, healthy[case.operation, case.transport, case.cold])
        ended_right = may_fail(case) if outcome.errors else not (may_fail(case) and case.operation in WRITES)
        verdicts.append(
            Verdict(
                outcome=outcome,
                first_s=outcome.seconds[0],
                typical_s=median(later),
                worst_s=max(later),
                bound_s=bound,
                holds=not outcome.wrong and (not case.fault.count or (median(later) <= bound and ended_right)),
            )
        )
    return verdicts


def table(verdicts: Sequence[Verdict]) -> str:
    """The verdicts as Markdown, and how many hold."""
    rows = [
        "| operation | transport | fault | first, s | then, median, s | worst, s | bound, s | |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for verdict in verdicts:
        case = verdict.outcome.case
        name = f"{case.operation}, command" if case.cold else case.operation
        errors = (
            f" ({len(verdict.outcome.errors)} errors: {verdict.outcome.errors[0][:80]})"
            if verdict.outcome.errors
            else ""
        )
        errors += f" (wrong: {verdict.outcome.wrong[0][:80]})" if verdict.outcome.wrong else ""
        word = "" if verdict.holds and not case.fault.count else "holds" if verdict.holds else "**missed**"
        rows.append(
            f"| {name} | {case.transport} | {case.fault} | {verdict.first_s:.2f} | {verdict.typical_s:.2f} "
            f"| {verdict.worst_s:.2f} | {verdict.bound_s:.2f} | {word}{errors} |"
        )
    judged = [verdict for verdict in verdicts if verdict.outcome.case.fault.count]
    rows.append("")
    rows.append(f"{sum(verdict.holds for verdict in judged)} of {len(judged)} cases are within their bounds.")
    return "\n".join(rows)
