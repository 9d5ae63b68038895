"""Connection attempts that get no answer."""

from __future__ import annotations

from grid.wire.connections.connect_watch import QUIET_S, TICKS, ConnectWatch
from tests.support.virtual_time import VirtualClock


class Scene:
    """A watched attempt. quiet_since: the argument of each call of on_quiet."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.quiet_since: list[float] = []
        self.watch = ConnectWatch(self.clock, self.quiet_since.append)

    def wait(self, seconds: float) -> None:
        for _ in range(100):
            self.clock.task_clock.advance(seconds / 100)


def test_watch_when_the_server_gives_no_sign_reports_once_and_leaves_no_timer() -> None:
    scene = Scene()
    scene.wait(QUIET_S - 0.05)
    assert not scene.quiet_since
    scene.wait(10)
    assert scene.quiet_since == [0.0] and not scene.clock.task_clock.getDelayedCalls()


def test_watch_when_the_connection_is_accepted_gives_the_server_its_time_from_then() -> None:
    scene = Scene()
    scene.wait(1)
    scene.watch.accepted()
    scene.wait(QUIET_S - 0.05)
    assert not scene.quiet_since
    scene.wait(0.1)
    assert len(scene.quiet_since) == 1 and abs(scene.quiet_since[0] - 1) < 0.01


def test_watch_when_it_has_ended_reports_nothing_more() -> None:
    scene = Scene()
    scene.watch.end()
    scene.watch.accepted()
    assert not scene.clock.task_clock.getDelayedCalls()
    scene.wait(10)
    assert not scene.quiet_since


def test_watch_when_this_process_was_too_busy_to_listen_gives_the_server_what_is_left_of_its_time() -> None:
    scene = Scene()
    scene.clock.task_clock.advance(20)
    assert not scene.quiet_since
    scene.wait(QUIET_S * (TICKS - 1) / TICKS + 0.05)
    assert len(scene.quiet_since) == 1
