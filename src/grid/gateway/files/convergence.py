"""The convergent key of a body, made while the body arrives, so that it is read only once more. [spec immutable 3]

A key depends on the segment size, and so on the size of the file; where that is not known yet, the file is taken to be
long. If it turns out to be short, the key is made the usual way, which is cheap then.
"""

from __future__ import annotations

from grid.immutable.put import LIT_SIZE, Encoding
from grid.immutable.share.encode import convergent_hasher
from grid.immutable.share.geometry import Geometry
from grid.ports import Buffer


class ArrivingKey:
    """Hashes a body as it arrives. One call at a time, on any thread."""

    def __init__(self, secret: bytes, encoding: Encoding, size: int | None) -> None:
        """secret: the convergence secret. size: bytes that are to come, None if nobody said."""
        self._encoding = encoding
        self._geometry = self._of_size(max(encoding.max_segment_size if size is None else size, LIT_SIZE + 1))
        self._hasher = convergent_hasher(secret, self._geometry)
        self._size = 0

    def update(self, data: Buffer) -> None:
        """More of the body, in order."""
        self._hasher.update(data)
        self._size += len(data)

    def finish(self) -> bytes | None:
        """The key of all that came; None if it came to another size than was expected, and the key is another one."""
        if self._size <= LIT_SIZE or self._of_size(self._size).segment_size != self._geometry.segment_size:
            return None
        return self._hasher.digest(16)

    def _of_size(self, size: int) -> Geometry:
        encoding = self._encoding
        return Geometry.of_file(size, encoding.k, encoding.n, encoding.max_segment_size)
