"""The erasure code: any k of N blocks restore the k runs of a segment. [spec immutable 6]

Owns the choice of the engine: Intel's ISA-L if it is installed and agrees
with zfec, otherwise zfec. Both make the same blocks. There is one coder per k and N; it holds no data and may be
used by several threads at once.

Cost: CPU: k multiplications per byte of each new block. A segment of 1 MiB at 3-of-10 takes 0.1-0.3 ms with
ISA-L, which lets other threads run, and 6 ms with zfec, which does not. Memory: tables of 32 * k bytes per
new block (at most 512 KiB per table), of which the latest few are kept; zfec copies a megabyte at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Protocol, TypeVar

import zfec

from grid.codec.buffers import unwiped
from grid.codec.galois import recovery_rows
from grid.codec.isal import IsalLibrary, MatrixTables, load_isal
from grid.crypto.buffer import Buffer
from grid.limits import MAX_SHARES

K = TypeVar("K", bound=int)

_KEPT_CODERS = 32
_KEPT_TABLES = 64

_ZFEC_BYTES = 2**20
"""Bytes of all sources to pass to zfec at once: it keeps the interpreter's lock, and makes copies."""

_passed_over: set[str] = set()
"""Engines that are disabled."""


class Erasure(Protocol):
    """The erasure code for one k and N. Blocks 0..k-1 are the runs themselves."""

    k: int
    n: int

    def encode_into(self, runs: Sequence[Buffer], parity: Sequence[memoryview]) -> None:
        """Fill blocks k..n-1. runs: k buffers of equal size; parity: n - k writable buffers of that size.

        The runs are read in place. ValueError if counts or sizes are wrong.
        """

    def decode_into(
        self, blocks: Sequence[Buffer], share_numbers: Sequence[int], missing: Sequence[memoryview]
    ) -> None:
        """Fill the runs that are not among the blocks.

        blocks: any k of equal size, in any order; share_numbers: their numbers, all different. missing: writable buffers
        of that size, one for each of 0..k-1 that is not in share_numbers, ascending. ValueError if counts,
        numbers or sizes are wrong.
        """


@lru_cache(_KEPT_CODERS)
def erasure(k: int, n: int) -> Erasure:
    """The coder for k-of-n; ValueError unless 1 <= k <= n <= 256."""
    if not 1 <= k <= n <= MAX_SHARES:
        raise ValueError(f"there is no {k}-of-{n} erasure code")
    library = _engine()
    return ZfecErasure(k, n) if library is None else IsalErasure(library, k, n)


def primary_blocks(k: int, n: int, blocks: Mapping[K, memoryview]) -> list[memoryview]:
    """The k runs; missing ones are decoded. blocks: any k of n blocks of equal size, by number; ValueError."""
    held: dict[int, memoryview] = dict(blocks.items())
    missing = [number for number in range(k) if number not in held]
    if missing:
        length = len(next(iter(held.values())))
        room = unwiped(length * len(missing))
        decoded = [room[index * length : (index + 1) * length] for index in range(len(missing))]
        erasure(k, n).decode_into(list(held.values()), list(held), decoded)
        held |= zip(missing, decoded, strict=True)
    return [held[number] for number in range(k)]


def codec_name() -> str:
    """The engine in use: isal or zfec."""
    return "zfec" if _engine() is None else "isal"


def use_zfec() -> None:
    """Use zfec in this process from now on, as if there were no ISA-L; for comparisons.

    Coders that erasure() has returned before do not change.
    """
    _passed_over.add("isal")
    _engine.cache_clear()
    erasure.cache_clear()


