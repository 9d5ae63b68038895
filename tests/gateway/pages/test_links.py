"""Paths with any names in them."""

from __future__ import annotations

from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from grid.gateway.pages.links import can_be_walked, file_path, object_path, with_arguments
from tests.gateway.pages.hostile import HOSTILE

CAP = "URI:CHK:aaaa:bbbb:3:10:1000"


@pytest.mark.parametrize("name", HOSTILE)
def test_the_path_of_any_name_has_it_as_one_segment(name: str) -> None:
    segments = object_path(CAP, ["a", name]).split("/")

    assert [unquote(segment) for segment in segments] == ["", "uri", CAP, "a", name]


@pytest.mark.parametrize("name", HOSTILE)
def test_the_path_of_a_files_contents_names_it_without_its_directory(name: str) -> None:
    parts = urlsplit(file_path(CAP, name, save=True))

    assert (parts.scheme, parts.netloc, parts.fragment) == ("", "", "")
    assert parse_qs(parts.query)["save"] == ["true"]
    if can_be_walked([name]):
        assert [unquote(segment) for segment in parts.path.split("/")] == ["", "file", CAP, "@@named=", name]
    else:
        assert unquote(parts.path).startswith(f"/file/{CAP}")
        assert not any(segment in (".", "..") for segment in parts.path.split("/"))


def test_names_that_browsers_take_out_of_paths_cannot_be_walked() -> None:
    assert not any(can_be_walked(["a", name]) for name in ("", ".", ".."))
    assert can_be_walked(["...", "a.b"])


def test_arguments_are_quoted() -> None:
    assert with_arguments("/uri/a", name="b&c=d e#") == "/uri/a?name=b%26c%3Dd+e%23"
