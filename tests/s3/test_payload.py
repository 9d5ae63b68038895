"""Hashing while pieces are stored: in order, never two at a time, and never behind by more than one piece."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from grid.errors import BusyError
from grid.s3.checksums import Digests
from grid.s3.payload import SMALL, Hashing

LARGE = bytes(range(256)) * (SMALL // 256 + 1)


class SlowCpu:
    """Finishes a call when the test says so."""

    width = 2

    def __init__(self) -> None:
        self.calls: list[tuple[Deferred[Any], Callable[..., Any], tuple[object, ...]]] = []

    def run(self, function: Callable[..., Any], *arguments: object) -> Awaitable[Any]:
        answer: Deferred[Any] = Deferred()
        self.calls.append((answer, function, arguments))
        return answer

    def finish(self) -> None:
        answer, function, arguments = self.calls.pop(0)
        answer.callback(function(*arguments))


def test_piece_when_the_one_before_is_not_hashed_then_waits_for_it() -> None:
    cpu, digests = SlowCpu(), Digests(["sha256"])
    hashing = Hashing(cpu, digests)
    first, second, small, end = LARGE, LARGE[::-1], b"small", None
    steps: list[Deferred[None]] = []
    for piece in (first, second, small, end):
        steps.append(Deferred.fromCoroutine(hashing.wait() if piece is None else hashing.add(piece)))
        assert steps[0].called, "the caller goes on with a piece while it is hashed"
        if piece is first:
            assert len(cpu.calls) == 1
        elif piece is second:
            assert not steps[1].called and len(cpu.calls) == 1
            cpu.finish()
            assert steps[1].called and len(cpu.calls) == 1
        elif piece is small:
            assert not steps[2].called
            cpu.finish()
            assert steps[2].called and not cpu.calls
    assert steps[3].called
    assert digests.md5 == hashlib.md5(first + second + small).hexdigest()


def test_piece_when_the_pool_fails_then_the_next_step_raises_its_error() -> None:
    cpu = SlowCpu()
    hashing = Hashing(cpu, Digests([]))
    Deferred.fromCoroutine(hashing.add(LARGE))
    cpu.calls[0][0].errback(BusyError("no threads"))
    errors: list[Failure] = []
    Deferred.fromCoroutine(hashing.wait()).addErrback(errors.append)
    assert [type(error.value) for error in errors] == [BusyError]
