"""The requests that plans of every kind of file make. Each class is one kind of work; its docstring names the answer.

It owns the requests that immutable and mutable files share, and the base class of all others. It carries nothing out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from grid.engine.server_memory import MANY_BYTES
from grid.errors import PeerError
from grid.ports import Buffer, ServerId, ShareNumber
from grid.values import define, field

LARGE_REQUEST = 1 << 16
"""A server may answer requests for fewer bytes and still stall on larger ones."""


@define(kw_only=True, eq=False)
class Request:
    """One piece of work that a plan wants done; subclasses say which.

    server_id: the server that answers; None for local work. parting: still carried out (for LINGER_S) after the plan has
    ended. size: bytes to move, for observers. is_late: set by a plan that gives up on it because it takes too long, so that
    the memory of servers counts it as silence.
    """

    server_id: ServerId | None = None
    parting: bool = False
    size: int = 0
    share_numbers: tuple[int, ...] = ()
    index: int = field(default=-1, init=False)
    is_late: bool = field(default=False, init=False)

    @property
    def memory_kind(self) -> str:
        """The name under which the memory of servers keeps this kind of request: its class, with large requests kept apart."""
        name = type(self).__name__
        return name + MANY_BYTES if self.size >= LARGE_REQUEST else name


@define(kw_only=True, eq=False)
class ServerRequest(Request):
    """A request that one server answers."""

    server_id: ServerId


@define(kw_only=True, eq=False)
class AddLease(ServerRequest):
    """Add or renew our lease. Answer: None."""


@define(kw_only=True, eq=False)
class AdviseCorrupt(ServerRequest):
    """Report to a server that its share is corrupt. Answer: ignored."""

    share_number: ShareNumber
    reason: str
    parting: bool = True


UNREAD = "the server has the share, but cannot read it from its disk"
"""Why a share cannot be used that is in an answer without its bytes."""


def why_lacking(pieces: Sequence[Buffer] | None) -> PeerError:
    """Why a share cannot be used of which an answer has less than was asked for. pieces: None if it has nothing at all."""
    return PeerError("the server no longer has the share" if pieces is None or pieces else UNREAD)


class Openable(Protocol):
    """A run of segments, ready to be checked, decoded and decrypted."""

    def open(self) -> object:
        """The text of the segments, or which shares are bad. Safe on pool threads."""


@define(kw_only=True, eq=False)
class OpenRun(Request):
    """Answer: the result of opening the run, from the processor pool."""

    run: Openable = field(repr=False)


@define(kw_only=True, eq=False)
class Compute(Request):
    """Answer: the job's result, from the processor pool."""

    job: Callable[[], object] = field(repr=False)


@define(kw_only=True, eq=False)
class Deliver(Request):
    """Answer: None, once the consumer has taken the bytes."""

    data: Buffer = field(repr=False)


@define(kw_only=True, eq=False)
class ReadSource(Request):
    """Answer: exactly these bytes of the file to store."""

    offset: int
    length: int
