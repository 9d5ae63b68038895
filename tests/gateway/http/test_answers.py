"""Redirects to `when_done=` stay on this gateway."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.errors import FormatError
from grid.gateway.http.answers import check_when_done, with_cap

ORIGIN = "http://127.0.0.1:3456"


@pytest.mark.parametrize("url", [".", "/here", "../uri/x?t=info#y", "?x=1", f"{ORIGIN}/x", "HTTP://127.0.0.1:3456", ""])
def test_url_when_it_leads_here_then_is_kept_as_it_is(url: str) -> None:
    assert check_when_done(url, ORIGIN) == url


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org/", "//example.org", "///example.org", "https://127.0.0.1:3456/", "javascript:alert(1)",
        "data:text/html,x", "http:example.org", "/\\example.org", "\\\\example.org", " http://example.org", "/a\r\nb",
        "http://127.0.0.1:3456@example.org/", "http://127.0.0.1:3456.example.org/", "http://[", "/\x7f", "http:///x",
    ],
)  # fmt: skip
def test_url_when_it_leads_elsewhere_then_is_refused(url: str) -> None:
    with pytest.raises(FormatError, match="when_done="):
        check_when_done(url, ORIGIN)


def test_url_when_it_asks_for_the_cap_then_gets_it_quoted_and_absolute() -> None:
    assert with_cap("/uri/%(uri)s?t=info", "URI:CHK:a/b", ORIGIN) == f"{ORIGIN}/uri/URI%3ACHK%3Aa%2Fb?t=info"
    assert with_cap("here", "URI:x", ORIGIN) == f"{ORIGIN}/here"
    assert with_cap(f"{ORIGIN}/x", "URI:x", ORIGIN) == f"{ORIGIN}/x"


@given(st.text())
def test_url_when_it_is_anything_then_is_refused_or_one_line(text: str) -> None:
    try:
        url = check_when_done(text, ORIGIN)
    except FormatError:
        return
    assert not any(ord(character) <= 32 for character in url) and not url.startswith(("//", "/\\"))
