"""A grid as one client uses it: its servers, the client's secrets and settings, and what the client remembers.

Every operation takes one such value. It holds things together; it sends no requests and decides nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from attrs import evolve, field

from grid.engine.batches import DEFAULT_MAX_SEGMENT_SIZE
from grid.engine.server_memory import ServerMemory
from grid.errors import FormatError
from grid.placement.leases import LeaseMaster
from grid.ports import Observer, Runtime, ServerId, StorageServer, ignore_events
from grid.values import frozen

T = TypeVar("T")


@frozen(kw_only=True)
class Encoding:
    """k: shares needed. n: shares made. happy: how many servers must each hold a share of their own for a write to succeed."""

    k: int = 3
    n: int = 10
    happy: int = 7
    max_segment_size: int = DEFAULT_MAX_SEGMENT_SIZE

    def __attrs_post_init__(self) -> None:
        """Raise FormatError if this is no encoding, or if happy is larger than n."""
        if not 1 <= self.k <= self.n <= 256:
            raise FormatError(f"{self.k}-of-{self.n} is not an encoding: 1 <= needed <= total <= 256 must hold")
        if not 0 <= self.happy <= self.n:
            raise FormatError(f"happy ({self.happy}) must not be larger than total ({self.n})")


class Remembered:
    """What the engines remember about files between operations: one object of each class, created on first use."""

    def __init__(self) -> None:
        self._objects: dict[type[Any], Any] = {}

    def of(self, kind: type[T]) -> T:
        """The one object of this class."""
        if kind not in self._objects:
            self._objects[kind] = kind()
        found: T = self._objects[kind]
        return found


@frozen(kw_only=True, eq=False)
class Grid:
    """One client's view of a grid.

    servers: in any order, possibly a live sequence that grows. leases: not needed for reads. convergence: the secret that gives equal
    files equal capabilities; None draws a random key for each file. preferred: servers that receive immutable files
    first. memory: how the servers answered lately. remembered: what is known of files. All values made of this one with
    `evolve` share both.
    """

    servers: Sequence[StorageServer] = field(repr=False)
    runtime: Runtime = field(repr=False)
    leases: LeaseMaster | None = field(default=None, repr=False)
    encoding: Encoding = field(factory=Encoding)
    convergence: bytes | None = field(default=None, repr=False)
    preferred: frozenset[ServerId] = frozenset()
    observer: Observer = field(default=ignore_events, repr=False)
    memory: ServerMemory = field(factory=ServerMemory, repr=False)
    remembered: Remembered = field(factory=Remembered, repr=False)

    def permitted(self) -> list[StorageServer]:
        """The servers that may receive new shares now. [spec wire 11]"""
        now = self.runtime.clock.unix_time()
        return [server for server in self.servers if server.identity.upload_permit_expires > now]

    def observed_by(self, observer: Observer) -> Grid:
        """The same grid with a different observer."""
        return evolve(self, observer=observer)
