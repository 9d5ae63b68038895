"""Intel's ISA-L through its C interface: multiplies a matrix with blocks over GF(2^8), and computes CRC-32.

Owns the search for the library, and the lifetime of the memory passed to its functions. It knows nothing of codes: callers
supply the matrices. The calls release the interpreter's lock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from grid.codec.isal_declarations import ffi as _ffi
from grid.crypto.buffer import Buffer
from grid.values import field, frozen

_TABLE_SIZE = 32
_LONGEST_CALL = 2**31 - 65536
"""Lengths are C ints."""

_ROWS_AT_ONCE = 6
"""Blocks that the library makes in one pass over the sources; more take further passes."""

_STRIP_BYTES = 384 * 1024
"""Bytes of all sources that fit in the processor's second-level cache until the next pass."""


@frozen
class MatrixTables:
    """A matrix of row_count rows and column_count columns in the library's form."""

    row_count: int
    column_count: int
    _tables: object = field(repr=False, eq=False)


class IsalLibrary:
    """One loaded libisal."""

    def __init__(self, path: str) -> None:
        """OSError or AttributeError if there is no libisal at the path."""
        self.path = path
        self._library = _ffi.dlopen(path)
        try:
            self._init_tables = self._library.ec_init_tables
            self._encode_data = self._library.ec_encode_data
            self._crc32 = self._library.crc32_gzip_refl
        except _ffi.error as problem:
            raise AttributeError(str(problem)) from None

    def make_tables(self, rows: Sequence[bytes]) -> MatrixTables:
        """Prepare the matrix for `multiply`: at least one row, all rows of equal length."""
        row_count, column_count = len(rows), len(rows[0])
        tables = _ffi.new("unsigned char[]", _TABLE_SIZE * row_count * column_count)
        matrix = _ffi.from_buffer("unsigned char[]", b"".join(rows))
        self._init_tables(column_count, row_count, matrix, tables)
        return MatrixTables(row_count, column_count, tables)

    def multiply(
        self, size: int, matrix: MatrixTables, sources: Sequence[Buffer], targets: Sequence[memoryview]
    ) -> None:
        """Fill the targets with the product of the matrix and the sources, byte by byte; all have `size` > 0 bytes.

        sources: column_count of them; targets: row_count of them, writable and separate from the sources. The caller
        must check counts and sizes. ValueError or BufferError if a target is not writable.
        """
        if not 0 < size <= _LONGEST_CALL or (len(targets), len(sources)) != (matrix.row_count, matrix.column_count):
            raise ValueError(f"{len(sources)} blocks of {size} bytes do not fit the matrix")
        # These objects keep the buffers in place until the last call is done.
        inputs = [_ffi.from_buffer("unsigned char[]", source) for source in sources]
        outputs = [_ffi.from_buffer("unsigned char[]", target, require_writable=True) for target in targets]
        step = _strip_size(size, matrix)
        for start in range(0, size, step):
            self._encode_data(
                min(step, size - start),
                matrix.column_count,
                matrix.row_count,
                matrix._tables,
                _ffi.new("unsigned char *[]", [block + start for block in inputs] if start else inputs),
                _ffi.new("unsigned char *[]", [block + start for block in outputs] if start else outputs),
            )

    def crc32(self, data: Buffer) -> int:
        """The CRC-32 of the data, as zlib computes it."""
        return int(self._crc32(0, _ffi.from_buffer("unsigned char[]", data), len(data)))


def _strip_size(size: int, matrix: MatrixTables) -> int:
    """Bytes of each block to process in one call, so that repeated reads come from a cache."""
    strips = -(-size * matrix.column_count // _STRIP_BYTES) if matrix.row_count > _ROWS_AT_ONCE else 1
    return -(-size // strips)


def load_isal() -> Iterator[IsalLibrary]:
    """The libraries that can be loaded, best first: the one bundled with pyeclib, then the system's."""
    for path in (*_bundled_paths(), "libisal.so.2", "libisal.2.dylib"):
        try:
            yield IsalLibrary(path)
        except (OSError, AttributeError):
            continue


@cache
def quick_crc32() -> Callable[[Buffer], int] | None:
    """A CRC-32 that is ten times as quick as zlib's; None without ISA-L."""
    return next((library.crc32 for library in load_isal()), None)


def _bundled_paths() -> list[str]:
    spec = find_spec("pyeclib")
    if spec is None or spec.origin is None:
        return []
    package = Path(spec.origin).parent
    found = [*package.parent.glob("pyeclib.libs/libisal*"), *package.glob(".dylibs/libisal*")]
    return sorted(str(path) for path in found)
