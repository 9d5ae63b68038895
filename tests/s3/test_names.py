"""Keys as paths: a one-to-one mapping that fits any directory."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.directory.names import normalize_name
from grid.s3.faults import S3Fault
from grid.s3.names import UPLOADS, beside_of, name_of, path_of, segment_of

SEGMENTS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/"), max_size=30),
    st.sampled_from(["", ".", "..", "%", "%a", "%=a", "%!uploads", "e\u0301", "\u00e9", "a%2Fb", "\x00", "100%"]),
)


@given(SEGMENTS)
def test_a_segment_comes_back_from_its_name_and_no_directory_changes_it(segment: str) -> None:
    name = name_of(segment)
    assert segment_of(name) == (segment, False)
    assert segment_of(beside_of(name)) == (segment, True)
    assert normalize_name(name) == name
    assert name not in ("", ".", "..") and "/" not in name and unicodedata.is_normalized("NFC", name)


@given(SEGMENTS, SEGMENTS)
def test_two_segments_never_have_one_name(one: str, other: str) -> None:
    assert (name_of(one) == name_of(other)) == (one == other)
    assert name_of(one) != beside_of(name_of(other))


@pytest.mark.parametrize("name", [UPLOADS, "a/b", "a/", "%zz", "%a", "%=a/b", "%%61", "%\ud800"])
def test_a_name_that_no_key_has_gives_no_segment(name: str) -> None:
    assert segment_of(name) is None


def test_a_plain_key_is_the_path_that_people_see() -> None:
    path = path_of("photos/2026/one.jpg")
    assert (path.directories, path.name) == (("photos", "2026"), "one.jpg")


def test_a_key_over_1024_bytes_is_refused_and_one_of_1024_is_not() -> None:
    path_of("\u00e9" * 512)
    with pytest.raises(S3Fault) as refused:
        path_of("\u00e9" * 512 + "a")
    assert refused.value.code == "KeyTooLongError"
