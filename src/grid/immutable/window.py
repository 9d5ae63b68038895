"""The kernel of a read: one call that turns k proven shares of some segments into plaintext.

Pure and safe on pool threads. Blocks are checked against proven leaves, decoded, checked again as ciphertext
against the cap's crypttext tree, and decrypted; nothing unproven comes out. [spec immutable 12]

Cost per segment: CPU: 2 hashed octets per octet of plaintext, the erasure code for missing primary blocks,
one AES pass. Memory: the plaintext, and missing primary blocks; received blocks are read in place.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence

from attrs import field, frozen

from grid.codec.erasure import primary_blocks
from grid.codec.room import unwiped
from grid.crypto.aes import CtrCipher
from grid.crypto.hashing import BLOCK_TAG, HASH_SIZE, LeafHasher, hash_leaves
from grid.errors import DamagedFileError
from grid.immutable.geometry import Geometry
from grid.ports import Buffer, ShareNumber

_block_hasher = LeafHasher(BLOCK_TAG)
_segment_hasher = LeafHasher(b"allmydata_crypttext_segment_v1")


@frozen(kw_only=True)
class Window:
    """Consecutive segments, and all that is needed to read them.

    blocks: k share numbers to the share's consecutive blocks, as one buffer. leaves: for each of these share
    numbers the proven block hashes, 32 octets a segment; crypttext_leaves likewise. key None: the ciphertext
    itself is wanted.
    """

    geometry: Geometry
    first_segment: int
    segment_count: int
    key: bytes | None = field(repr=False)
    blocks: Mapping[ShareNumber, Buffer] = field(repr=False)
    leaves: Mapping[ShareNumber, bytes] = field(repr=False)
    crypttext_leaves: bytes = field(repr=False)


@frozen(kw_only=True)
class WindowResult:
    """text: the plaintext of the segments, empty if any block is bad; bad: share number to segments of it."""

    text: Buffer = field(repr=False)
    bad: Mapping[ShareNumber, Sequence[int]]


def window_sizes(geometry: Geometry, first_segment: int, segment_count: int) -> tuple[int, int]:
    """(octets of one share's blocks, octets of text) in a run of segments."""
    last = first_segment + segment_count - 1
    blocks = (segment_count - 1) * geometry.block_size + geometry.block_length(last)
    text = (segment_count - 1) * geometry.segment_size + geometry.segment_length(last)
    return blocks, text


def open_window(window: Window) -> WindowResult:
    """The plaintext of a window, or which blocks are bad.

    DamagedFileError: all blocks are proven, and yet decode to something else than the file: its uploader's fault.
    """
    geometry = window.geometry
    views = {number: memoryview(buffer) for number, buffer in window.blocks.items()}
    spans = _block_spans(window)
    bad: dict[ShareNumber, list[int]] = {}
    whole = all(number in views for number in range(geometry.k))
    if not whole:
        for index, span in enumerate(spans):
            hashes = _block_hasher.hash_row([view[span] for view in views.values()])
            _compare_blocks(window, index, hashes, bad)
        if bad:
            return WindowResult(text=b"", bad=bad)
    text, wrong = _open_segments(window, views, spans, bad if whole else None)
    if bad:
        return WindowResult(text=b"", bad=bad)
    if wrong is not None:
        raise DamagedFileError(
            f"segment {wrong}: the shares are proven but do not decode to the file; it was damaged when uploaded"
        )
    return WindowResult(text=text, bad={})


def _open_segments(
    window: Window,
    views: Mapping[ShareNumber, memoryview],
    spans: Sequence[slice],
    bad: dict[ShareNumber, list[int]] | None,
) -> tuple[memoryview, int | None]:
    """The plaintext, and the first segment that is not the file's, if any; what is wrong is not decrypted, and then the
    text is not whole.

    bad: takes up bad blocks; None if all are good. While they are not known to be, nothing may have to be decoded: then
    each segment is hashed beside its blocks, which are the same octets. Else two segments are, side by side.
    """
    geometry, step = window.geometry, 1 if bad is not None else 2
    text, wrong = unwiped(window_sizes(geometry, window.first_segment, window.segment_count)[1]), None
    for first in range(0, len(spans), step):
        segments, leaves = [], []
        for index in range(first, min(first + step, len(spans))):
            runs = primary_blocks(
                geometry.k, geometry.n, {number: view[spans[index]] for number, view in views.items()}
            )
            segments.append(_cut(runs, geometry.segment_length(window.first_segment + index)))
            leaves.append((_segment_hasher, segments[-1]))
        if bad is not None:
            leaves += [(_block_hasher, [view[spans[first]]]) for view in views.values()]
        hashes = hash_leaves(leaves)
        if bad is not None:
            _compare_blocks(window, first, hashes[HASH_SIZE:], bad)
        for index, pieces in enumerate(segments, first):
            leaf = hashes[HASH_SIZE * (index - first) : HASH_SIZE * (index - first + 1)]
            if not hmac.compare_digest(leaf, _leaf(window.crypttext_leaves, index)):
                wrong = window.first_segment + index if wrong is None else wrong
            elif not bad:
                _decrypt(window, index, pieces, text)
    return text, wrong


def _block_spans(window: Window) -> list[slice]:
    """Where the block of each segment lies in a share's octets of the window."""
    size = window.geometry.block_size
    numbers = range(window.segment_count)
    lengths = [window.geometry.block_length(window.first_segment + index) for index in numbers]
    return [slice(index * size, index * size + length) for index, length in zip(numbers, lengths, strict=True)]


def _compare_blocks(window: Window, index: int, hashes: bytes, bad: dict[ShareNumber, list[int]]) -> None:
    """hashes: of each share's block of the segment, in the order of window.blocks."""
    for position, number in enumerate(window.blocks):
        if not hmac.compare_digest(_leaf(hashes, position), _leaf(window.leaves[number], index)):
            bad.setdefault(number, []).append(window.first_segment + index)


def _cut(runs: Sequence[memoryview], length: int) -> list[memoryview]:
    """The runs without the padding behind the first `length` octets."""
    pieces = []
    for run in runs:
        if length <= 0:
            break
        pieces.append(run[:length])
        length -= len(run)
    return pieces


def _decrypt(window: Window, index: int, pieces: Sequence[memoryview], target: memoryview) -> None:
    offset = index * window.geometry.segment_size
    cipher = None
    if window.key is not None:
        cipher = CtrCipher(window.key, window.first_segment * window.geometry.segment_size + offset)
    for piece in pieces:
        part = target[offset : offset + len(piece)]
        if cipher is None:
            part[:] = piece
        else:
            cipher.crypt_into(piece, part)
        offset += len(piece)


def _leaf(row: bytes, index: int) -> bytes:
    return row[HASH_SIZE * index : HASH_SIZE * (index + 1)]
