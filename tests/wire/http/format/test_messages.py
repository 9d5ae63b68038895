from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.errors import FormatError
from grid.wire.http.format.messages import (
    CHUNK_END,
    LAST_CHUNK,
    BodyDecoder,
    ChunkedDecoder,
    LengthDecoder,
    first_value,
    pack_chunk_head,
    pack_head,
    parse_request_head,
    parse_response_head,
    request_body,
    response_body,
)


def feed(decoder: BodyDecoder, data: bytes, sizes: list[int]) -> tuple[bytes, bytes | None]:
    """The body, and the bytes left after it, when the data arrives in pieces of those sizes."""
    body, position = b"", 0
    for size in [*sizes, len(data)]:
        pieces, rest = decoder.decode(data[position : position + size])
        position += size
        body += b"".join(pieces)
        if rest is not None:
            return body, rest + data[position:]
    return body, None


def test_request_head_when_packed_parses_to_the_same() -> None:
    packed = pack_head(b"GET /a?b HTTP/1.1", [(b"Host", b"x:1"), (b"X-A", b"1"), (b"x-a", b"2")])
    head = parse_request_head(packed[:-4])
    assert (head.method, head.target) == (b"GET", b"/a?b")
    assert head.headers == {b"host": [b"x:1"], b"x-a": [b"1", b"2"]}
    assert first_value(head.headers, b"host") == b"x:1"
    assert first_value(head.headers, b"x-a") is None
    assert not head.wants_close
    assert parse_request_head(b"GET / HTTP/1.1\r\nConnection: TE, close").wants_close


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"GET /",
        b"GET  / HTTP/1.1",
        b"GET / HTTP/1.0",
        b"GET / HTTP/2.0",
        b"GET /\x00 HTTP/1.1",
        b"G(T / HTTP/1.1",
        b"GET / HTTP/1.1\r\nno colon",
        b"GET / HTTP/1.1\r\n folded: x",
        b"GET / HTTP/1.1\r\nName : x",
        b"GET / HTTP/1.1\r\n: x",
        b"GET / HTTP/1.1\r\nA: x\ny",
        b"GET / HTTP/1.1\r\nA: x\x00",
        b"GET / HTTP/1.1" + b"\r\nA: x" * 65,
        b"GET / HTTP/1.1\r\nA: " + b"x" * 20000,
    ],
)
def test_request_head_when_malformed_is_refused(head: bytes) -> None:
    with pytest.raises(FormatError):
        parse_request_head(head)


@pytest.mark.parametrize("head", [b"", b"HTTP/1.1", b"HTTP/1.1 20 OK", b"HTTP/2 200 OK", b"HTTP/1.1 999 X", b"junk"])
def test_response_head_when_malformed_is_refused(head: bytes) -> None:
    with pytest.raises(FormatError):
        parse_response_head(head)


def test_response_head_when_old_or_closing_says_so() -> None:
    assert parse_response_head(b"HTTP/1.0 200 OK").wants_close
    assert parse_response_head(b"HTTP/1.1 200\r\nConnection: Close").wants_close
    assert not parse_response_head(b"HTTP/1.1 404 Not Here").wants_close


@pytest.mark.parametrize(
    "headers",
    [
        b"Content-Length: x",
        b"Content-Length: -1",
        b"Content-Length: +1",
        b"Content-Length: 1, 1",
        b"Content-Length: 1\r\nContent-Length: 1",
        b"Content-Length: 1\r\nTransfer-Encoding: chunked",
        b"Transfer-Encoding: gzip",
        b"Transfer-Encoding: chunked, chunked",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        b"Content-Length: 9999999999999999999",
    ],
)
def test_body_when_framed_in_two_ways_or_an_unknown_one_is_refused(headers: bytes) -> None:
    with pytest.raises(FormatError):
        request_body(parse_request_head(b"GET / HTTP/1.1\r\n" + headers).headers)


def test_body_when_not_mentioned_is_empty_in_requests_and_endless_in_answers() -> None:
    assert request_body({}).decode(b"next") == ([], b"next")
    endless = response_body(parse_response_head(b"HTTP/1.1 200 OK"))
    assert endless.decode(b"all") == ([b"all"], None)
    none = response_body(parse_response_head(b"HTTP/1.1 204 No\r\nContent-Length: 5"))
    assert none.decode(b"next") == ([], b"next")


SIZES = st.lists(st.integers(1, 7), max_size=40)


@given(st.binary(max_size=40), st.binary(max_size=9), SIZES)
def test_body_of_known_length_when_fed_in_pieces_ends_where_it_should(
    body: bytes, rest: bytes, sizes: list[int]
) -> None:
    assert feed(LengthDecoder(len(body)), body + rest, sizes) == (body, rest)


@given(st.lists(st.binary(min_size=1, max_size=20), max_size=5), st.binary(max_size=9), SIZES, st.booleans())
def test_chunked_body_when_fed_in_pieces_ends_where_it_should(
    chunks: list[bytes], rest: bytes, sizes: list[int], with_extras: bool
) -> None:
    head = (lambda size: b"%X ;a=b\r\n" % size) if with_extras else pack_chunk_head
    end = b"000\r\nTrailer: x\r\n\r\n" if with_extras else LAST_CHUNK
    coded = b"".join(head(len(chunk)) + chunk + CHUNK_END for chunk in chunks) + end
    assert feed(ChunkedDecoder(), coded + rest, sizes) == (b"".join(chunks), rest)


@pytest.mark.parametrize(
    "coded",
    [
        b"\r\n",
        b"x\r\n",
        b"-1\r\n",
        b"0x1\r\n",
        b"1\r\nab\r\n",
        b"1\nab",
        b"1" * 16 + b"\r\n",
        b"1;" + b"x" * 20000,
        b"1;\0\r\n",
    ],
)
def test_chunked_body_when_malformed_is_refused(coded: bytes) -> None:
    with pytest.raises(FormatError):
        ChunkedDecoder().decode(coded)


@given(st.binary(max_size=80), SIZES)
def test_chunked_body_when_arbitrary_is_decoded_or_refused(data: bytes, sizes: list[int]) -> None:
    try:
        feed(ChunkedDecoder(), data, sizes)
    except FormatError:
        pass
