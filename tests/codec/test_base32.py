"""Base32: known answers, refusals, and what the lax decoder tolerates."""

from __future__ import annotations

import json
from base64 import b32encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.codec.base32 import decode, decode_lax, encode, encoded_size
from grid.errors import FormatError
from tests.vectors.make_codec import PATH

VECTORS: dict[str, list[dict[str, Any]]] = json.loads(PATH.read_text())


@pytest.mark.parametrize("row", VECTORS["base32"], ids=lambda row: row["text"][:20])
def test_text_when_known_is_that_of_the_vectors(row: dict[str, Any]) -> None:
    data = bytes.fromhex(row["data"])
    assert encode(data) == row["text"]
    assert encoded_size(len(data)) == len(row["text"])
    for text in (row["text"], row["text"].encode()):
        assert decode(text) == decode_lax(text) == data


@pytest.mark.parametrize("row", VECTORS["base32_refused"], ids=lambda row: ascii(row["text"]))
def test_decode_when_the_text_is_invalid_refuses_and_the_lax_one_follows_the_vectors(row: dict[str, Any]) -> None:
    for text in (row["text"], row["text"].encode()):
        with pytest.raises(FormatError):
            decode(text)
        if row["lax"] is None:
            with pytest.raises(FormatError):
                decode_lax(text)
        else:
            assert decode_lax(text).hex() == row["lax"]


@given(st.binary())
def test_decode_when_the_text_is_encoded_gives_the_bytes(data: bytes) -> None:
    assert decode(encode(data)) == data
    assert encode(memoryview(data)) == encode(data)


@given(st.one_of(st.text(), st.binary(), st.text("abcdefghijklmnopqrstuvwxyz234567")))
def test_decode_when_given_anything_gives_what_encodes_to_it_or_refuses(text: str | bytes) -> None:
    try:
        data = decode(text)
    except FormatError:
        return
    assert encode(data) == (text if isinstance(text, str) else text.decode())
    assert decode_lax(text) == data


@given(st.binary(max_size=200))
def test_encode_gives_the_text_of_the_library_without_padding(data: bytes) -> None:
    assert encode(data) == b32encode(data).decode().rstrip("=").lower()
