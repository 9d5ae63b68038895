"""The list of operations: what it leaves out, how it is filtered and sorted, and what it calls things."""

from __future__ import annotations

import re

import pytest

from grid.gateway.history.operation import Kind, Operation, Outcome, Subject, Timeline, Times
from grid.gateway.pages.operation_list import Choice, NameOf, parse_choice, render_operations
from tests.gateway.pages.hostile import require_harmless


def operation(
    kind: Kind,
    number: int,
    *,
    began_at: float = 0.0,
    ended_at: float | None = 1.0,
    size: int | None = None,
    outcome: Outcome = "done",
    is_directory: bool = False,
) -> Operation:
    return Operation(
        kind=kind,
        number=number,
        times=Times(started_at=1.7e9 + began_at, began_at=began_at, ended_at=ended_at),
        timeline=Timeline(began_at),
        size=size,
        outcome=outcome,
        subject=Subject(is_directory=is_directory),
    )


RECENT = [
    operation("upload", 1, began_at=1, ended_at=9, size=500),
    operation("retrieve", 2, began_at=2, ended_at=3, size=70, is_directory=True),
    operation("mapupdate", 3, began_at=3, ended_at=4, is_directory=True),
    operation("publish", 4, began_at=4, ended_at=5, size=90, is_directory=True),
    operation("download", 5, began_at=5, ended_at=7, size=40, outcome="failed"),
    operation("retrieve", 6, began_at=6, ended_at=6.5, size=60),
]


def listed(choice: Choice, name_of: NameOf | None = None) -> list[int]:
    """The numbers of the listed operations, in order."""
    html = render_operations([], RECENT, 10.0, choice, name_of)
    require_harmless(html)
    return [int(number) for number in re.findall(r'<th scope="row"><a [^>]*>[A-Za-z ]+ (\d+)</a>', html)]


def test_reads_of_directories_are_left_out_at_first_and_listed_on_request() -> None:
    assert listed(Choice()) == [6, 5, 4, 1]
    assert listed(Choice(everything=True)) == [6, 5, 4, 3, 2, 1]
    html = render_operations([], RECENT, 10.0)
    assert "2 directory reads are hidden." in html and 'href="/status?all=true"' in html
    assert "hidden." not in render_operations([], RECENT, 10.0, Choice(everything=True))


@pytest.mark.parametrize(
    ("choice", "numbers"),
    [
        (Choice(kind="upload"), [1]),
        (Choice(kind="retrieve"), [6]),
        (Choice(kind="mapupdate"), [3]),
        (Choice(state="failed"), [5]),
        (Choice(kind="upload", state="failed"), []),
        (Choice(by="size"), [1, 4, 6, 5]),
        (Choice(by="size", descending=False), [5, 6, 4, 1]),
        (Choice(by="duration"), [1, 5, 4, 6]),
        (Choice(by="started", descending=False), [1, 4, 5, 6]),
        (Choice(by="state", descending=False), [6, 4, 1, 5]),
        (Choice(by="size", everything=True), [1, 4, 2, 6, 5, 3]),
        (Choice(by="what", descending=False), [4, 5, 1, 6]),
    ],
)
def test_operations_are_filtered_and_sorted_by_any_column(choice: Choice, numbers: list[int]) -> None:
    assert listed(choice) == numbers


def test_list_without_operations_of_the_choice_says_so() -> None:
    assert "No operations match." in render_operations([], RECENT, 10.0, Choice(kind="upload", state="failed"))
    assert "Nothing has happened" in render_operations([], [], 10.0)


def test_choice_is_kept_by_the_address_of_the_page_and_its_form() -> None:
    choice = Choice(kind="publish", state="done", everything=True, by="size", descending=False)
    query = dict(pair.split("=") for pair in choice.address().partition("?")[2].split("&"))
    assert parse_choice(query.get) == choice
    document = require_harmless(render_operations([], RECENT, 10.0, choice))
    assert {"by": "size", "order": "asc"}.items() <= {
        each["name"]: each["value"] for each in document.all("input") if each.get("type") == "hidden"
    }.items()
    assert [each["value"] for each in document.all("option") if "selected" in each] == ["publish", "done"]
    assert [each.get("aria-sort") for each in document.all("th")[:6]] == [None, None, "ascending", None, None, None]


@pytest.mark.parametrize("value", ["", "x", "<b>", "upload "])
def test_arguments_of_other_values_count_as_missing(value: str) -> None:
    assert parse_choice(lambda name: value) == Choice() == parse_choice(lambda name: None)


def test_operations_say_what_they_concern_by_name_only_to_those_who_may_see_names() -> None:
    text = require_harmless(render_operations([], RECENT, 10.0)).text
    assert "a directory" in text and "an editable file" in text and "grid web" in text
    names = {1: "a.txt", 4: "holiday", 5: "work:"}
    html = render_operations([], RECENT, 10.0, name_of=lambda operation: names.get(operation.number, ""))
    text = require_harmless(html).text
    assert "Upload 1 a.txt" in text and "Update 4 holiday/" in text and "Download 5 work:" in text
    assert "Read 6 an editable file" in text and "grid web" not in text
