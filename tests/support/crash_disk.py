"""A disk that loses everything unsynced when the power fails: a model, harsher than any file system.

Every name and every sector of a file that was changed since the last sync is lost or kept on its own.
"""

from __future__ import annotations

import random

from grid.storage.files.disk import Handle
from grid.storage.files.memory_disk import DirectoryNode, FileNode, MemoryDisk, Node
from grid.storage.files.undo import SECTOR_SIZE


class CrashDisk(MemoryDisk):
    """A disk in memory that knows which of its data are on the medium."""

    def __init__(self, root: DirectoryNode | None = None) -> None:
        super().__init__()
        self._synced_data: dict[FileNode, bytes] = {}
        self._synced_entries: dict[DirectoryNode, dict[str, Node]] = {}
        if root is not None:
            self._root = root
            self._settle(root)

    def sync_file(self, handle: Handle) -> None:
        node = self._node_of(handle)
        self._synced_data[node] = bytes(node.data)

    def sync_directory(self, path: str) -> None:
        node = self._directory(path)
        self._synced_entries[node] = dict(node.entries)

    def copied(self) -> CrashDisk:
        """A disk of its own with the same files, all of them synced."""
        return CrashDisk(_copy(self._root))

    def killed(self) -> CrashDisk:
        """What a new process finds after the old one was killed: everything."""
        return CrashDisk(self._root)

    def after_power_loss(self, seed: int | None) -> CrashDisk:
        """What is found when the power is back. seed None: nothing that was not synced; else the seed decides."""
        survivor = self._survivor(self._root, None if seed is None else random.Random(seed))
        assert isinstance(survivor, DirectoryNode)
        return CrashDisk(survivor)

    def _settle(self, node: Node) -> None:
        if isinstance(node, FileNode):
            self._synced_data[node] = bytes(node.data)
        else:
            self._synced_entries[node] = dict(node.entries)
            for child in node.entries.values():
                self._settle(child)

    def _survivor(self, node: Node, dice: random.Random | None) -> Node:
        if isinstance(node, FileNode):
            return FileNode(self._surviving_data(node, dice))
        synced = self._synced_entries.get(node, {})
        copy = DirectoryNode()
        for name in sorted({*synced, *node.entries}):
            side = synced if dice is None or dice.random() < 0.5 else node.entries
            if name in side:
                copy.entries[name] = self._survivor(side[name], dice)
        return copy

    def _surviving_data(self, node: FileNode, dice: random.Random | None) -> bytes:
        synced, now = self._synced_data.get(node, b""), bytes(node.data)
        if dice is None:
            return synced
        size = dice.choice([len(synced), len(now)])
        sectors = (
            dice.choice([synced, now])[start : start + SECTOR_SIZE].ljust(SECTOR_SIZE, b"\0")
            for start in range(0, size, SECTOR_SIZE)
        )
        return b"".join(sectors)[:size]


def _copy(directory: DirectoryNode) -> DirectoryNode:
    copy = DirectoryNode()
    for name, node in directory.entries.items():
        copy.entries[name] = FileNode(bytes(node.data)) if isinstance(node, FileNode) else _copy(node)
    return copy
