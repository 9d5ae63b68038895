"""Whole files as their shares, encoded and decoded in memory with only the pure modules."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from grid.caps import ChkCap
from grid.codec.erasure import erasure
from grid.crypto.aes import CtrCipher
from grid.immutable.share.encode import Encoder, FinishedEncoding, convergent_hasher
from grid.immutable.share.geometry import Geometry
from grid.immutable.share.layout import parse_header


@frozen(kw_only=True)
class EncodedFile:
    """All n shares of a file, and the capability that proves them."""

    cap: ChkCap
    finished: FinishedEncoding
    shares: tuple[bytes, ...]

    @property
    def geometry(self) -> Geometry:
        """The sizes of the file."""
        return self.finished.geometry


def convergent_key(text: bytes, secret: bytes, geometry: Geometry) -> bytes:
    """The key that a put with this convergence secret encrypts with."""
    hasher = convergent_hasher(secret, geometry)
    hasher.update(text)
    return hasher.digest(16)


def encode_text(
    text: bytes, key: bytes, geometry: Geometry, *, batch_count: int = 3, original_ueb: bytes | None = None
) -> EncodedFile:
    """The shares of the text, encoded batch_count segments at a time."""
    return collect_shares(Encoder(geometry, key), key, text, batch_count, original_ueb)


def collect_shares(
    encoder: Encoder, key: bytes, text: bytes, batch_count: int = 3, original_ueb: bytes | None = None
) -> EncodedFile:
    """The shares that an encoder makes of a text (of the ciphertext, if it has no key)."""
    geometry = encoder.geometry
    shares = [bytearray(encoder.header) for _ in range(geometry.n)]
    for first in range(0, geometry.segment_count, batch_count):
        batch = encoder.encode_segments(
            first, text[geometry.segment_offset(first) : geometry.segment_offset(first + batch_count)]
        )
        encoder.absorb(batch)
        for share_number, share in enumerate(shares):
            assert len(share) == encoder.layout.data_offset + batch.data_offset
            for piece in batch.pieces(share_number):
                share += piece
    finished = encoder.finish(original_ueb)
    for share_number, share in enumerate(shares):
        assert len(share) == finished.trailer_offset
        for part in finished.trailer(share_number):
            share += part
    return EncodedFile(cap=finished.read_cap(key), finished=finished, shares=tuple(map(bytes, shares)))


def decode_shares(shares: Mapping[int, bytes], geometry: Geometry, key: bytes) -> bytes:
    """The text that k sound shares, by number, hold; nothing is verified."""
    starts = {number: parse_header(share).data_offset for number, share in shares.items()}
    ciphertext = bytearray()
    for index in range(geometry.segment_count):
        length = geometry.block_length(index)
        blocks: dict[int, bytes] = {}
        for number, share in shares.items():
            start = starts[number] + geometry.block_offset(index)
            blocks[number] = share[start : start + length]
        ciphertext += decode_segment(blocks, geometry)[: geometry.segment_length(index)]
    return CtrCipher(key).crypt(ciphertext)


def decode_segment(blocks: Mapping[int, bytes], geometry: Geometry) -> bytes:
    """The padded segment that k blocks, by share number, hold."""
    missing = [number for number in range(geometry.k) if number not in blocks]
    length = len(next(iter(blocks.values())))
    rebuilt = {number: bytearray(length) for number in missing}
    numbers = list(blocks)
    erasure(geometry.k, geometry.n).decode_into(
        [blocks[number] for number in numbers], numbers, [memoryview(rebuilt[number]) for number in missing]
    )
    return b"".join(blocks.get(number, rebuilt.get(number, b"")) for number in range(geometry.k))
