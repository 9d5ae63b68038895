"""Rules common to all plans: the first error sticks, and everything is handed out once."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from grid.engine.plan import PlanBase, timed_out
from grid.engine.requests import AdviseCorrupt, Request
from grid.errors import GridError, PeerError
from grid.ports import ServerId

SERVER = ServerId("v0-a")


class OnePlan(PlanBase):
    """Is done when `done` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.is_done = False

    def _is_done(self) -> bool:
        return self.is_done

    def stop(self, error: GridError) -> None:
        """End it."""
        self._stop(error)

    def withdraw(self, request: Request) -> None:
        """Give a request up."""
        self._withdrawn.append(request)

    def reject(self) -> Sequence[Request]:
        """Report a share, and return the messages to send."""
        self._reject(SERVER, 3, "false", 1.0)
        return self._take_outbox()

    def result(self) -> int:
        """Nothing but its error."""
        self._raise_error()
        return 1


def test_finished_when_the_plan_has_failed_or_is_done_holds() -> None:
    plan, failed = OnePlan(), OnePlan()
    assert not plan.finished
    plan.is_done = True
    failed.stop(PeerError("gone"))
    assert plan.finished and failed.finished and plan.result() == 1


def test_error_when_another_one_follows_is_still_the_first() -> None:
    plan = OnePlan()
    plan.stop(PeerError("first"))
    plan.stop(PeerError("second"))
    with pytest.raises(PeerError, match="first"):
        plan.result()


def test_withdrawn_when_asked_again_is_empty() -> None:
    plan, request = OnePlan(), Request(server_id=SERVER)
    plan.withdraw(request)
    assert list(plan.withdrawn()) == [request] and not plan.withdrawn()


def test_rejected_share_when_reported_reaches_its_server_and_observers_once() -> None:
    plan = OnePlan()
    (advice,) = plan.reject()
    assert isinstance(advice, AdviseCorrupt) and advice.parting
    assert (advice.server_id, advice.share_number, advice.reason) == (SERVER, 3, "false")
    (event,) = plan.take_events()
    assert (event.what, event.server_id, event.share_numbers, event.detail) == ("reject", SERVER, (3,), "false")
    assert not plan.take_events()


def test_timeout_when_reported_names_the_server() -> None:
    assert "v0-a did not answer in time" in str(timed_out(Request(server_id=SERVER)))
