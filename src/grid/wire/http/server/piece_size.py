"""How much of a long body one request reads and writes at once. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

LARGEST_PIECE = 1024 * 1024
SMALLEST_PIECE = 64 * 1024
LEAST_HELD = 16 * 1024
"""What any request may hold, however much others do."""


class PieceSizer:
    """Divides a number of bytes among the requests being served: each holds at most one piece of its body."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._active = 0
        self._free = total

    @property
    def active(self) -> int:
        """Requests being served."""
        return self._active

    @property
    def piece_size(self) -> int:
        """Bytes that one request should ask for now; never so few that the calls cost more than the bytes."""
        return max(SMALLEST_PIECE, min(LARGEST_PIECE, self._total // max(1, self._active)))

    @contextmanager
    def held(self) -> Iterator[int]:
        """Hold a piece of a body: at most that many bytes, until this is left."""
        size = max(LEAST_HELD, min(self.piece_size, self._free // 2))
        self._free -= size
        try:
            yield size
        finally:
            self._free += size

    def __enter__(self) -> None:
        self._active += 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._active -= 1
