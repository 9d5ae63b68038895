"""The content type of a name, and how the name itself is sent."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.gateway.content_type import ContentType, attachment, content_type


@pytest.mark.parametrize(
    ("name", "type"),
    [
        ("x.html", "text/html"),
        ("X.PNG", "image/png"),
        ("a/b.svg", "image/svg+xml"),
        ("x.js", "text/javascript"),
        ("x.md", "text/markdown"),
        ("film.mkv", "video/x-matroska"),
        ("x.zzz", "text/plain"),
        ("README", "text/plain"),
        (".html", "text/plain"),
        ("x.", "text/plain"),
        ("", "text/plain"),
        ("..", "text/plain"),
        ("\ud800.txt", "text/plain"),
    ],
)
def test_type_when_the_extension_is_known_or_not_then_follows_it(name: str, type: str) -> None:
    assert content_type(name) == ContentType(type)


@pytest.mark.parametrize(
    ("name", "encoding"), [("x.tar.gz", "gzip"), ("x.html.gz", "gzip"), ("X.GZ", "gzip"), ("x.bz2", "bzip2")]
)
def test_type_when_a_file_is_packed_then_only_the_packing_is_said(name: str, encoding: str) -> None:
    assert content_type(name) == ContentType("text/plain", encoding)


@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("x.txt", 'attachment; filename="x.txt"'),
        ("", "attachment; filename=\"unknown\"; filename*=UTF-8''"),
        ('a"b\\c', "attachment; filename=\"a_b_c\"; filename*=UTF-8''a%22b%5Cc"),
        ("a\r\nSet-Cookie: b", "attachment; filename=\"a  Set-Cookie: b\"; filename*=UTF-8''a%0D%0ASet-Cookie%3A%20b"),
        ("ü.txt", "attachment; filename=\"ü.txt\"; filename*=UTF-8''%C3%BC.txt"),
    ],
)
def test_disposition_when_a_name_has_odd_characters_then_they_do_no_harm(name: str, header: str) -> None:
    assert attachment(name) == header


@given(st.text(st.characters()))
def test_disposition_when_the_name_is_anything_then_is_one_line_with_one_quoted_string(name: str) -> None:
    header = attachment(name)
    assert header.encode("utf-8")
    assert header.count('"') == 2
    assert len(header.splitlines()) == 1 and not any(ord(character) < 32 for character in header)
