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

from grid.codec.erasure import erasure
from grid.crypto.aes import CtrCipher
from grid.crypto.hashing import TaggedHasher, block_hash
from grid.errors import DamagedFileError
from grid.immutable.geometry import Geometry
from grid.ports import Buffer, ShareNumber

_SEGMENT_TAG = b"allmydata_crypttext_segment_v1"


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
    bad = _bad_blocks(window)
    if bad:
        return WindowResult(text=b"", bad=bad)
    geometry = window.geometry
    _, text_size = window_sizes(geometry, window.first_segment, window.segment_count)
    text = bytearray(text_size)
    target = memoryview(text)
    cipher = None
    if window.key is not None:
        cipher = CtrCipher(window.key, window.first_segment * geometry.segment_size)
    views = {number: memoryview(buffer) for number, buffer in window.blocks.items()}
    offset = 0
    for index in range(window.segment_count):
        segment = window.first_segment + index
        length = geometry.segment_length(segment)
        start = index * geometry.block_size
        stop = start + geometry.block_length(segment)
        runs = _primary_runs(geometry, {number: view[start:stop] for number, view in views.items()})
        pieces = _cut(runs, length)
        _check_segment(pieces, window.crypttext_leaves[32 * index : 32 * index + 32], segment)
        for piece in pieces:
            part = target[offset : offset + len(piece)]
            if cipher is None:
                part[:] = piece
            else:
                cipher.crypt_into(piece, part)
            offset += len(piece)
    return WindowResult(text=text, bad={})


def _bad_blocks(window: Window) -> dict[ShareNumber, list[int]]:
    bad: dict[ShareNumber, list[int]] = {}
    geometry = window.geometry
    for number, buffer in window.blocks.items():
        view, leaves = memoryview(buffer), window.leaves[number]
        for index in range(window.segment_count):
            segment = window.first_segment + index
            start = index * geometry.block_size
            leaf = block_hash(view[start : start + geometry.block_length(segment)])
            if not hmac.compare_digest(leaf, leaves[32 * index : 32 * index + 32]):
                bad.setdefault(number, []).append(segment)
    return bad


def _primary_runs(geometry: Geometry, blocks: Mapping[ShareNumber, memoryview]) -> list[memoryview]:
    """The k primary blocks of a segment, decoded where they are missing."""
    k = geometry.k
    missing = [number for number in range(k) if number not in blocks]
    if not missing:
        return [blocks[ShareNumber(number)] for number in range(k)]
    length = len(next(iter(blocks.values())))
    room = memoryview(bytearray(length * len(missing)))
    decoded = [room[index * length : (index + 1) * length] for index in range(len(missing))]
    numbers = list(blocks)
    erasure(k, geometry.n).decode_into([blocks[number] for number in numbers], numbers, decoded)
    found = dict(zip(missing, decoded, strict=True))
    return [found[number] if number in found else blocks[ShareNumber(number)] for number in range(k)]


def _cut(runs: Sequence[memoryview], length: int) -> list[memoryview]:
    """The runs without the padding behind the first `length` octets."""
    pieces = []
    for run in runs:
        if length <= 0:
            break
        pieces.append(run[:length])
        length -= len(run)
    return pieces


def _check_segment(pieces: Sequence[memoryview], leaf: bytes, segment: int) -> None:
    hasher = TaggedHasher(_SEGMENT_TAG)
    for piece in pieces:
        hasher.update(piece)
    if not hmac.compare_digest(hasher.digest(), leaf):
        raise DamagedFileError(
            f"segment {segment}: the shares are proven but do not decode to the file; it was damaged when uploaded"
        )
