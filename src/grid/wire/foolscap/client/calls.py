"""Remote calls whose answers are checked against our schema, whatever interface the peer claims."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from twisted.internet.defer import Deferred, DeferredList

from grid.errors import FormatError, PeerError, PeerRefusedError
from grid.limits import MAX_SHARES
from grid.ports import Range, ShareNumber
from grid.wire.foolscap.remote_errors import REMOTE_ERRORS, from_remote


async def call(reference: Any, interface: Any, where: str, method: str, *arguments: Any, result: Any = None) -> Any:
    """Call the method and return its answer; errors are GridErrors. result: a stricter constraint than the schema's."""
    sent = send(reference, interface, method, *arguments, result=result)
    del arguments  # The arguments, which may be megabytes, are not kept until the answer comes.
    try:
        return await sent
    except REMOTE_ERRORS as error:
        raise from_remote(error, where) from None


def send(reference: Any, interface: Any, method: str, *arguments: Any, result: Any = None) -> Deferred[Any]:
    """Send the call now. The Deferred fails with one of REMOTE_ERRORS."""
    schema = interface[method]
    options = {} if result is None else {"_resultConstraint": result}

    def check(value: Any) -> Any:
        # Tokens were checked as they came, but references back into the message were not.
        (result or schema.getResponseConstraint()).checkObject(value, True)
        return value

    sent: Deferred[Any] = reference.callRemote(method, *arguments, _methodConstraint=schema, **options)
    return sent.addCallback(check)


async def all_answers(sent: Sequence[Deferred[Any]], where: str) -> list[Any]:
    """Return every answer in order. After all have ended, the first failure is raised. Canceling cancels all of them."""
    outcomes = await all_outcomes(sent, where)
    for outcome in outcomes:
        if isinstance(outcome, PeerRefusedError):
            raise outcome
    return outcomes


async def all_outcomes(sent: Sequence[Deferred[Any]], where: str) -> list[Any]:
    """As all_answers, with a PeerRefusedError in the place of each answer that is one."""
    outcomes: list[Any] = []
    for succeeded, outcome in await DeferredList(sent, consumeErrors=True):
        error = None if succeeded else outcome.value
        if isinstance(error, REMOTE_ERRORS):
            error = from_remote(error, where)
        if error is not None and not isinstance(error, PeerRefusedError):
            raise error from None
        outcomes.append(outcome if error is None else error)
    return outcomes


def check_share_numbers(numbers: Sequence[int], where: str) -> None:
    """Raise PeerError if a number is not a share number."""
    if not all(0 <= number < MAX_SHARES for number in numbers):
        raise PeerError(f"{where} answered with an impossible share number")


def check_pieces(pieces: Sequence[Any], ranges: Sequence[Range], where: str) -> None:
    """Raise PeerError unless there is one piece per range, and none is longer than its range."""
    if len(pieces) != len(ranges) or any(
        len(piece) > length for piece, (_, length) in zip(pieces, ranges, strict=False)
    ):
        raise PeerError(f"{where} answered with ranges other than those it was asked for")


def misbehaved(error: FormatError, where: str) -> PeerError:
    """The error for an answer that cannot be parsed."""
    return PeerError(f"{where} sent an invalid answer: {error}")


def checked_shares(
    shares: dict[int, list[bytes]], ranges: Sequence[Range], where: str
) -> dict[ShareNumber, list[bytes]]:
    """The data per share of an answer with those ranges of each; PeerError if it has others."""
    check_share_numbers(list(shares), where)
    for pieces in shares.values():
        check_pieces(pieces, ranges, where)
    return {ShareNumber(number): pieces for number, pieces in shares.items()}
