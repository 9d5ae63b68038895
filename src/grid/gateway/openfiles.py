"""Immutable files that stay open between requests, so that a second range of one costs only its blocks.

Owns the bound on how many, and when what was learnt of a file is forgotten. A player that seeks in a film asks for one
range after another, and browsers ask for several at once.

Cost: memory: KEPT_FILES times what one read has learnt of its file, which may be the first megabyte of its blocks.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from attrs import field, frozen

from grid.caps import ChkCap
from grid.errors import GridError
from grid.immutable.get import ImmutableFile
from grid.ports import Buffer, Observer, Runtime, ServerId, Sink, StorageServer

KEPT_FILES = 16
"""Files kept open: more than are looked at at once."""

KEPT_SIZE = 2**20
"""Octets from which a file is kept open: what is smaller is read with few questions anyway."""

KEPT_S = 60.0
"""Seconds after which a file is opened anew: servers that were away may be back, and shares may have moved."""


@frozen
class _Open:
    file: ImmutableFile = field(repr=False)
    servers: frozenset[ServerId]
    opened_at: float


class OpenFiles:
    """The immutable files that were read last."""

    def __init__(self, servers: Sequence[StorageServer], runtime: Runtime) -> None:
        """servers: the live ones, looked at again for each read."""
        self._servers = servers
        self._runtime = runtime
        self._files: OrderedDict[ChkCap, _Open] = OrderedDict()

    async def read(self, cap: ChkCap, sink: Sink, start: int, length: int, observer: Observer) -> int:
        """ImmutableFile.read; a file that was open already and fails before it gave anything is tried once anew."""
        kept, is_new = self._open(cap)
        counting = CountingSink(sink)
        try:
            return (await kept.file.read(counting, start, length, observer)).size
        except GridError:
            self._forget(cap, kept)
            if is_new or counting.written:
                raise
        except BaseException:
            self._forget(cap, kept)
            raise
        kept, _ = self._open(cap)
        return (await kept.file.read(sink, start, length, observer)).size

    def _open(self, cap: ChkCap) -> tuple[_Open, bool]:
        """The file, and whether nothing was known of it."""
        servers = list(self._servers)
        ids = frozenset(server.identity.server_id for server in servers)
        now = self._runtime.clock.now()
        kept = self._files.get(cap)
        if kept is not None and kept.servers == ids and now - kept.opened_at < KEPT_S:
            self._files.move_to_end(cap)
            return kept, False
        kept = _Open(ImmutableFile(cap, servers, self._runtime), ids, now)
        if cap.size >= KEPT_SIZE:
            self._files[cap] = kept
            self._files.move_to_end(cap)
            if len(self._files) > KEPT_FILES:
                self._files.popitem(last=False)
        return kept, True

    def _forget(self, cap: ChkCap, kept: _Open) -> None:
        if self._files.get(cap) is kept:
            del self._files[cap]


class CountingSink:
    """Passes octets on, and knows how many there were."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self.written = 0

    async def write(self, data: Buffer) -> None:
        """Take the octets."""
        self.written += len(data)
        await self._sink.write(data)
