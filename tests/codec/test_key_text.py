"""The texts of keys and signatures."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.codec import key_text
from grid.crypto.ed25519 import SigningKey, VerifyingKey
from grid.errors import FormatError

A26 = "aaaqeayeaudaocajbifqydiob4ibceqtcqkrmfyydenbwha5dypq"
KEY = bytes(range(32))
PARSERS: list[Callable[[str], object]] = [
    key_text.parse_signing_key,
    key_text.parse_verifying_key,
    key_text.parse_bare_key,
    key_text.parse_signature,
]


def test_texts_when_packed_and_parsed_are_those_of_the_files() -> None:
    assert key_text.pack_signing_key(SigningKey(KEY)) == "priv-v0-" + A26
    assert key_text.pack_verifying_key(VerifyingKey(KEY)) == "pub-v0-" + A26
    assert key_text.pack_bare_key(VerifyingKey(KEY)) == "v0-" + A26
    assert key_text.parse_signing_key("priv-v0-" + A26) == SigningKey(KEY)
    assert key_text.parse_verifying_key("pub-v0-" + A26) == VerifyingKey(KEY)
    assert key_text.parse_bare_key("v0-" + A26) == VerifyingKey(KEY)
    signature = SigningKey(KEY).sign(b"x")
    text = key_text.pack_signature(signature)
    assert len(text) == 3 + 103
    assert key_text.parse_signature(text) == signature


@pytest.mark.parametrize("parse", PARSERS)
def test_parse_when_the_text_is_another_refuses(parse: Callable[[str], object]) -> None:
    bad = ["", "v0-", "v1-" + A26, A26, "v0-" + A26[:-1], "v0-" + A26 + "a", "v0-" + A26.upper(), " v0-" + A26]
    bad += [
        "pub-v0-" + A26[:-1] + "b",
        "priv-v0-" + A26 + "\n",
        "v0-" + A26[:-1] + "é",
        "priv-v0-",
        "pub-v0-" + "a" * 50,
    ]
    for text in bad:
        with pytest.raises(FormatError):
            parse(text)


def test_parse_when_the_kind_is_another_refuses() -> None:
    texts = ["priv-v0-" + A26, "pub-v0-" + A26, "v0-" + A26, key_text.pack_signature(bytes(64))]
    for position, parse in enumerate(PARSERS):
        for other, text in enumerate(texts):
            if other != position:
                with pytest.raises(FormatError) as caught:
                    parse(text)
                assert A26 not in str(caught.value)


@given(st.text())
def test_parse_when_given_anything_refuses(text: str) -> None:
    for parse in PARSERS:
        for prefix in ("", "v0-", "pub-v0-", "priv-v0-"):
            with pytest.raises(FormatError):
                parse(prefix + text)
