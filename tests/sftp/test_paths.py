"""Paths: dots are resolved, nothing leads above the root, and invalid paths are refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.sftp.faults import BAD_MESSAGE, SftpFault
from grid.sftp.paths import MAX_DEPTH, MAX_NAME, MAX_PATH, can_be_named, parse_path, show_path


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        (b"", ()),
        (b"/", ()),
        (b".", ()),
        (b"/../..", ()),
        (b"a/b", ("a", "b")),
        (b"//a///b/", ("a", "b")),
        (b"a/./b/../c", ("a", "c")),
        (b"../a", ("a",)),
        (b"%2e%2e/...", ("%2e%2e", "...")),
        ("e\u0301".encode(), ("\u00e9",)),
    ],
)
def test_path_when_it_has_dots_and_slashes_is_its_names(raw: bytes, path: tuple[str, ...]) -> None:
    assert parse_path(raw) == path


@pytest.mark.parametrize(
    "raw",
    [
        b"a\0b",
        b"\xff",
        b"a" * (MAX_NAME + 1),
        "\u00fc".encode() * (MAX_NAME // 2) + b"a",
        b"a/" * (MAX_PATH // 2 + 1),
        b"a/" * (MAX_DEPTH + 1),
    ],
)
def test_path_when_invalid_is_refused(raw: bytes) -> None:
    with pytest.raises(SftpFault) as refused:
        parse_path(raw)
    assert refused.value.status == BAD_MESSAGE


@given(st.lists(st.sampled_from(["..", ".", "", "a", "b", "\u00fc"]), max_size=20))
def test_path_when_it_is_shown_is_read_as_the_same(parts: list[str]) -> None:
    path = parse_path("/".join(parts).encode())
    assert not {"..", ".", ""} & set(path)
    assert parse_path(show_path(path)) == path


@pytest.mark.parametrize("name", ["a/b", "..", ".", "", "/", "../x", "x\0", "a" * (MAX_NAME + 1), "\u00fc" * MAX_NAME])
def test_name_when_no_path_leads_to_it_is_not_shown(name: str) -> None:
    assert not can_be_named(name)


@pytest.mark.parametrize("name", ["a", "...", ".a", "\\", " ", "a" * MAX_NAME, "\u00fc" * (MAX_NAME // 2)])
def test_name_when_a_path_leads_to_it_is_shown(name: str) -> None:
    assert can_be_named(name)
    assert parse_path(show_path((name,))) == (name,)
