from __future__ import annotations

import pytest

from grid.cli.webapi.address import parse_address
from grid.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "base"),
    [
        ("http://127.0.0.1:3456/\n", "http://127.0.0.1:3456/"),
        ("http://127.0.0.1:3456", "http://127.0.0.1:3456/"),
        ("https://grid.example", "https://grid.example/"),
        ("https://grid.example:8443/below/", "https://grid.example:8443/below/"),
        ("http://[::1]:3456", "http://[::1]:3456/"),
    ],
)
def test_address_when_a_url_is_one_has_a_base_that_ends_with_a_slash(text: str, base: str) -> None:
    assert parse_address(text, "here").base == base


@pytest.mark.parametrize(
    "text",
    [
        "", "127.0.0.1:3456", "ftp://127.0.0.1/", "http://", "http://h:0/", "http://h:99999/", "http://h:x/",
        "http://u:secret@h/", "http://secret@h/", "http://h/?a=secret", "http://h/#secret", "http://h/?", "http://h /",
        "http://h/uri/URI:CHK:secret", "http://h\\@secret/", "http://[::1/", "http://h\u00e9/", "http://" + "h" * 3000,
    ],
)  # fmt: skip
def test_address_when_a_url_is_none_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^here: ") as caught:
        parse_address(text, "here")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.3.2.1", True),
        ("localhost", True),
        ("[::1]", True),
        ("10.0.0.1", False),
        ("a.b", False),
    ],
)
def test_address_knows_what_stays_on_this_machine(host: str, expected: bool) -> None:
    assert parse_address(f"http://{host}/", "here").is_loopback is expected


def test_address_when_certificates_come_with_plain_http_is_refused() -> None:
    with pytest.raises(ConfigError, match="https only"):
        parse_address("http://h/", "here", "file.pem")
