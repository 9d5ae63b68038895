"""Contents of mutable files, kept by version: a read whose map shows the kept version again fetches nothing else.

The map is made as always, so a kept version is returned only where a read would return it. Its prefix holds the root hash, which
proves every byte; so whatever shares it stands on now, its contents are these. Each open file has contents of its own:
what was read with one capability serves no other.

Cost: network: a read of a kept version transfers only the fronts of the shares. If the file has changed, that read takes one more
round trip than one that requests the data early, so the next one requests them early. Memory: MOST_KEPT_BYTES per
process, those used last.
"""

from __future__ import annotations

from collections import OrderedDict

from grid.mutable.share.prefix import Prefix
from grid.values import field, frozen

MOST_KEPT_BYTES = 64 * 2**20
"""Bytes of all files together: the directories of 100,000 typical objects."""

MOST_FILE_BYTES = 16 * 2**20
"""A larger file is not kept."""


@frozen(kw_only=True)
class _Kept:
    version: Prefix
    contents: bytes = field(repr=False)


class KeptFile:
    """What is kept of one open file, as long as this object exists."""

    def __init__(self, files: KeptFiles) -> None:
        self._files = files
        self._is_unchanged = False

    @property
    def is_steady(self) -> bool:
        """Whether the next read will probably find the kept version: something is kept, and the last use found it unchanged."""
        return self._is_unchanged and self._files.get(id(self)) is not None

    def get(self, version: Prefix | None) -> bytes | None:
        """The contents in this version, or None."""
        kept = self._files.get(id(self))
        if kept is None or kept.version != version:
            return None
        self._is_unchanged = True
        return kept.contents

    def put(self, version: Prefix, contents: bytes, *, is_own: bool = False) -> None:
        """Keep the contents of this version instead of any other. is_own: this client has just written it."""
        kept = self._files.get(id(self))
        if kept is None or kept.version != version:
            self._is_unchanged = is_own or kept is None
            self._files.put(id(self), _Kept(version=version, contents=contents))

    def __del__(self) -> None:
        self._files.drop(id(self))


class KeptFiles:
    """The contents of the files used last, by the ids of their KeptFile objects."""

    def __init__(self) -> None:
        self._files: OrderedDict[int, _Kept] = OrderedDict()

    @property
    def size(self) -> int:
        """Bytes kept."""
        # Not a running count: the last reference to a file may go on any thread, and two threads would spoil the count.
        return sum(len(kept.contents) for kept in list(self._files.values()))

    def open(self) -> KeptFile:
        """A place for the contents of one open file."""
        return KeptFile(self)

    def get(self, file: int) -> _Kept | None:
        """What is kept of a file, which is the one used last now."""
        kept = self._files.get(file)
        if kept is not None:
            self._files.move_to_end(file)
        return kept

    def put(self, file: int, kept: _Kept) -> None:
        """Keep contents, unless they are too many bytes."""
        self.drop(file)
        if len(kept.contents) <= MOST_FILE_BYTES:
            self._files[file] = kept
        while self._files and self.size > MOST_KEPT_BYTES:
            self.drop(next(iter(self._files)))

    def drop(self, file: int) -> None:
        """Forget a file's contents. Any thread may call this."""
        self._files.pop(file, None)
