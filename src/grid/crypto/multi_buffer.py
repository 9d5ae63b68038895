"""SHA-256 of many messages side by side, in C. multi_buffer.c is built with the package if there is a compiler.

Owns the search for the library, its check against hashlib, and the lifetime of the memory passed to it. It knows nothing
of tags. Calls let other threads run. Without the library, or on a processor without SHA instructions,
hashlib does the work. A lane is the C code's slot for one message in progress.

Cost: CPU: two messages of similar size take 0.55 of the time of one after the other; 2 us per call and 1 us per piece.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from grid.crypto.buffer import Buffer

_DIGEST_SIZE = 32

_passed_over: set[str] = set()
"""Libraries that are disabled."""


class Stream:
    """A message in progress: the common beginning of several messages, or one that takes data beside them."""

    __slots__ = ("_state",)

    def __init__(self, state: object) -> None:
        self._state = state


class MultiBufferLibrary:
    """The loaded library."""

    def __init__(self, path: str) -> None:
        """OSError or AttributeError if there is no library at the path or the processor cannot run it."""
        from grid.crypto.multi_buffer_declarations import ffi

        self._ffi = ffi
        self._library = ffi.dlopen(path)
        try:
            usable = self._library.lanes_usable()
            self._start, self._hash = self._library.lanes_start, self._library.lanes_hash
            self._hash_rows, self._join_pairs = self._library.lanes_hash_rows, self._library.lanes_join_pairs
            self._stream_size = self._library.lanes_stream_size()
        except ffi.error as problem:
            raise AttributeError(str(problem)) from None
        if not usable:
            raise OSError("this processor has no SHA instructions")

    def stream(self, front: Buffer = b"") -> Stream:
        """A message that begins with these bytes."""
        state = self._ffi.new("unsigned char[]", self._stream_size)
        self._start(state)
        stream = Stream(state)
        if len(front):
            self.hash_messages((), (), running=stream, data=front)
        return stream

    def hash_messages(
        self,
        prefixes: Sequence[Stream],
        messages: Sequence[Sequence[Buffer]],
        *,
        running: Stream | None = None,
        data: Buffer = b"",
    ) -> bytes:
        """Double SHA-256 of each message, joined. A message is its prefix and then its pieces.

        Prefixes do not change, and several threads may use them at once. running: takes the data at the same time, and
        advances; one thread at a time.
        """
        ffi = self._ffi
        digests = bytearray(_DIGEST_SIZE * len(messages))
        pieces = [piece for message in messages for piece in message]
        # These objects keep the buffers in place until the call is done.
        pointers = [ffi.from_buffer("unsigned char[]", piece) for piece in pieces]
        self._hash(
            ffi.NULL if running is None else running._state,
            ffi.from_buffer("unsigned char[]", data),
            len(data),
            len(messages),
            ffi.new("unsigned char *[]", [prefix._state for prefix in prefixes]),
            ffi.new("size_t[]", [len(message) for message in messages]),
            ffi.new("unsigned char *[]", pointers),
            ffi.new("size_t[]", [len(pointer) for pointer in pointers]),
            ffi.from_buffer("unsigned char[]", digests, require_writable=True),
        )
        return bytes(digests)

    def hash_rows(
        self,
        cut: tuple[int, int, int],
        shares: Sequence[Buffer],
        leaf: Stream,
        columns: Sequence[Buffer],
        segment: Stream,
        total: int,
    ) -> tuple[bytes, bytes]:
        """The hash of each piece, share after share; and the hash of each row's joined pieces of the columns.

        cut: (count, size, last size) of the pieces of every buffer. total: bytes of all rows of the columns together; what the
        last row has beyond that is ignored. Each hash is as in hash_messages. The caller must check that the buffers have the length
        in `cut`, and that the total ends in the last row.
        """
        ffi = self._ffi
        count = cut[0]
        leaves = bytearray(_DIGEST_SIZE * count * len(shares))
        segments = bytearray(_DIGEST_SIZE * count if columns else 0)
        # These objects keep the buffers in place until the call is done.
        pointers = [[ffi.from_buffer("unsigned char[]", run) for run in runs] for runs in (shares, columns)]
        self._hash_rows(
            *cut,
            leaf._state,
            len(shares),
            ffi.new("unsigned char *[]", pointers[0]),
            ffi.from_buffer("unsigned char[]", leaves, require_writable=True),
            segment._state,
            len(columns),
            ffi.new("unsigned char *[]", pointers[1]),
            total,
            ffi.from_buffer("unsigned char[]", segments, require_writable=True),
        )
        return bytes(leaves), bytes(segments)

    def rows_above(self, row: Buffer) -> bytes:
        """All rows of a Merkle tree above this one, joined, the root last. row: 2, 4, 8 ... 32-byte hashes. [spec immutable 7]"""
        size, start = len(row), 0
        rows = bytearray(size - _DIGEST_SIZE)
        first = self._ffi.from_buffer("unsigned char[]", rows, require_writable=True)
        children = self._ffi.from_buffer("unsigned char[]", row)
        while size > _DIGEST_SIZE:
            size //= 2
            parents = first + start
            self._join_pairs(children, size // _DIGEST_SIZE, parents)
            children, start = parents, start + size
        return bytes(rows)


@cache
def multi_buffer() -> MultiBufferLibrary | None:
    """The library, if it exists and agrees with hashlib."""
    for path in _paths():
        if path in _passed_over:
            continue
        try:
            library = MultiBufferLibrary(path)
        except (OSError, AttributeError):
            continue
        if _proves_itself(library):
            return library
    return None


def use_multi_buffer(wanted: bool) -> None:
    """Set whether this process uses the library, if it exists; for comparisons."""
    if wanted:
        _passed_over.clear()
    else:
        _passed_over.update(_paths())
    multi_buffer.cache_clear()


def _paths() -> list[str]:
    folder = Path(__file__).parent
    found = (folder / f"_lanes{suffix}" for suffix in EXTENSION_SUFFIXES)
    return [str(path) for path in found if path.exists()]


def _proves_itself(library: MultiBufferLibrary) -> bool:
    front, text = b"front" * 13, bytes(range(256)) * 3
    messages = [[text[:size], text[size : 2 * size]] for size in (0, 1, 27, 62, 64, 200, 384)]
    running = library.stream(b"run")
    prefixes = [library.stream(front)] * len(messages)
    made = library.hash_messages(prefixes, messages, running=running, data=text)
    right = [_double(front + b"".join(message)) for message in messages]
    runs = [text[:70], text[70:140], text[140:210]]
    rows = [[run[0:30] for run in runs], [run[30:60] for run in runs], [run[60:70] for run in runs]]
    leaves, segments = library.hash_rows((3, 30, 10), runs, prefixes[0], runs, prefixes[0], 205)
    joined = [b"".join(row)[: 205 - 90 * index] for index, row in enumerate(rows)]
    head, tail = b"25:Merkle tree internal node,32:", b","
    row = above = text[:256]
    while len(row) > _DIGEST_SIZE:
        starts = range(0, len(row), 64)
        row = b"".join(_double(head + row[i : i + 32] + b",32:" + row[i + 32 : i + 64] + tail) for i in starts)
        above += row
    return (
        made == b"".join(right)
        and leaves == b"".join(_double(front + row[share]) for share in range(3) for row in rows)
        and segments == b"".join(_double(front + row) for row in joined)
        and library.hash_messages([running], [[]]) == _double(b"run" + text)
        and library.rows_above(text[:256]) == above[256:]
    )


def _double(text: bytes) -> bytes:
    return sha256(sha256(text).digest()).digest()
