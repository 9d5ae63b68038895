"""Bodies in aws-chunked encoding, whole and broken."""

from __future__ import annotations

from hashlib import sha256

import pytest

from grid.s3.aws_chunks import FREE_CHUNKS, LEAST_CHUNK, MAX_LINE, AwsChunks
from grid.s3.faults import S3Fault
from grid.s3.signature import ChunkSigner, Scope, signing_key

SCOPE = Scope(day="20261122", region="here")
SIGNER = ChunkSigner(signing_key("secret", SCOPE), "20261122T000000Z", SCOPE)
SEED = "0" * 64
DATA = bytes(range(256)) * 3


def signed(data: bytes, size: int, trailer: bytes | None = None) -> bytes:
    """The body of these bytes in signed chunks. trailer: lines behind it."""
    previous, sent = SEED, b""
    for piece in [*(data[at : at + size] for at in range(0, len(data), size)), b""]:
        previous = SIGNER.chunk(previous, sha256(piece).hexdigest())
        sent += b"%x;chunk-signature=%b\r\n%b" % (len(piece), previous.encode(), piece + b"\r\n" if piece else b"")
    if trailer is None:
        return sent + b"\r\n"
    signature = SIGNER.trailer(previous, trailer).encode()
    return sent + trailer.replace(b"\n", b"\r\n") + b"x-amz-trailer-signature:" + signature + b"\r\n\r\n"


def unsigned(data: bytes, size: int) -> bytes:
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n"


def decoded(sent: bytes, step: int, *, signer: ChunkSigner | None, trailer: bool, size: int = len(DATA)) -> AwsChunks:
    decoder = AwsChunks(size, signer, SEED, trailer)
    found = b""
    for at in range(0, len(sent), step):
        found += b"".join(decoder.decode(sent[at : at + step]))
    decoder.finish()
    assert found == DATA
    return decoder


CRC = b"x-amz-checksum-crc32:AAAAAA==\n"


@pytest.mark.parametrize("step", [1, 7, 10_000])
@pytest.mark.parametrize("size", [1, 100, 768, 1000])
def test_a_body_in_any_pieces_is_decoded(step: int, size: int) -> None:
    decoded(signed(DATA, size), step, signer=SIGNER, trailer=False)
    found = decoded(signed(DATA, size, CRC), step, signer=SIGNER, trailer=True)
    assert found.trailers == {"x-amz-checksum-crc32": "AAAAAA=="}
    sent = unsigned(DATA, size) + CRC.replace(b"\n", b"\r\n") + b"\r\n"
    assert decoded(sent, step, signer=None, trailer=True).trailers == {"x-amz-checksum-crc32": "AAAAAA=="}


def test_a_body_with_any_byte_flipped_is_refused_or_says_the_same() -> None:
    """What frames a body may be written in more ways than one."""
    sent, refused = signed(DATA[:40], 20, CRC), 0
    for at in range(len(sent)):
        decoder = AwsChunks(40, SIGNER, SEED, True)
        try:
            found = b"".join(decoder.decode(sent[:at] + bytes([sent[at] ^ 1]) + sent[at + 1 :]))
            decoder.finish()
        except S3Fault:
            refused += 1
        else:
            assert (found, decoder.trailers) == (DATA[:40], {"x-amz-checksum-crc32": "AAAAAA=="}), at
    assert refused > len(sent) - 40


def test_a_body_that_is_cut_is_refused() -> None:
    sent = signed(DATA, 100, CRC)
    for length in range(0, len(sent) - 4, 5):
        with pytest.raises(S3Fault):
            decoded(sent[:length], 50, signer=SIGNER, trailer=True)


@pytest.mark.parametrize(
    "sent",
    [
        unsigned(DATA, 100) + b"\r\nmore",
        unsigned(DATA + b"a", 100) + b"\r\n",
        unsigned(DATA[1:], 100) + b"\r\n",
        b"-1\r\n",
        b"0x10\r\n",
        b"fffffffffffff\r\n",
        b"1" * (MAX_LINE + 1),
        unsigned(DATA, 100) + b"x-amz-meta-a:b\r\n\r\n",
        b"3\r\nabcd\r\n0\r\n\r\n",
    ],
)
def test_a_body_of_another_length_or_with_other_lines_is_refused(sent: bytes) -> None:
    with pytest.raises(S3Fault):
        decoded(sent, 30, signer=None, trailer=False)


@pytest.mark.parametrize(
    ("sent", "code", "says"),
    [
        (b"3\r\nabcd\r\n0\r\n\r\n", "IncompleteBody", "terminated"),
        (b"3\nabc\r\n0\r\n\r\n", "IncompleteBody", "terminated"),
        (b"3\r\nabc\r\n", "IncompleteBody", "terminated"),
        (b"2\r\nab\r\n0\r\n\r\n", "IncompleteBody", "number of bytes"),
        (b"4\r\nabcd\r\n0\r\n\r\n", "IncompleteBody", "number of bytes"),
        (b"3\r\nabc\r\n0\r\nno field\r\n\r\n", "MalformedTrailerError", "trailing data"),
    ],
)
def test_a_body_is_refused_with_what_is_wrong_with_it(sent: bytes, code: str, says: str) -> None:
    with pytest.raises(S3Fault, match=says) as refused:
        decoded(sent, 3, signer=None, trailer=True)
    assert refused.value.code == code


def test_chunks_without_signatures_are_refused_where_they_have_to_be_signed() -> None:
    with pytest.raises(S3Fault):
        decoded(unsigned(DATA, 100) + b"\r\n", 30, signer=SIGNER, trailer=False)


def test_chunks_that_are_tiny_are_few() -> None:
    data = b"a" * 4096
    taken: list[bytes] = []
    with pytest.raises(S3Fault, match="too small"):
        taken.extend(AwsChunks(len(data), None, SEED, False).decode(unsigned(data, 1)))
    assert 0 < len(taken) <= FREE_CHUNKS + 1
    large = b"a" * (LEAST_CHUNK * 3000)
    decoder = AwsChunks(len(large), None, SEED, False)
    assert b"".join(decoder.decode(unsigned(large, LEAST_CHUNK) + b"\r\n")) == large
    decoder.finish()


@pytest.mark.parametrize("signer", [None, SIGNER], ids=["unsigned", "signed"])
def test_blank_lines_behind_a_body_are_few(signer: ChunkSigner | None) -> None:
    sent = unsigned(DATA, 100) + b"\r\n" if signer is None else signed(DATA, 100)
    decoded(sent + b"\r\n", 30, signer=signer, trailer=False)
    with pytest.raises(S3Fault, match="follows its end"):
        decoded(sent + b"\r\n" * 5, 30, signer=signer, trailer=False)
