"""An immutable share during its upload: a file of full length below incoming/. Blocking.

Only one thread may use it at a time; the owner ensures that. Nothing is visible until `finish` has moved the file to its place.
If a crash comes first, the next start removes everything. [spec storage-server 3, 8.2]
Cost of a write: one system call; if the file is not kept open, three, and a sync if the store is durable. The bytes are
not copied.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from threading import Lock

from twisted.logger import Logger

from grid.errors import ConflictError, ConflictingWriteError, DataTooLargeError, FormatError, NoSpaceError
from grid.limits import FEW_UPLOAD_SPANS, MAX_UPLOAD_SPANS, MOST_UPLOAD_SPANS
from grid.ports import Buffer, ShareNumber
from grid.storage.files.containers import HEADER_SIZE, pack_header
from grid.storage.files.disk import Disk, Handle
from grid.storage.files.leases import Lease, pack_share_lease
from grid.storage.files.paths import (
    incoming_directory,
    incoming_path,
    incoming_prefix,
    prefix_directory,
    share_directory,
    share_path,
)

WRITEBACK_SIZE = 4 * 2**20
"""Start writing to the medium after this many bytes, so that the final sync has little left to do."""
_COMPARE_SIZE = 2**20
_ATTEMPTS = 20

log = Logger()


class SpanRoom:
    """The spans of all unfinished shares of a server, which take memory until the shares are over. Safe on any thread."""

    def __init__(self) -> None:
        self._taken = 0
        self._lock = Lock()

    @property
    def limit(self) -> int:
        """How many a share may have."""
        return MAX_UPLOAD_SPANS if self._taken < MOST_UPLOAD_SPANS else FEW_UPLOAD_SPANS

    def take(self, count: int) -> None:
        """Add that many spans; negative: give them back."""
        with self._lock:
            self._taken += count


class IncomingShare:
    """An unfinished share of `size` bytes. name: of its storage index. spans: of all shares of the server."""

    def __init__(
        self,
        disk: Disk,
        name: str,
        share_number: ShareNumber,
        size: int,
        spans: SpanRoom,
        *,
        durable: bool,
        keep_open: bool,
    ) -> None:
        self.name = name
        self.share_number = share_number
        self.size = size
        self._disk = disk
        self._durable = durable
        self._keep_open = keep_open
        self._handle: Handle | None = None
        self._spans = spans
        self._written = Spans()
        self._unsent_size = 0
        self._failed = False

    def create(self, lease: Lease) -> None:
        """Create the file with its header, a hole and the uploader's lease. OSError leaves nothing behind."""
        make_directories(self._disk, incoming_prefix(self.name), incoming_directory(self.name))
        handle = create_anew(self._disk, self._path)
        try:
            self._disk.write(handle, 0, [pack_header(self.size)])
            self._disk.write(handle, HEADER_SIZE + self.size, [pack_share_lease(lease)])
        except OSError:
            self._disk.close_file(handle)
            self.discard()
            raise
        if self._keep_open:
            self._handle = handle
        else:
            self._disk.close_file(handle)

    def write(self, offset: int, pieces: Sequence[Buffer]) -> None:
        """Store all pieces, or raise and count none of them.

        ConflictingWriteError: bytes differ from those written before. DataTooLargeError. OSError: this share is lost.
        """
        if self._failed:
            raise NoSpaceError("an earlier write to this share failed")
        end = offset + sum(map(len, pieces))
        try:
            handle = self._open()
            try:
                for begin, stop in self._written.overlap(offset, end):
                    self._compare(handle, offset, pieces, (begin, stop))
                if end > self.size:
                    raise DataTooLargeError(f"bytes {offset}-{end} do not fit a share of {self.size}")
                self._store(handle, offset, end, pieces)
            finally:
                self._release(handle)
        except OSError:
            self._failed = True
            raise

    def missing(self) -> list[Span]:
        """The half-open spans that are not written yet."""
        return self._written.missing(self.size)

    def sync(self) -> None:
        """Return when the file's bytes are durable; OSError or NoSpaceError if they may not be."""
        if self._failed:
            raise NoSpaceError("an earlier write to this share failed")
        if not self._durable:
            return
        handle = self._open()
        try:
            self._disk.sync_file(handle)
        finally:
            self._release(handle)

    def finish(self) -> None:
        """Give the share its final name; ConflictError if another file has it; OSError."""
        self._close()
        place = share_path(self.name, self.share_number)
        if self._disk.exists(place):
            raise ConflictError(f"there is a share {self.share_number} already")
        try:
            self._disk.rename(self._path, place)
        except FileNotFoundError:
            make_directories(self._disk, prefix_directory(self.name), share_directory(self.name))
            self._disk.rename(self._path, place)

    def discard(self) -> None:
        """Remove the file if it exists. Failures are logged, and the next start retries."""
        try:
            self._close()
            self._disk.unlink(self._path)
        except FileNotFoundError:
            pass
        except OSError as error:
            log.warn("{path} could not be removed: {reason}", path=self._path, reason=error.strerror)

    @property
    def _path(self) -> str:
        return incoming_path(self.name, self.share_number)

    def _open(self) -> Handle:
        if self._handle is not None:
            return self._handle
        return self._disk.open_file(self._path, writable=True)

    def _release(self, handle: Handle) -> None:
        if handle is not self._handle:
            self._disk.close_file(handle)

    def _close(self) -> None:
        written, self._written = self._written, Spans()
        self._spans.take(-len(written))
        handle, self._handle = self._handle, None
        if handle is not None:
            self._disk.close_file(handle)

    def _store(self, handle: Handle, offset: int, end: int, pieces: Sequence[Buffer]) -> None:
        before, most = len(self._written), self._spans.limit
        if before >= most:
            raise FormatError(f"a share written in more than {most} separate pieces")
        self._disk.write(handle, HEADER_SIZE + offset, pieces)
        self._written.add(offset, end)
        self._spans.take(len(self._written) - before)
        self._unsent_size += end - offset
        if not self._durable:
            return
        if self._handle is None:
            # If no open file waits for it, the system may forget that a write failed.
            self._disk.sync_file(handle)
        elif self._unsent_size >= WRITEBACK_SIZE:
            self._unsent_size = 0
            self._disk.start_writeback(handle)

    def _compare(self, handle: Handle, offset: int, pieces: Sequence[Buffer], span: Span) -> None:
        begin, end = span
        for piece in pieces:
            first, last = max(begin, offset), min(end, offset + len(piece))
            for start in range(first, last, _COMPARE_SIZE):
                stop = min(last, start + _COMPARE_SIZE)
                held = self._disk.read(handle, HEADER_SIZE + start, stop - start)
                if held != bytes(memoryview(piece)[start - offset : stop - offset]):
                    raise ConflictingWriteError(f"Chunk {begin}-{end} doesn't match already written data.")
            offset += len(piece)


