"""How long a node has waited for a client."""

from __future__ import annotations

from grid.wire.connections.body_rate import BodyRate
from tests.support.virtual_time import VirtualClock


def after(clock: VirtualClock, seconds: float) -> None:
    clock.task_clock.advance(seconds)


def test_trickle_when_it_continues_does_not_renew_the_time() -> None:
    clock = VirtualClock()
    rate = BodyRate(clock, 100)
    for _ in range(10):
        rate.wait()
        after(clock, 20.0)
        rate.move(1)
        rate.rest()
    assert rate.waited_s == 200.0


def test_time_when_the_client_is_not_waited_for_does_not_count() -> None:
    clock = VirtualClock()
    rate = BodyRate(clock, 100)
    rate.wait()
    after(clock, 1.0)
    rate.rest()
    after(clock, 1000.0)
    rate.wait()
    rate.wait()
    after(clock, 2.0)
    assert rate.waited_s == 3.0


def test_steps_when_they_are_made_restart_the_time() -> None:
    clock = VirtualClock()
    rate = BodyRate(clock, 100)
    rate.wait()
    after(clock, 5.0)
    rate.move(99)
    assert rate.waited_s == 5.0
    rate.move(1)
    assert rate.waited_s == 0.0
    after(clock, 4.0)
    assert rate.waited_s == 4.0
    rate.begin()
    after(clock, 4.0)
    assert rate.waited_s == 0.0
