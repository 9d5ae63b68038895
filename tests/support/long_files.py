"""Sources and sinks of files that are larger than memory."""

from __future__ import annotations

import random

from grid.ports import Buffer

PERIOD = 1_000_003
"""Bytes after which a repeated source begins anew: no multiple of any size that a format has."""


class Repeated:
    """A source of as many bytes as wanted, out of a few."""

    def __init__(self, size: int, seed: int = 1) -> None:
        self.size = size
        self._some = random.Random(seed).randbytes(PERIOD) * 2

    async def read_at(self, offset: int, length: int) -> bytes:
        start = offset % PERIOD
        pieces = [self._some[start : start + min(length, PERIOD)]]
        while (left := length - sum(map(len, pieces))) > 0:
            start = (start + len(pieces[-1])) % PERIOD
            pieces.append(self._some[start : start + min(left, PERIOD)])
        return b"".join(pieces)


class Comparing:
    """A sink that keeps nothing: it checks that the bytes are those of the source from `offset` on."""

    def __init__(self, source: Repeated, offset: int = 0) -> None:
        self.taken = 0
        self._source = source
        self._offset = offset

    async def write(self, data: Buffer) -> None:
        assert data == await self._source.read_at(self._offset + self.taken, len(data))
        self.taken += len(data)
