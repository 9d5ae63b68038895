"""What was listed at both ends: which names are one file at the target, and a disk for temporary files that is full."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.transfer.ends import Entry
from grid.transfer.listings import Listings
from grid.transfer.records import JournalFullError, among

NAMES = st.sampled_from(["a", "A", "b", "\u00e9", "\u00c9", "\udcff", "\ud800", "a/B", "A/b"])


def fold(name: str) -> str:
    """Takes letters in either case for the same."""
    return name.lower()


@given(st.lists(NAMES, unique=True), st.lists(st.tuples(st.sampled_from(["one", "two"]), NAMES)), st.booleans())
def test_names_are_one_file_if_the_target_takes_them_for_one(
    there: list[str], wanted: list[tuple[str, str]], folds: bool
) -> None:
    place_of = fold if folds else str
    listings = Listings()
    listings.tell_apart_by(place_of)
    listings.note_there([Entry(name=name, size=number) for number, name in enumerate(there)])
    holders: dict[str, tuple[str, str]] = {}
    for source, name in wanted:
        first = holders.setdefault(place_of(name), (name, source))
        taken = listings.want([name], source)
        if first == (name, source):
            assert taken == {}
        elif name != "\ud800":  # Which no file can have.
            assert taken == {name: first}
    sizes = {place_of(name): number for number, name in enumerate(there)}
    for _, name in wanted:
        assert listings.has(name)
        found = listings.there([name, "nothing"])
        assert {each: entry.size for each, entry in found.items()} == (
            {name: sizes[place_of(name)]} if place_of(name) in sizes else {}
        )
    kept = {place_of(name) for _, name in wanted}
    last = {place_of(name): name for name in there}
    expected = {name for place, name in last.items() if place not in kept}
    assert set(listings.unwanted()) - {"\udced\udca0\udc80"} == expected - {"\ud800"}
    listings.close()


def test_disk_for_temporary_files_that_is_full_is_named_as_such() -> None:
    listings = Listings()
    listings._rows.execute("PRAGMA max_page_count = 20")
    entries = [Entry(name=f"{number}" * 20) for number in range(5000)]
    with pytest.raises(JournalFullError, match="temporary files is full; make room there, or set TMPDIR"):
        listings.note_there(entries)
    listings.close()


def test_pages_of_any_length_are_found_with_few_statements() -> None:
    """A connection keeps every statement that it has prepared: with slow listings, of which no two pages have one length, these took megabytes."""
    rows = sqlite3.connect(":memory:")
    rows.executescript("CREATE TABLE here (name BLOB); INSERT INTO here VALUES (x'00'), (x'01'), (x'02');")
    statements = set()
    for count in range(300):
        names = [bytes([number % 256, *[9] * (number > 2)]) for number in range(count)]
        question = among("SELECT name FROM here WHERE name IN (?)", names)
        assert sorted(rows.execute(*question)) == [(name,) for name in names[:3]]
        statements.add(question[0])
    assert len(statements) <= 11
    rows.close()
