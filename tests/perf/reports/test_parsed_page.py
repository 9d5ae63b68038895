"""The published page and the table of campaigns, read back."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve

from perf.records.record import Record, RecordError
from perf.reports.page import page
from perf.reports.parsed_page import parse_origins, parse_page
from perf.reports.published_texts import section
from perf.sampling.environment import describe
from tests.perf.samples import record

PATH = Path("measured.html")


@pytest.fixture(autouse=True)
def unplotted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perf.reports.page.picture", lambda record, _=None: f"<p>{record.header.campaign}, drawn</p>\n")


def named(name: str, purpose: str = "", **environment: object) -> Record:
    made = record({"c d": [[0.5], [0.6]], "a<": [[1.0], [1.1]], "b": [[1.0], [1.2]]})
    known = {**made.header.environment, **environment}
    header = evolve(
        made.header, campaign=name, environment=known, plan={"purpose": purpose}, systems=("c d", "b", "a<")
    )
    return evolve(made, header=header)


def test_sections_when_read_are_those_that_were_written() -> None:
    records = [named("a<b.c", "<h2> & more\nof it", load=2.0), named("a", modified=True)]
    text = page(records)
    head, sections = parse_page(text, PATH)
    assert head.endswith("</ul></nav>\n")
    assert head + "\n".join(one.html for one in sections) + "\n</main></body></html>\n" == text
    assert [one.campaign for one in sections] == ["a<b.c", "a"]
    assert [one.purpose for one in sections] == ["<h2> & more\nof it", "its record does not say what for"]
    assert [one.systems for one in sections] == [["c d", "b", "a<"]] * 2
    for one, made in zip(sections, records, strict=True):
        assert describe(dict(one.environment)) == describe(dict(made.header.environment))
    assert sections[0].html.startswith('<h2 id="campaign-a-b-c">a&lt;b.c</h2>')


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("</html>\n", "</html>", r"measured\.html: the end of the page is missing"),
        ('<h2 id="campaign-', '<h3 id="campaign-', r"measured\.html has no section of a campaign"),
        ('<h2 id="campaign-a"', '<h2 id="campaign-b"', r"measured\.html: the section of a does not begin with its"),
        ("</p>\n<p class=", "</p><p class=", r"measured\.html: the section of a does not begin with its purpose"),
        ("2 cores", "two or three cores", r"measured\.html: the environment of a: this does not describe"),
        ("2 cores", "two cores", r"measured\.html: the environment of a: invalid literal"),
    ],
)
def test_page_that_is_damaged_is_refused(old: str, new: str, message: str) -> None:
    text = page([named("a", "why")])
    assert old in text
    with pytest.raises(RecordError, match=message):
        parse_page(text.replace(old, new), PATH)


def test_page_with_a_campaign_twice_is_refused() -> None:
    with pytest.raises(RecordError, match=r"measured\.html has several sections of a, b, whose samples"):
        parse_page(page([named(name) for name in ("a", "b", "c", "a", "b")]), PATH)


def test_table_of_campaigns_when_read_has_each() -> None:
    text = f"Before.\n\n{section([named('a', load=1.26), named('b c', modified=True)], [], '')}\n\n| after | it |\n"
    assert parse_origins(text, PATH) == {
        "a": ["a", "2026-01-01T00:00:00Z", "0000000000", "1.3", "2"],
        "b c": ["b c", "2026-01-01T00:00:00Z", "0000000000 (modified)", "", "2"],
    }


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("| campaign |", "| campaigns |", r"README\.md does not have one table that begins with \| campaign \| begun"),
        ("| 1.3 | 2 |", "| 1.3 |", r"README\.md: line 3 is not a row of the table of campaigns"),
    ],
)
def test_table_of_campaigns_that_is_damaged_is_refused(old: str, new: str, message: str) -> None:
    lines = section([named("a", load=1.26)], [], "").split("\n")
    text = "\n".join(
        lines[next(number for number, line in enumerate(lines) if line.startswith("| campaign | begun")) :]
    )
    assert old in text
    with pytest.raises(RecordError, match=message):
        parse_origins(text.replace(old, new), Path("README.md"))
