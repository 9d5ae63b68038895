from __future__ import annotations

import json

import pytest

from grid.cli.terminal.progress import FILE_COST, Tally, TransferDisplay, describe_line, describe_progress


def test_tally_when_half_is_done_says_rates_and_what_is_left() -> None:
    tally = Tally(began_at=100.0, total_files=4, total_bytes=4 * FILE_COST)
    assert tally.remaining_s(101.0) is None
    tally.advance(FILE_COST)
    tally.finish(FILE_COST, FILE_COST)
    tally.finish(FILE_COST)
    assert tally.byte_rate(110.0) == FILE_COST / 10 and tally.file_rate(110.0) == 0.2
    assert tally.remaining_s(110.0) == pytest.approx(10.0)
    said = describe_progress(tally, 110.0)
    assert (said["files"], said["total_files"], said["eta_s"], said["file_rate"]) == (2, 4, 10.0, 0.2)
    assert describe_line(tally, 110.0) == "2/4 files, 131.1/262.1 kB, 0 files/s, 6.6 kB/s, 0:10 left"
    assert "1:00:01 left" in describe_line(Tally(0.0, 2, 0, files=1), 3601.0)


def test_estimate_is_left_out_until_the_rate_says_something() -> None:
    tally = Tally(began_at=0.0, total_files=1, total_bytes=1_000_000_000)
    tally.advance(100_000)
    assert tally.remaining_s(1.0) is None and "left" not in describe_line(tally, 1.0)
    assert tally.remaining_s(3.0) is None  # A ten-thousandth of it is done.
    assert tally.remaining_s(20.0) is not None
    tally.advance(99_900_000)
    assert tally.remaining_s(1.9) is None
    assert tally.remaining_s(2.0) == pytest.approx(18.0, rel=0.01)


def test_display_when_asked_for_json_prints_lines_in_time_and_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    now = [0.0]
    with TransferDisplay(as_json=True, clock=lambda: now[0]) as display:
        display.tally.total_files = 100
        for _ in range(100):
            now[0] += 0.01
            display.tally.finish(10)
            display.update()
        display.fail("a name\nwith URI:CHK:secret in it")
    lines = capsys.readouterr().err.splitlines()
    assert [json.loads(line)["files"] for line in lines[:-1]] == [1, 51, 100]
    warning = json.loads(lines[-1])
    assert warning["event"] == "warning" and warning["message"].startswith("a name with ") and "secret" not in lines[-1]
    assert display.tally.failures == ["a name\nwith URI:CHK:secret in it"]
