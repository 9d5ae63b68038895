"""A disk in memory: shares that live as long as the process, and the twin of RealDisk in tests."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from threading import RLock

from grid.ports import Buffer
from grid.storage.files.disk import Handle, Space

BLOCK_SIZE = 4096


class FileNode:
    """A file's bytes."""

    def __init__(self, data: bytes = b"") -> None:
        self.data = bytearray(data)


class DirectoryNode:
    """A directory's entries."""

    def __init__(self) -> None:
        self.entries: dict[str, Node] = {}


Node = FileNode | DirectoryNode


class MemoryDisk:
    """Files in memory, at most `capacity` bytes of them (None: unlimited). Holes count like data."""

    def __init__(self, capacity: int | None = 2**30) -> None:
        self._root = DirectoryNode()
        self._open: dict[Handle, FileNode] = {}
        self._next_handle = 3
        self._capacity = capacity
        self._used = 0
        self._lock = RLock()

    @property
    def open_count(self) -> int:
        """Number of open handles."""
        return len(self._open)

    def make_directory(self, path: str) -> None:
        """Make one directory."""
        with self._lock:
            parent, name = self._parent(path)
            if name in parent.entries:
                raise _error(errno.EEXIST, path)
            parent.entries[name] = DirectoryNode()

    def remove_directory(self, path: str) -> None:
        """Remove an empty directory."""
        with self._lock:
            parent, name = self._parent(path)
            if self._directory(path).entries:
                raise _error(errno.ENOTEMPTY, path)
            del parent.entries[name]

    def list_directory(self, path: str) -> list[tuple[str, bool]]:
        """The entries, and whether each is a directory."""
        with self._lock:
            entries = self._directory(path).entries
            return [(name, isinstance(node, DirectoryNode)) for name, node in entries.items()]

    def sync_directory(self, path: str) -> None:
        """Raise if the directory does not exist; otherwise nothing to do."""
        with self._lock:
            self._directory(path)

    def rename(self, old: str, new: str) -> None:
        """Rename a file."""
        with self._lock:
            node = self._file(old)
            parent, name = self._parent(new)
            replaced = parent.entries.get(name)
            if isinstance(replaced, DirectoryNode):
                raise _error(errno.EISDIR, new)
            if replaced is not None and replaced is not node:
                self._used -= len(replaced.data)
            old_parent, old_name = self._parent(old)
            del old_parent.entries[old_name]
            parent.entries[name] = node

    def unlink(self, path: str) -> None:
        """Remove a file."""
        with self._lock:
            self._used -= len(self._file(path).data)
            parent, name = self._parent(path)
            del parent.entries[name]

    def exists(self, path: str) -> bool:
        """Whether a file or directory of this name exists."""
        with self._lock:
            try:
                self._node(path)
            except OSError:
                return False
            return True

    def usage(self, path: str) -> tuple[int, int]:
        """Size of the file, and bytes of the blocks it would use."""
        with self._lock:
            size = len(self._file(path).data)
            return size, -(-size // BLOCK_SIZE) * BLOCK_SIZE

    def create_file(self, path: str) -> Handle:
        """Create a file and open it."""
        with self._lock:
            parent, name = self._parent(path)
            if name in parent.entries:
                raise _error(errno.EEXIST, path)
            node = FileNode()
            parent.entries[name] = node
            return self._opened(node)

    def open_file(self, path: str, *, writable: bool = False) -> Handle:
        """Open an existing file."""
        with self._lock:
            return self._opened(self._file(path))

    def close_file(self, handle: Handle) -> None:
        """Close the file."""
        with self._lock:
            if self._open.pop(handle, None) is None:
                raise _error(errno.EBADF, "")

    def size(self, handle: Handle) -> int:
        """Size of the file in bytes."""
        with self._lock:
            return len(self._node_of(handle).data)

    def read(self, handle: Handle, offset: int, length: int) -> bytes:
        """The bytes in this range."""
        with self._lock:
            return bytes(memoryview(self._node_of(handle).data)[offset : offset + length])

    def write(self, handle: Handle, offset: int, pieces: Sequence[Buffer]) -> None:
        """Write the pieces for which there is room."""
        with self._lock:
            node = self._node_of(handle)
            for piece in pieces:
                if not len(piece):
                    continue
                self._grow(node, offset + len(piece))
                node.data[offset : offset + len(piece)] = piece
                offset += len(piece)

    def truncate(self, handle: Handle, size: int) -> None:
        """Cut or extend the file."""
        with self._lock:
            node = self._node_of(handle)
            self._grow(node, size)
            self._used -= len(node.data) - size
            del node.data[size:]

    def sync_file(self, handle: Handle) -> None:
        """Do nothing: memory needs no sync."""
        with self._lock:
            self._node_of(handle)

    def start_writeback(self, handle: Handle) -> None:
        """Do nothing: memory needs no writeback."""

    def free_space(self) -> int | None:
        """The rest of the capacity."""
        with self._lock:
            return None if self._capacity is None else max(0, self._capacity - self._used)

    def space(self) -> Space | None:
        """The capacity, and the rest of it."""
        free = self.free_space()
        if self._capacity is None or free is None:
            return None
        return Space(total=self._capacity, free_for_root=free, free=free)

    def _grow(self, node: FileNode, size: int) -> None:
        more = size - len(node.data)
        if more <= 0:
            return
        if self._capacity is not None and self._used + more > self._capacity:
            raise _error(errno.ENOSPC, "")
        self._used += more
        node.data.extend(bytes(more))

    def _opened(self, node: FileNode) -> Handle:
        handle = Handle(self._next_handle)
        self._next_handle += 1
        self._open[handle] = node
        return handle

    def _node_of(self, handle: Handle) -> FileNode:
        node = self._open.get(handle)
        if node is None:
            raise _error(errno.EBADF, "")
        return node

    def _node(self, path: str) -> Node:
        node: Node = self._root
        if path == ".":
            return node
        for name in path.split("/"):
            if not isinstance(node, DirectoryNode):
                raise _error(errno.ENOTDIR, path)
            if name not in node.entries:
                raise _error(errno.ENOENT, path)
            node = node.entries[name]
        return node

    def _directory(self, path: str) -> DirectoryNode:
        node = self._node(path) if path else self._root
        if not isinstance(node, DirectoryNode):
            raise _error(errno.ENOTDIR, path)
        return node

    def _file(self, path: str) -> FileNode:
        node = self._node(path)
        if not isinstance(node, FileNode):
            raise _error(errno.EISDIR, path)
        return node

    def _parent(self, path: str) -> tuple[DirectoryNode, str]:
        head, _, name = path.rpartition("/")
        return (self._directory(head) if head else self._root), name


def _error(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)