def make_directories(disk: Disk, *paths: str) -> None:
    """Create the directories that do not exist, outermost first; OSError."""
    for attempt in range(_ATTEMPTS):
        try:
            for path in paths:
                _make_directory(disk, path)
        except FileNotFoundError:
            # Another thread found the outer one empty and removed it meanwhile.
            if attempt == _ATTEMPTS - 1:
                raise
        else:
            return


def _make_directory(disk: Disk, path: str) -> None:
    try:
        disk.make_directory(path)
    except FileExistsError:
        pass


def create_anew(disk: Disk, path: str) -> Handle:
    """Create and open a file, replacing one of that name that an earlier removal failed to remove."""
    try:
        return disk.create_file(path)
    except FileExistsError:
        disk.unlink(path)
        return disk.create_file(path)


def remove_if_empty(disk: Disk, *paths: str) -> None:
    """Remove the directories that are empty, innermost first."""
    for path in paths:
        try:
            disk.remove_directory(path)
        except FileNotFoundError:
            continue
        except OSError:
            return


Span = tuple[int, int]
"""(begin, end), end exclusive."""


class Spans:
    """Disjoint, ordered spans that do not touch. All operations are logarithmic, except for moving list items."""

    __slots__ = ("_begins", "_ends")

    def __init__(self) -> None:
        self._begins: list[int] = []
        self._ends: list[int] = []

    def __len__(self) -> int:
        return len(self._begins)

    def __iter__(self) -> Iterator[Span]:
        return iter(zip(self._begins, self._ends, strict=True))

    def overlap(self, begin: int, end: int) -> list[Span]:
        """The parts of [begin, end) that are in the set, ascending."""
        first = bisect_right(self._ends, begin)
        last = bisect_left(self._begins, end)
        return [(max(begin, self._begins[i]), min(end, self._ends[i])) for i in range(first, last)]

    def add(self, begin: int, end: int) -> None:
        """Add [begin, end) to the set; an empty span adds nothing."""
        if begin >= end:
            return
        first = bisect_left(self._ends, begin)
        last = bisect_right(self._begins, end)
        if first < last:
            begin, end = min(begin, self._begins[first]), max(end, self._ends[last - 1])
        self._begins[first:last] = [begin]
        self._ends[first:last] = [end]

    def missing(self, size: int) -> list[Span]:
        """The parts of [0, size) that are not in the set, ascending."""
        edges = [0, *(edge for span in zip(self._begins, self._ends, strict=True) for edge in span), size]
        pairs = zip(edges[::2], edges[1::2], strict=True)
        return [(begin, end) for begin, end in pairs if begin < end]
