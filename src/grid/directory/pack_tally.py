"""How much of each pack is in use: what the slices in a tree cover. Pure. [spec extents 5]

Memory: two numbers per slice.
"""

from __future__ import annotations

from grid.caps import ChkCap, SliceCap, StorageIndex
from grid.values import define, field


@define
class _Pack:
    size: int
    live: set[tuple[int, int]] = field(factory=set)


class PackTally:
    """How much of each pack is in use, by the slices seen so far. Each slice counts once."""

    def __init__(self) -> None:
        self._packs: dict[StorageIndex, _Pack] = {}

    def add(self, cap: SliceCap) -> None:
        """Count a slice."""
        pack = self._packs.setdefault(cap.storage_index, _Pack(cap.pack.size))
        pack.live.add((cap.offset, cap.length))

    @property
    def count(self) -> int:
        """Number of packs."""
        return len(self._packs)

    @property
    def size(self) -> int:
        """Bytes of all packs."""
        return sum(pack.size for pack in self._packs.values())

    @property
    def live_bytes(self) -> int:
        """Bytes covered by slices."""
        return sum(map(_live_bytes, self._packs.values()))

    def live_share(self, cap: ChkCap) -> float:
        """How much of a pack is in use, from 0 to 1."""
        pack = self._packs.get(cap.storage_index)
        return 0.0 if pack is None else _live_bytes(pack) / pack.size


def _live_bytes(pack: _Pack) -> int:
    covered = position = 0
    for offset, length in sorted(pack.live):
        end = min(offset + length, pack.size)
        covered += max(0, end - max(offset, position))
        position = max(position, end)
    return covered
