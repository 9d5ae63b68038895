"""Compression: what comes out is what went in, and its length tells nothing of capabilities."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.caps import ChkCap
from grid.gateway.http.answers import page
from grid.gateway.http.compression import LEAST_SIZE, accepts_gzip, compressed, pack_asset, pack_page

SECRET = ChkCap(key=b"k" * 16, ueb_hash=b"u" * 32, needed=3, total=10, size=123_456).to_string()
QUOTED = SECRET.replace(":", "%3A")


@given(st.lists(st.sampled_from(["<p>text</p>", SECRET, QUOTED, "URI:", "é", "a" * 300, ""]) | st.text()))
def test_packed_bytes_are_unpacked_to_the_same(pieces: list[str]) -> None:
    data = "".join(pieces).encode("utf-8", "replace")
    assert gzip.decompress(pack_page(data)) == data
    assert gzip.decompress(pack_asset(data)) == data


def test_long_page_and_a_capability_longer_than_a_block_are_unpacked_to_the_same() -> None:
    data = b"<p>" * 100_000 + b"URI:LIT:" + b"a" * 200_000 + b"</p>" * 1000
    packed = pack_page(data)
    assert gzip.decompress(packed) == data
    assert len(packed) < 203_000


@pytest.mark.parametrize("form", [SECRET, QUOTED, QUOTED.replace("%", "%25"), QUOTED.lower().replace("uri", "URI")])
def test_length_is_the_same_whether_or_not_other_text_repeats_a_capability(form: str) -> None:
    """The attack: somebody who may write names tries the next characters of a capability on the same page."""
    right, wrong = form[20:32], form[31:19:-1]
    pages = {guess: f"<a href='{form}'>x</a>{f'<b>{guess}</b>' * 9}<input value='{form}'>" for guess in (right, wrong)}

    assert right != wrong
    assert len({len(pack_page(text.encode())) for text in pages.values()}) == 1
    plain = {guess: len(pack_asset(text.encode())) for guess, text in pages.items()}
    assert plain[right] < plain[wrong], "otherwise this attack would never work"


@pytest.mark.parametrize(
    ("header", "taken"),
    [
        (None, False), ("", False), ("identity", False), ("gzip", True), ("GZIP", True), ("br;q=1, x-gzip;q=0.1", True),
        ("gzip;q=0", False), ("gzip; q=0.000", False), ("deflate, br", False), ("gzipx", False),
    ],
)  # fmt: skip
def test_clients_that_take_gzip_say_so(header: str | None, taken: bool) -> None:
    assert accepts_gzip(header) is taken


def test_only_long_pages_are_compressed_and_only_for_clients_that_take_it() -> None:
    short, long = page("<p>"), page("<p>" * LEAST_SIZE)
    assert compressed(short, "gzip") == short and compressed(long, None) == long
    found = compressed(long, "gzip")
    assert found.is_page and gzip.decompress(found.body) == long.body
    assert ("Content-Encoding", "gzip") in found.headers and ("Vary", "Accept-Encoding") in found.headers
