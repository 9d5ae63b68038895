"""Names that may cross between the grid and this machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.cli.transfer.names import find_collisions, refuse_name


@pytest.mark.parametrize("name", ["", ".", "..", "/", "/etc", "a/b", "../x", "a\0b", "x" * 256, "ü" * 128, "\ud800x"])
def test_name_when_it_leads_elsewhere_or_is_impossible_is_refused(name: str) -> None:
    assert refuse_name(name) is not None


@pytest.mark.parametrize("name", ["a", "...", "a.b", "-x", "~", "C:", "a\\b", "ü", "x" * 255, "a\nb", " "])
def test_name_when_it_is_only_unusual_is_taken(name: str) -> None:
    assert refuse_name(name) is None


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=300) | st.sampled_from(["..", ".", "../..", "/a"]))
def test_name_when_taken_stays_inside_the_directory(name: str) -> None:
    if refuse_name(name) is None:
        joined = os.path.join("/safe/place", name)
        assert os.path.dirname(joined) == "/safe/place"
        assert Path(os.path.normpath(joined)).parent == Path("/safe/place")


def test_names_when_they_differ_in_case_only_collide() -> None:
    assert find_collisions(["b", "A", "a", "straße", "STRASSE", "é", "e\u0301"]) == {
        "a": "A", "straße": "STRASSE", "é": "e\u0301",
    }  # fmt: skip
    assert find_collisions(["a", "b"]) == {}
