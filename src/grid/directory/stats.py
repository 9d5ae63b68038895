"""Deep statistics and manifests: what a walk counts and lists. [spec directories 9]

Pure accumulators: each object is added once, in walk order.
"""

from __future__ import annotations

from math import isqrt

from grid.caps import ChkCap, DirectoryCap, LitCap, SequenceCap, SliceCap, UnknownChild
from grid.codec.base32 import encode
from grid.directory.names import sort_names
from grid.directory.pack_tally import PackTally
from grid.directory.walk import Path, Visited
from grid.values import define, field


@define
class Stats:
    """The numbers about a tree, under 1.20's names."""

    count_directories: int = 0
    count_literal_files: int = 0
    count_immutable_files: int = 0
    count_mutable_files: int = 0
    count_unknown: int = 0
    size_directories: int = 0
    size_literal_files: int = 0
    size_immutable_files: int = 0
    largest_directory: int = 0
    largest_directory_children: int = 0
    largest_immutable_file: int = 0
    count_slices: int = 0
    count_sequences: int = 0
    _packs: PackTally = field(factory=PackTally)
    _histogram: dict[tuple[int, int], int] = field(factory=dict)

    def add(self, visited: Visited) -> None:
        """Count one object."""
        match visited.target:
            case DirectoryCap():
                self._add_directory(visited)
            case LitCap(data=data):
                self.count_literal_files += 1
                self.size_literal_files += len(data)
                self._add_size(len(data))
            case ChkCap(size=size):
                self._add_immutable(size)
            case SliceCap() as cap:
                self.count_slices += 1
                self._add_immutable(cap.size)
                self._packs.add(cap)
            case SequenceCap(size=size):
                self.count_sequences += 1
                self._add_immutable(size)
                for part in visited.stored_in or ():
                    if isinstance(part, SliceCap):
                        self._packs.add(part)
            case UnknownChild():
                self.count_unknown += 1
            case _:
                self.count_mutable_files += 1

    @property
    def count_files(self) -> int:
        """Files of all known kinds."""
        return self.count_literal_files + self.count_immutable_files + self.count_mutable_files

    @property
    def deep_size(self) -> int:
        """Bytes of immutable files and directories; literal and mutable files do not count."""
        return self.size_immutable_files + self.size_directories

    @property
    def size_files_histogram(self) -> list[list[int]]:
        """[least size, greatest size, count], ascending, of literal and immutable files."""
        return [[least, most, count] for (least, most), count in sorted(self._histogram.items())]

    def to_json(self) -> dict[str, object]:
        """The JSON form of 1.20's web API."""
        return {
            "api-version": 1,
            "count-immutable-files": self.count_immutable_files,
            "count-mutable-files": self.count_mutable_files,
            "count-literal-files": self.count_literal_files,
            "count-files": self.count_files,
            "count-directories": self.count_directories,
            "count-unknown": self.count_unknown,
            "size-immutable-files": self.size_immutable_files,
            "size-literal-files": self.size_literal_files,
            "size-directories": self.size_directories,
            "largest-directory": self.largest_directory,
            "largest-directory-children": self.largest_directory_children,
            "largest-immutable-file": self.largest_immutable_file,
            "size-files-histogram": self.size_files_histogram,
            **self._extents(),
        }

    @property
    def packs(self) -> PackTally:
        """The packs that contain slices."""
        return self._packs

    def _extents(self) -> dict[str, object]:
        """Keys that 1.20 does not have, present only if there is something to report. [spec extents 5]"""
        found: dict[str, object] = {}
        if self.count_slices:
            found["count-slices"] = self.count_slices
        if self.count_sequences:
            found["count-sequences"] = self.count_sequences
        if self._packs.count:
            found["count-packs"] = self._packs.count
            found["size-packs"] = self._packs.size
            found["live-bytes-packs"] = self._packs.live_bytes
            found["dead-bytes-packs"] = self._packs.size - self._packs.live_bytes
        return found

    def _add_immutable(self, size: int) -> None:
        self.count_immutable_files += 1
        self.size_immutable_files += size
        self.largest_immutable_file = max(self.largest_immutable_file, size)
        self._add_size(size)

    def _add_directory(self, visited: Visited) -> None:
        self.count_directories += 1
        if visited.size is not None:
            self.size_directories += visited.size
            self.largest_directory = max(self.largest_directory, visited.size)
        if visited.children is not None:
            self.largest_directory_children = max(self.largest_directory_children, len(visited.children))

    def _add_size(self, size: int) -> None:
        bucket = bucket_of(size)
        self._histogram[bucket] = self._histogram.get(bucket, 0) + 1


def bucket_of(size: int) -> tuple[int, int]:
    """The bucket of the histogram for a size: its least and its greatest size."""
    least = most = 0
    power = 1
    while size > most:
        power *= 10
        least, most = most + 1, isqrt(power)
    return least, most


@define
class Manifest:
    """Everything in a tree: paths with caps in walk order, storage indexes and verify caps, and statistics."""

    entries: list[tuple[Path, str | None]] = field(factory=list, repr=False)
    storage_indexes: set[str] = field(factory=set)
    verify_caps: set[str] = field(factory=set)
    stats: Stats = field(factory=Stats)

    def add(self, visited: Visited) -> None:
        """Add one object."""
        self.entries.append((visited.path, visited.cap))
        self.stats.add(visited)
        target = visited.target
        if isinstance(target, UnknownChild):
            return
        for each in (target, *(visited.stored_in or ())):
            if each.storage_index is not None:
                self.storage_indexes.add(encode(each.storage_index))
            verify = each.verify_cap()
            if verify is not None:
                self.verify_caps.add(verify.to_string())

    def to_json(self) -> dict[str, object]:
        """The JSON form of 1.20's web API; paths are lists of names."""
        return {
            "manifest": [[list(path), cap] for path, cap in self.entries],
            "verifycaps": sort_names(self.verify_caps),
            "storage-index": sort_names(self.storage_indexes),
            "stats": self.stats.to_json(),
        }
