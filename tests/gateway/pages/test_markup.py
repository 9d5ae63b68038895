"""HTML, numbers and addresses on pages."""

from __future__ import annotations

from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.gateway.pages.links import can_be_walked, file_path, object_path, with_arguments
from grid.gateway.pages.markup import Markup, duration_text, join, size_text, tag, time_mark, time_text
from tests.gateway.pages.hostile import HOSTILE, Document


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r")))
def test_any_text_and_attribute_is_read_back_as_it_was(text: str) -> None:
    document = Document(tag("p", text, title=text))

    assert document.text == text
    assert document.elements == [("p", {"title": text})]


def test_markup_is_not_escaped_again_and_text_beside_it_is() -> None:
    assert tag("p", tag("b", "a<b"), "&", None, 3, [Markup("<br>"), "<"]) == "<p><b>a&lt;b</b>&amp;3<br>&lt;</p>"


def test_attributes_that_are_none_or_false_are_omitted_and_names_get_hyphens() -> None:
    assert (
        tag("input", required=True, hidden=False, id=None, data_x="1", class_="a")
        == '<input required data-x="1" class="a">'
    )


def test_no_character_of_a_text_is_nul() -> None:
    assert join("a\0b") == "a\N{REPLACEMENT CHARACTER}b"


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (None, "–"),
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.00 kB"),
        (12_345, "12.3 kB"),
        (999_499, "999 kB"),
        (999_500, "1.00 MB"),
        (10**13, "10.0 TB"),
        (2**63, "9.22 EB"),
        (10**30, "1000000000000 EB"),
    ],
)
def test_sizes_have_three_figures(size: int | None, text: str) -> None:
    assert size_text(size) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "–"), (0.00125, "1.2 ms"), (0.25, "250 ms"), (12.34, "12.3 s"), (61, "1 min 01 s"), (7260, "2 h 01 min")],
)
def test_durations_have_the_unit_that_fits(seconds: float | None, text: str) -> None:
    assert duration_text(seconds) == text


def test_times_that_no_calendar_has_are_not_shown() -> None:
    assert time_text(0) == "1970-01-01 00:00 UTC"
    assert time_mark(1_764_289_362) == '<time datetime="2025-11-28T00:22Z">2025-11-28 00:22 UTC</time>'
    assert [time_mark(moment) for moment in (None, 1e300)] == ["–"] * 2
    assert [time_text(moment) for moment in (None, 1e300, float("nan"), float("inf"))] == ["–"] * 4


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
