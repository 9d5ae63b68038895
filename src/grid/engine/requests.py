"""The requests that plans of every kind of file make: each class is one kind of work, and its docstring names the answer.

It owns the kinds that immutable and mutable files share, and the base of all others. It never carries anything out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from attrs import define, field

from grid.engine.server_memory import MANY_BYTES
from grid.ports import Buffer, ServerId, ShareNumber

LARGE_REQUEST = 1 << 16
"""A server that answers requests for fewer bytes may still stall on those for more."""


@define(kw_only=True, eq=False)
class Request:
    """One thing that a plan wants done; subclasses say what.

    server_id: the server that answers, None for local work. parting: still carried out (for LINGER_S) after the plan has
    ended. size: bytes moved, for observers.
    """

    server_id: ServerId | None = None
    parting: bool = False
    size: int = 0
    share_numbers: tuple[int, ...] = ()
    index: int = field(default=-1, init=False)


@define(kw_only=True, eq=False)
class ServerRequest(Request):
    """A request that one server answers."""

    server_id: ServerId


@define(kw_only=True, eq=False)
class AddLease(ServerRequest):
    """Answer: None."""


@define(kw_only=True, eq=False)
class AdviseCorrupt(ServerRequest):
    """Tells a server that a share of its failed; the answer does not matter."""

    share_number: ShareNumber
    reason: str
    parting: bool = True


def memory_kind(request: Request) -> str:
    """What the memory of servers calls this kind of request: its class, and apart from that requests of many bytes."""
    name = type(request).__name__
    return name + MANY_BYTES if request.size >= LARGE_REQUEST else name


class Openable(Protocol):
    """A run of segments, ready to be checked, decoded and decrypted."""

    def open(self) -> object:
        """The text of the segments, or which shares are bad; safe on pool threads."""


@define(kw_only=True, eq=False)
class OpenRun(Request):
    """Answer: what opening the run returns, from the processor pool."""

    run: Openable = field(repr=False)


@define(kw_only=True, eq=False)
class Compute(Request):
    """Answer: what the job returns, from the processor pool."""

    job: Callable[[], object] = field(repr=False)


@define(kw_only=True, eq=False)
class Deliver(Request):
    """Answer: None, when the consumer has taken the bytes."""

    data: Buffer = field(repr=False)


@define(kw_only=True, eq=False)
class ReadSource(Request):
    """Answer: exactly these bytes of what is stored."""

    offset: int
    length: int
