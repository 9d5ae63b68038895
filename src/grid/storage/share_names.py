"""Which mutable shares' names are on the medium, and the syncs that bring them there. Blocking.

The directory of a storage index belongs to it alone, so nobody else's sync would serve it: it is synced by the call that
changed it. The directories above are synced once for each storage index, and again only if it was gone meanwhile.
Cost of a change of names: one sync; three for the first in a new prefix; none with durability `none`.
"""

from __future__ import annotations

from grid.storage.disk import Disk
from grid.storage.paths import SHARES, prefix_directory, share_directory

KNOWN_NAMES = 2**14
"""Storage indexes of which it is remembered that they are on the medium: a few megabytes."""


class ShareNames:
    """What this process knows of names on one disk. For one thread at a time per storage index."""

    def __init__(self, disk: Disk, *, durable: bool) -> None:
        self._disk = disk
        self._durable = durable
        self._prefixes: set[str] = set()
        """Prefix directories, which are never removed, whose own names are on the medium."""
        self._known: set[str] = set()
        """Storage indexes all of whose names are."""
        self._settled: set[str] = set()
        """Storage indexes of which the directory's name is, if nobody has removed it."""

    def changing(self, name: str, *, is_new: bool) -> None:
        """Note that the storage index's names are about to change. is_new: it has no shares, perhaps no directory."""
        self._known.discard(name)
        if is_new:
            self._settled.discard(name)

    def settle(self, name: str) -> None:
        """Return when the names of the storage index's shares are on the medium; OSError: they may not be."""
        if not self._durable or name in self._known:
            return
        is_there = self._sync(share_directory(name))
        if not is_there or name not in self._settled:
            prefix = prefix_directory(name)
            if self._sync(prefix) and prefix not in self._prefixes:
                self._disk.sync_directory(SHARES)
                self._prefixes.add(prefix)
        for names in (self._known, self._settled):
            if len(names) >= KNOWN_NAMES:
                names.clear()
            names.add(name)
        if not is_there:
            self._settled.discard(name)

    def _sync(self, directory: str) -> bool:
        """Whether the directory is there; if so, what is in it is on the medium then."""
        try:
            self._disk.sync_directory(directory)
        except FileNotFoundError:
            return False
        return True
