"""The arguments `format=`, `mutable=` and `private-key=`."""

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
from grid.gateway.http.arguments import choose_format, mutable_format, parse_key_argument


def test_format_when_named_then_decides_whatever_mutable_says() -> None:
    assert choose_format("chk", True) == "chk"
    assert choose_format("mdmf", False) == "mdmf"


def test_format_when_not_named_then_mutable_means_sdmf() -> None:
    assert choose_format(None, True) == "sdmf"
    assert choose_format(None, False) == choose_format(None, None) == "chk"


def test_format_when_mutable_then_is_one_of_the_engines() -> None:
    assert [mutable_format(format) for format in ("chk", "sdmf", "mdmf")] == [None, "sdmf", "mdmf"]


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
def test_key_when_invalid_then_is_refused_without_being_shown(text: str) -> None:
    with pytest.raises(FormatError) as caught:
        parse_key_argument(text)
    assert "private-key=" in str(caught.value)
    assert len(text) < 2 or text not in str(caught.value)


@given(st.text())
def test_key_when_the_text_is_anything_then_only_a_format_error_comes_out(text: str) -> None:
    with pytest.raises(FormatError):
        parse_key_argument(text)
