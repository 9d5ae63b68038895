"""A grid as one client uses it: its servers, the client's secrets and choices, and what the client remembers.

One value that every operation takes. It owns which things belong together; it asks no server anything and decides nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from attrs import evolve, field, frozen

from grid.engine.batches import DEFAULT_MAX_SEGMENT_SIZE
from grid.engine.server_memory import ServerMemory
from grid.errors import FormatError
from grid.placement.leases import LeaseMaster
from grid.ports import Observer, Runtime, ServerId, StorageServer, ignore_events

T = TypeVar("T")


@frozen(kw_only=True)
class Encoding:
    """k: shares needed. n: shares made. happy: servers that must each hold one of their own for success."""

    k: int = 3
    n: int = 10
    happy: int = 7
    max_segment_size: int = DEFAULT_MAX_SEGMENT_SIZE

    def __attrs_post_init__(self) -> None:
        """FormatError if this is no encoding, or asks for more happiness than there are shares."""
        if not 1 <= self.k <= self.n <= 256:
            raise FormatError(f"{self.k}-of-{self.n} is not an encoding: 1 <= needed <= total <= 256 must hold")
        if not 0 <= self.happy <= self.n:
            raise FormatError(f"happy ({self.happy}) must not be larger than total ({self.n})")


class Remembered:
    """What the engines remember of files between operations: one object of each class, made when it is first used."""

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

    servers: in any order, and possibly a live sequence that grows. leases: not needed for reads. convergence: the secret that makes equal immutable
    files equal capabilities; None draws a random key for each file. preferred: servers that immutable files go to
    first. memory: how servers answered lately. remembered: what is known of files. Both are shared by all values
    made of this one with `evolve`.
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

    def observed_by(self, observer: Observer) -> Grid:
        """The same grid with another observer."""
        return evolve(self, observer=observer)
