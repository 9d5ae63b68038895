"""The window of a read, under a clock that the tests move."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from grid.engine.batches import READ_BYTES, WIDE_READ_BYTES
from grid.engine.flow_window import LEAST_BATCHES, START_BYTES, WINDOW_BYTES, FlowWindow, Mark

BATCH = 4 * 2**20

LEAST_BYTES = LEAST_BATCHES * READ_BYTES


def run(window: FlowWindow, *, rate: float, delay_s: float, batches: int) -> list[int]:
    """The windows of a read over a line of this rate (bytes a second) and delay, each filled as far as it goes."""
    now = line_free = 0.0
    on_the_way: list[tuple[float, Mark]] = []
    windows = []
    for _ in range(batches):
        while not on_the_way or (len(on_the_way) + 1) * BATCH <= window.window_bytes:
            line_free = max(line_free, now) + BATCH / rate
            on_the_way.append((line_free + delay_s, window.asked(now)))
        now, mark = on_the_way.pop(0)
        window.came(mark, BATCH, now)
        windows.append(window.window_bytes)
    return windows


def test_window_when_nothing_has_come_is_small() -> None:
    window = FlowWindow(3)
    window.asked(0.0)
    assert window.window_bytes == START_BYTES


def test_window_when_the_delay_is_short_stays_at_its_least() -> None:
    assert run(FlowWindow(3), rate=500e6, delay_s=0.0002, batches=30)[-1] <= LEAST_BYTES


def test_window_when_the_line_is_long_and_wide_grows_to_its_bound() -> None:
    windows = run(FlowWindow(3), rate=125e6, delay_s=0.3, batches=30)
    assert windows[0] == LEAST_BYTES
    assert windows == sorted(windows)
    assert windows[-1] == WINDOW_BYTES


def test_window_when_the_line_is_long_and_narrow_stays_at_its_least() -> None:
    assert max(run(FlowWindow(3), rate=5e6, delay_s=0.3, batches=30)) == LEAST_BYTES


def test_window_when_batches_are_wide_has_room_for_two() -> None:
    windows = run(FlowWindow(60), rate=125e6, delay_s=0.3, batches=30)
    assert set(windows) == {WINDOW_BYTES}
    assert WINDOW_BYTES >= 2 * WIDE_READ_BYTES


def test_window_when_bandwidth_times_delay_lies_between_follows_it() -> None:
    last = run(FlowWindow(3), rate=90e6, delay_s=0.12, batches=40)[-1]
    assert 90e6 * 0.12 < last < WINDOW_BYTES
    assert last > LEAST_BYTES


@given(st.lists(st.tuples(st.integers(1, 2**23), st.floats(0, 1e4)), max_size=20))
def test_window_when_anything_comes_is_within_its_bounds(batches: list[tuple[int, float]]) -> None:
    window = FlowWindow(3)
    for size, seconds in batches:
        window.came(window.asked(0.0), size, seconds)
        assert LEAST_BYTES <= window.window_bytes <= WINDOW_BYTES


def test_window_when_given_less_room_keeps_to_it() -> None:
    assert set(run(FlowWindow(3, most_bytes=2**20), rate=125e6, delay_s=0.3, batches=30)) == {2**20}
    assert FlowWindow(3, most_bytes=2**20).window_bytes == 2**20
