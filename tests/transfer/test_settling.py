"""When a file of a watched folder counts as complete."""

from __future__ import annotations

import os

from attrs import define

from grid.transfer.watching import Settling

S = 10**9
START = 1_700_000_000 * S


@define
class Time:
    """Both clocks of a settling."""

    seconds: float = 0.0

    def unix_ns(self) -> int:
        return START + round(self.seconds * S)

    def now(self) -> float:
        return 5.0 + self.seconds


def status(changed_s: float, touched_s: float | None = None, size: int = 1) -> os.stat_result:
    """A file whose contents and status changed that many seconds after the start. touched_s: the time that utime set."""
    changed = START + round(changed_s * S)
    touched = changed if touched_s is None else START + round(touched_s * S)
    return os.stat_result((0, 0, 0, 1, 0, 0, size, 0, 0, 0), {"st_mtime_ns": touched, "st_ctime_ns": changed})


def make(quiet_s: float = 10.0) -> tuple[Settling, Time]:
    time = Time()
    return Settling(quiet_s, time.unix_ns, time.now), time


def look(settling: Settling, *files: os.stat_result) -> list[bool]:
    """One pass over files with names of their own."""
    settling.begin()
    return [settling.is_settled(str(number), each) for number, each in enumerate(files)]


def test_file_when_quiet_for_long_enough_is_settled_at_once() -> None:
    settling, time = make()
    time.seconds = 10.0
    assert look(settling, status(0), status(0.1), status(-1000)) == [True, False, True]
    assert settling.waiting_count == 1


def test_file_when_written_again_and_again_is_not_settled() -> None:
    settling, time = make()
    for second in range(100):
        time.seconds = float(second)
        assert look(settling, status(second, size=second)) == [False]
    time.seconds = 109.0
    assert look(settling, status(99, size=99)) == [True]
    assert settling.waiting_count == 0


def test_old_time_when_a_program_sets_it_does_not_hide_a_fresh_write() -> None:
    settling, time = make()
    time.seconds = 5.0
    assert look(settling, status(4, touched_s=-(10**6))) == [False]


def test_time_when_set_to_the_future_does_not_hold_a_file_back() -> None:
    settling, time = make()
    time.seconds = 20.0
    assert look(settling, status(5, touched_s=10**6)) == [True]


def test_file_when_all_its_times_are_in_the_future_is_settled_once_it_was_seen_unchanged() -> None:
    settling, time = make()
    ahead = status(10**6, size=1)
    assert look(settling, ahead) == [False]
    time.seconds = 9.0
    assert look(settling, ahead) == [False]
    time.seconds = 9.5
    grown = status(10**6, size=2)
    assert look(settling, grown) == [False]
    time.seconds = 19.0
    assert look(settling, grown) == [False]
    time.seconds = 19.5
    assert look(settling, grown) == [True]


def test_file_when_it_vanishes_is_forgotten() -> None:
    settling, time = make()
    ahead = status(10**6)
    look(settling, ahead)
    look(settling)
    assert settling.waiting_count == 0
    time.seconds = 11.0
    assert look(settling, ahead) == [False]


def test_file_when_no_quiet_time_is_wanted_is_settled_at_once() -> None:
    settling, _ = make(0.0)
    assert look(settling, status(0)) == [True]
