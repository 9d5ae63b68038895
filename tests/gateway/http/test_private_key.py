"""Private keys in requests."""

from __future__ import annotations

from base64 import urlsafe_b64encode

import pytest
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_der_private_key,
)
from hypothesis import given
from hypothesis import strategies as st

from grid.crypto.rsa import generate_key
from grid.errors import FormatError
from grid.gateway.http.private_key import parse_key_argument


def test_key_when_given_in_either_form_then_is_the_same_key() -> None:
    key = generate_key()
    older = load_der_private_key(key.der, None).private_bytes(
        Encoding.DER, PrivateFormat.TraditionalOpenSSL, NoEncryption()
    )
    for der in (key.der, older):
        text = urlsafe_b64encode(der).decode()
        assert parse_key_argument(text).write_key == key.write_key
        assert parse_key_argument(text.rstrip("=")).write_key == key.write_key


@pytest.mark.parametrize("text", ["", "AAAA", "A", "a+b/", "not base64!", "ü", "A" * 20000])
def test_key_when_it_is_none_then_is_refused_without_being_shown(text: str) -> None:
    with pytest.raises(FormatError) as caught:
        parse_key_argument(text)
    assert "private-key=" in str(caught.value)
    assert len(text) < 2 or text not in str(caught.value)


@given(st.text())
def test_key_when_the_text_is_anything_then_only_a_format_error_comes_out(text: str) -> None:
    with pytest.raises(FormatError):
        parse_key_argument(text)
