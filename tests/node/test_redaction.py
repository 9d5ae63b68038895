"""Removing secrets from texts."""

from __future__ import annotations

import pytest

from grid.node.redaction import one_line, redact


@pytest.mark.parametrize(
    "secret",
    [
        "URI:CHK:ubyhxs6zs4tpkuvc2lu5s2zw5q:xltrzdg7dmk4boidlqgeh2rfmnwb4b2d3fmxmqbwiy3fsbuc6nfq:3:10:1000",
        "URI:DIR2:abc:def",
        "URI%3ACHK%3Aubyhxs",
        "URI%3aSSK%3aubyhxs",
        "pb://l2rdxsw4e5nqqud4h4cj7uuaz2s6is2e@tcp:127.0.0.1:39411/ln3ddyjdlt3cxe5uujeubs3ho2cl4jht",
        "pb+tor://hash@x.onion:1/swissnum#v=1",
        "priv-v0-abcdefg",
    ],
)
def test_secret_is_replaced_and_the_rest_kept(secret: str) -> None:
    hidden = redact(f"got '{secret}' here")
    assert hidden.startswith("got '")
    assert hidden.endswith("...' here")
    assert secret[9:] not in hidden
    assert len(hidden) < 25


def test_prefixed_capability_is_replaced() -> None:
    assert "abc" not in redact("x=ro.URI:SSK:abc:def imm.URI:CHK:abc")


def test_text_without_secrets_stays() -> None:
    assert redact("server v0-abc at tcp:127.0.0.1:80") == "server v0-abc at tcp:127.0.0.1:80"


def test_text_that_reverses_what_follows_is_shown_in_order() -> None:
    assert one_line("a\u202egpj.exe\u2066b\u200fc") == "a gpj.exe b c"


def test_line_breaks_cannot_hide_a_secret() -> None:
    assert one_line("a\nURI:CHK:abc\r\n\tb") == "a URI:... b"
