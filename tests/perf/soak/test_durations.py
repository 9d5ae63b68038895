"""Which operations of a soak took too long."""

from __future__ import annotations

from perf.soak.durations import FIRST_MEETING_S, LEAST_SAMPLES, TOLERANCE, Durations

READ = {"op": "read", "length": 100}


def test_durations_when_an_operation_is_over_twice_its_bound_names_it() -> None:
    durations = Durations()
    for _ in range(LEAST_SAMPLES):
        durations.note(READ, 1.0, disturbed=False)
    durations.note(READ, TOLERANCE * (FIRST_MEETING_S + 1.5) - 0.01, disturbed=True)
    assert durations.over_their_bounds() == []
    durations.note(READ, TOLERANCE * (FIRST_MEETING_S + 1.5) + 0.01, disturbed=True)
    (line,) = durations.over_their_bounds()
    assert line.startswith("read") and "7.0 s" in line
    assert "20 undisturbed" in durations.lines()[0]


def test_durations_when_little_is_known_of_a_kind_judge_nothing() -> None:
    durations = Durations()
    durations.note(READ, 1.0, disturbed=False)
    durations.note(READ, 1000.0, disturbed=True)
    durations.note({"op": "read", "length": 10**7}, 1000.0, disturbed=True)
    assert durations.over_their_bounds() == []
