"""Progress lines."""

from __future__ import annotations

import json
import sys

import pytest

from grid.cli.terminal.progress import ProgressDisplay
from grid.ports import Event


class _Time:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def _lines(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def test_json_lines_give_bytes_rate_and_remaining_time(capsys: pytest.CaptureFixture[str]) -> None:
    clock = _Time()
    with ProgressDisplay(as_json=True, clock=clock) as display:
        display(Event(at=0, what="phase", detail="pushing", total=1000))
        clock.now += 2.0
        display(Event(at=0, what="progress", count=400, total=1000))
    captured = capsys.readouterr()
    assert captured.out == ""
    assert _lines(captured.err) == [
        {"event": "progress", "phase": "pushing", "done": 400, "total": 1000, "rate": 200, "eta_s": 3.0}
    ]


def test_lines_are_few_but_the_last_one_is_never_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    clock = _Time()
    with ProgressDisplay(as_json=True, clock=clock) as display:
        for count in range(1001):
            clock.now += 0.001
            display(Event(at=0, what="progress", count=count, total=1000))
    lines = _lines(capsys.readouterr().err)
    assert len(lines) <= 4
    assert lines[-1]["done"] == 1000


def test_each_phase_has_its_own_rate(capsys: pytest.CaptureFixture[str]) -> None:
    clock = _Time()
    with ProgressDisplay(as_json=True, clock=clock) as display:
        for phase, seconds in (("hashing", 1.0), ("pushing", 4.0)):
            display(Event(at=0, what="phase", detail=phase, total=100))
            clock.now += seconds
            display(Event(at=0, what="progress", count=100, total=100))
    assert [(line["phase"], line["rate"]) for line in _lines(capsys.readouterr().err)] == [
        ("hashing", 100),
        ("pushing", 25),
    ]


def test_nothing_is_shown_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressDisplay(as_json=False) as display:
        display(Event(at=0, what="progress", count=100, total=100))
    captured = capsys.readouterr()
    assert captured.out + captured.err == ""


def test_verifying_is_counted_in_bytes_with_shares_beside_them(capsys: pytest.CaptureFixture[str]) -> None:
    clock = _Time()
    with ProgressDisplay(as_json=True, clock=clock) as display:
        clock.now += 2.0
        display(Event(at=0, what="verified", count=2_000_000, total=10_000_000))
        display(Event(at=0, what="progress", detail="verifying", count=10, total=10))
        clock.now += 8.0
        display(Event(at=0, what="verified", count=10_000_000, total=10_000_000))
    first, last = _lines(capsys.readouterr().err)
    assert (first["phase"], first["done"], first["total"]) == ("verifying", 2_000_000, 10_000_000)
    assert (last["rate"], last["shares"], last["total_shares"]) == (1_250_000, 10, 10)


def test_bar_is_drawn_on_a_terminal_once_and_not_after_it_was_stopped(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = _Time()
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with ProgressDisplay(as_json=False, clock=clock) as display:
        clock.now += 1.0
        display(Event(at=0, what="progress", detail="verifying", count=10, total=10))
        display(Event(at=0, what="verified", count=10_000_000, total=10_000_000))
        display.stop()
        shown = capsys.readouterr().err
        assert "verifying 10/10 shares" in shown and "10.0/10.0 MB" in shown
    assert capsys.readouterr().err == ""


def test_no_bar_is_drawn_while_a_question_is_open(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = _Time()
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with ProgressDisplay(as_json=False, clock=clock) as display:
        clock.now += 1.0
        with display.paused():
            display(Event(at=0, what="progress", count=1, total=2))
            assert capsys.readouterr().err == ""