class ZfecErasure:
    """The erasure code computed by zfec."""

    def __init__(self, k: int, n: int) -> None:
        self.k, self.n = k, n
        self._encoder = zfec.Encoder(k, n)
        self._decoder = zfec.Decoder(k, n)

    def encode_into(self, runs: Sequence[Buffer], parity: Sequence[memoryview]) -> None:
        """See Erasure. Copies part of the parity at a time."""
        size = _common_size(runs, self.k, parity, self.n - self.k)
        for strip in self._strips(size if parity else 0):
            made = self._encoder.encode(_cut(runs, strip), tuple(range(self.k, self.n)))
            for target, block in zip(parity, made, strict=True):
                target[strip] = block

    def decode_into(
        self, blocks: Sequence[Buffer], share_numbers: Sequence[int], missing: Sequence[memoryview]
    ) -> None:
        """See Erasure. Copies part of the missing runs at a time."""
        wanted = _missing_numbers(share_numbers, self.k, self.n)
        size = _common_size(blocks, self.k, missing, len(wanted))
        for strip in self._strips(size if wanted else 0):
            runs = self._decoder.decode(_cut(blocks, strip), tuple(share_numbers))
            for target, number in zip(missing, wanted, strict=True):
                target[strip] = runs[number]

    def _strips(self, size: int) -> list[slice]:
        """Slices to code separately, because the code works byte by byte."""
        step = max(1, _ZFEC_BYTES // self.k)
        return [slice(start, min(start + step, size)) for start in range(0, size, step)]


class IsalErasure:
    """The erasure code computed by ISA-L, directly on the caller's buffers."""

    def __init__(self, library: IsalLibrary, k: int, n: int) -> None:
        self.k, self.n = k, n
        self._library = library
        self._tables = library.make_tables(recovery_rows(range(k), range(k, n))) if n > k else None

    def encode_into(self, runs: Sequence[Buffer], parity: Sequence[memoryview]) -> None:
        """See Erasure. Copies nothing."""
        size = _common_size(runs, self.k, parity, self.n - self.k)
        if size and self._tables is not None:
            self._library.multiply(size, self._tables, runs, parity)

    def decode_into(
        self, blocks: Sequence[Buffer], share_numbers: Sequence[int], missing: Sequence[memoryview]
    ) -> None:
        """See Erasure. Copies nothing."""
        wanted = _missing_numbers(share_numbers, self.k, self.n)
        size = _common_size(blocks, self.k, missing, len(wanted))
        if size and wanted:
            # Ascending, so that a set of shares has one table, whatever the order of its blocks.
            order = sorted(range(self.k), key=share_numbers.__getitem__)
            tables = _decode_tables(self._library, tuple(share_numbers[place] for place in order), wanted)
            self._library.multiply(size, tables, [blocks[place] for place in order], missing)


@lru_cache(_KEPT_TABLES)
def _decode_tables(library: IsalLibrary, have: tuple[int, ...], wanted: tuple[int, ...]) -> MatrixTables:
    return library.make_tables(recovery_rows(have, wanted))


def _cut(buffers: Sequence[Buffer], strip: slice) -> tuple[memoryview, ...]:
    return tuple(memoryview(buffer)[strip] for buffer in buffers)


def _common_size(sources: Sequence[Buffer], k: int, targets: Sequence[memoryview], target_count: int) -> int:
    """The size of all buffers; ValueError if their number is wrong or their sizes differ."""
    if len(sources) != k or len(targets) != target_count:
        raise ValueError(f"{len(sources)} blocks for {len(targets)}, where {k} for {target_count} are coded")
    size = len(sources[0])
    for block in sources:
        if len(block) != size:
            raise ValueError(f"blocks of {size} and of {len(block)} bytes are not of one segment")
    for block in targets:
        if len(block) != size:
            raise ValueError(f"a block of {size} bytes does not go into {len(block)}")
    return size


def _missing_numbers(share_numbers: Sequence[int], k: int, n: int) -> tuple[int, ...]:
    """The primary blocks that are not among the share numbers; ValueError unless these are k different numbers below n."""
    have = frozenset(share_numbers)
    if len(share_numbers) != k or len(have) != k or min(have) < 0 or max(have) >= n:
        raise ValueError(f"{sorted(share_numbers)} are not {k} different shares of {n}")
    return tuple(number for number in range(k) if number not in have)


@lru_cache(1)
def _engine() -> IsalLibrary | None:
    """An ISA-L that makes the same blocks as zfec, or None."""
    if "isal" in _passed_over:
        return None
    for library in load_isal():
        if _agrees_with_zfec(library):
            return library
    return None


def _agrees_with_zfec(library: IsalLibrary) -> bool:
    """Whether the library encodes and decodes some blocks of awkward sizes like zfec; takes some 100 us."""
    for k, n, size in ((1, 3, 1), (3, 10, 31), (5, 13, 333)):
        pattern = bytes((7 * index * index + 11 * index + size) % 251 for index in range(k * size))
        runs = [pattern[start : start + size] for start in range(0, k * size, size)]
        made: list[list[bytearray]] = []
        for coder in (ZfecErasure(k, n), IsalErasure(library, k, n)):
            parity = [bytearray(size) for _ in range(n - k)]
            coder.encode_into(runs, [memoryview(block) for block in parity])
            restored = [bytearray(size) for _ in range(min(k, n - k))]
            blocks = ([bytes(block) for block in parity] + runs)[:k]
            numbers = [*range(k, n), *range(k)][:k]
            wanted = _missing_numbers(numbers, k, n)
            coder.decode_into(blocks, numbers, [memoryview(block) for block in restored[: len(wanted)]])
            made.append(parity + restored)
        if made[0] != made[1]:
            return False
    return True
