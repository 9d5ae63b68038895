"""What a performer sends to its servers, even if nobody waits for their answers."""

from __future__ import annotations

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from grid.errors import GridError
from grid.immutable.perform import Performer
from grid.immutable.share.requests import AbortUpload, Allocate
from grid.placement.leases import LeaseMaster
from grid.ports import ShareNumber, StorageIndex
from tests.support.stepped_server import SteppedServer
from tests.support.virtual_time import VirtualRuntime


def _one_server() -> tuple[SteppedServer, Performer]:
    runtime = VirtualRuntime()
    server = SteppedServer("s0", runtime.clock)
    return server, Performer([server], StorageIndex(bytes(16)), runtime, leases=LeaseMaster(bytes(32)))


def _start(performer: Performer, request: Allocate | AbortUpload, outcome: list[object]) -> Deferred[object]:
    return Deferred.fromCoroutine(performer(request)).addBoth(outcome.append)


def _with_two_uploads(server: SteppedServer, performer: Performer) -> None:
    for number in (0, 1):
        wanted = frozenset([ShareNumber(number)])
        outcome: list[object] = []
        _start(performer, Allocate(server_id=server.identity.server_id, wanted=wanted, share_size=9), outcome)
        (call,) = server.waiting
        server.answer(call)
        assert outcome
    assert [number for _, number in server.incoming] == [0, 1]


def test_abort_of_a_server_when_it_has_two_uploads_then_tells_it_of_both_at_once() -> None:
    server, performer = _one_server()
    _with_two_uploads(server, performer)
    outcome: list[object] = []
    task = _start(performer, AbortUpload(server_id=server.identity.server_id), outcome)
    assert [call.method for call in server.waiting] == ["abort", "abort"]
    task.cancel()
    assert outcome
    assert not server.incoming


def test_abort_of_a_server_when_one_fails_then_waits_for_the_other_and_says_so() -> None:
    server, performer = _one_server()
    _with_two_uploads(server, performer)
    outcome: list[object] = []
    _start(performer, AbortUpload(server_id=server.identity.server_id), outcome)
    first, second = server.waiting
    first.gate.errback(GridError("no"))
    assert not outcome
    server.answer(second)
    assert isinstance(outcome[0], Failure) and outcome[0].check(GridError)
    assert [number for _, number in server.incoming] == [0]
