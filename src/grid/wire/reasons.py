"""Why a connection failed, in a few words without the server's name, because the messages that quote them name it already."""

from __future__ import annotations

import errno

from twisted.internet.error import (
    ConnectError,
    ConnectingCancelledError,
    ConnectionClosed,
    ConnectionRefusedError,
    DNSLookupError,
    NoRouteError,
    TCPTimedOutError,
    TimeoutError,
)

from grid.errors import NobodyListensError, PeerUnreachableError

ABANDONED = "the attempt was abandoned"
"""Says nothing about the server."""

_WORDS: tuple[tuple[type[BaseException], str], ...] = (
    (ConnectionRefusedError, "connection refused"),
    (TCPTimedOutError, "connection timed out"),
    (TimeoutError, "connection timed out"),
    (NoRouteError, "no route to host"),
    (DNSLookupError, "host name not found"),
    (ConnectingCancelledError, ABANDONED),
    (ConnectionClosed, "connection lost"),
    (ConnectError, "connecting failed"),
    (ValueError, "the address cannot be used"),
)


ANOTHER_NODE = "another node is there: its key differs"
"""Why a server is not reached if a node with another key answers at its address."""

MUTE = "connects, but the node does not answer"
"""Why a server is not reached if its system accepts connections, but its node says nothing: it hangs, or is suspended."""

_NO_MACHINE = (errno.EHOSTUNREACH, errno.EHOSTDOWN)


def words_for(error: BaseException | None) -> str:
    """Describe an exception of a library that tried to connect."""
    if isinstance(error, ConnectError) and error.osError in _NO_MACHINE:
        return "no route to host"  # Twisted has no class for a machine that is off, only for a network without a route.
    for kind, words in _WORDS:
        if isinstance(error, kind):
            return words
    return type(error).__name__


def unreachable(where: str, reason: str) -> PeerUnreachableError:
    """The error for a server that could not be connected to."""
    return PeerUnreachableError(f"{where} cannot be reached: {reason}", reason=reason, server=where)


def not_connected(where: str, error: Exception) -> PeerUnreachableError:
    """The error for an exception of a library that tried to connect."""
    reason = words_for(error)
    if isinstance(error, ConnectionRefusedError):
        return NobodyListensError(f"{where} cannot be reached: {reason}", reason=reason, server=where)
    return unreachable(where, reason)
