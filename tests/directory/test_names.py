"""Names of directory entries: the Unicode normal form of any name, at bounded cost."""

from __future__ import annotations

import random
import sys
import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.cli.transfer.names import find_collisions
from grid.directory import names as names_module
from grid.directory.names import HIDDEN_MARKS, MAX_RUN, SHORT_NAME, normalize_name, order_marks, parse_name, sort_names
from grid.errors import FormatError
from grid.limits import MAX_NAME_SIZE

MARKS = [chr(c) for c in range(sys.maxunicode + 1) if unicodedata.combining(chr(c))]
LONG_RUNS = [
    "a" + "\u0315\u0300" * 400, "\u0315\u0300" * 400, "x" * SHORT_NAME + "\u0f73\u0f71" * 200, "\u0344" * 300 + "e\u0301" * 100,
    "\u1ebf" * 300 + "\u0315\u0300" * 40, "\u1100\u1161\u0315\u0300" * 200, "\U0001d165\u0315" * 300,
]  # fmt: skip


def test_name_when_given_then_is_normalized_or_refused() -> None:
    assert normalize_name("e\u0301") == "\u00e9"
    assert normalize_name("") == ""
    for wrong in ("\ud800", "a" * (MAX_NAME_SIZE + 1), "\u00e9" * (MAX_NAME_SIZE // 2 + 1)):
        with pytest.raises(FormatError):
            normalize_name(wrong)
    assert normalize_name("a" * MAX_NAME_SIZE) == "a" * MAX_NAME_SIZE


def test_marks_that_count_as_letters_are_all_known() -> None:
    found = {
        chr(c)
        for c in range(sys.maxunicode + 1)
        if not unicodedata.combining(chr(c)) and unicodedata.combining(unicodedata.normalize("NFD", chr(c))[0])
    }
    assert found == HIDDEN_MARKS


@pytest.mark.parametrize("name", LONG_RUNS)
def test_name_when_it_has_a_long_run_of_marks_then_is_what_the_library_makes_of_it(name: str) -> None:
    assert normalize_name(name) == unicodedata.normalize("NFC", name) == parse_name(name.encode())


@given(
    st.lists(st.one_of(st.sampled_from(MARKS), st.characters(exclude_categories=["Cs"])), max_size=40),
    st.integers(1, 20),
)
def test_marks_when_ordered_then_the_normal_form_is_the_same(characters: list[str], times: int) -> None:
    text = "".join(characters) * times
    assert unicodedata.normalize("NFC", order_marks(text)) == unicodedata.normalize("NFC", text)
    assert normalize_name(text) == unicodedata.normalize("NFC", text)


def test_name_when_hostile_then_the_library_never_sees_marks_out_of_order(monkeypatch: pytest.MonkeyPatch) -> None:
    longest: list[int] = []
    real = unicodedata.normalize

    def watched(form: str, text: str) -> str:
        longest.append(_inversions(text) if len(text) > 1 else 0)
        return real(form, text)  # type: ignore[arg-type]

    monkeypatch.setattr(unicodedata, "normalize", watched)
    for name in (*LONG_RUNS, "\u0315\u0300" * (MAX_NAME_SIZE // 4), "\u0f73\u0f71" * (MAX_NAME_SIZE // 6)):
        normalize_name(name)
        find_collisions([name, name.upper()])
    assert max(longest) <= SHORT_NAME**2


def _inversions(text: str) -> int:
    """At least the steps that sorting the marks by insertion takes: the squares of runs that are not in order."""
    steps = run = 0
    is_ordered, last = True, 0
    for character in text + "a":
        mark = 1 if character in HIDDEN_MARKS else unicodedata.combining(character)
        if mark:
            run, is_ordered, last = run + 1, is_ordered and last <= mark, mark
            continue
        steps += 0 if is_ordered or run <= MAX_RUN else run * run
        run, is_ordered, last = 0, True, 0
    return steps


@given(st.sets(st.text(max_size=4), max_size=60))
def test_names_when_sorted_are_in_the_order_of_their_code_points(names: set[str]) -> None:
    assert sort_names(names) == sorted(names)


def test_names_when_there_are_many_or_long_ones_are_sorted_in_pieces() -> None:
    many = [str(number) for number in range(3 * names_module.PIECE_NAMES)]
    random.Random(1).shuffle(many)
    long = ["x" * 50_000 + str(number) for number in range(100, 40, -1)]
    for names in (many, long):
        found = sort_names(names)
        assert set(found) == set(names) and all(before < after for before, after in pairwise(found))
        pieces = list(names_module._sorted_pieces(names))
        assert len(pieces) > 2
        assert all(len(piece) <= names_module.PIECE_NAMES for piece in pieces)
        assert all(sum(map(len, piece[:-1])) < names_module.PIECE_CHARACTERS for piece in pieces)
