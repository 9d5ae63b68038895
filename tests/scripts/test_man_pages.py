"""The man pages that make_man.py writes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGES = sorted((Path(__file__).resolve().parents[2] / "docs" / "man").glob("*.1"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page_ends_with_exit_statuses_files_and_pages_that_exist(page: Path) -> None:
    text = page.read_text()
    assert re.findall(r"^\.SH (.*)$", text, re.MULTILINE)[-3:] == ["EXIT STATUS", "FILES", "SEE ALSO"]
    named = re.findall(r"\\fB([^\n]*?)\\fP\(1\)", text.partition(".SH SEE ALSO")[2])
    pages = {each.stem for each in PAGES}
    assert {name.replace("\\-", "-") for name in named} <= pages - {page.stem}
    assert named or page.stem == "grid"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page_has_no_control_characters_and_shows_examples_as_they_are_typed(page: Path) -> None:
    text = page.read_text()
    assert not re.search(r"[\x00-\x09\x0b-\x1f]", text)
    lines = text.partition(".SH EXAMPLES\n.nf\n")[2].partition("\n.fi\n")[0].splitlines()
    is_group = "\n.SH COMMANDS\n" in text
    assert len(lines) == (0 if is_group else 3) and "Examples:" not in text
    assert all("'" not in line and not re.search(r"(?<!\\)-", line) for line in lines)


def test_two_names_of_one_command_are_each_explained_in_the_list_of_commands() -> None:
    text = next(page for page in PAGES if page.stem == "grid").read_text()
    listed = dict(re.findall(r"^\\fB(\w+)\\fP\n +(.*)$", text.partition(".SH COMMANDS")[2], re.MULTILINE))
    assert (listed["rm"], listed["unlink"]) == ("remove a file or directory", "the same as rm")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_name_of_a_page_is_followed_by_one_short_phrase(page: Path) -> None:
    name, phrase = page.read_text().partition(".SH NAME\n")[2].splitlines()[0].split(" \\- ", 1)
    assert name.replace("\\-", "-") == page.stem
    assert phrase[0].islower() and ". " not in phrase and len(phrase) < 100


def test_meaning_of_an_exit_code_for_one_command_is_on_its_page_alone() -> None:
    naming = {page.stem for page in PAGES if "incomplete snapshot" in page.read_text().partition(".SH EXIT STATUS")[2]}
    assert naming == {"grid", "grid-backup"}
