"""The documents hold together: no link leads nowhere, and the index lists every page."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "deploy" / "README.md", ROOT / "perf" / "README.md"]
)
RECORDS = ROOT / "docs" / "decisions"
_LINK = re.compile(r"\]\((?!https?:)([^)#\s]+)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_link_when_followed_leads_somewhere(page: Path) -> None:
    links = _LINK.findall(page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("index", [ROOT / "docs" / "README.md", RECORDS / "README.md"], ids=["docs", "decisions"])
def test_index_when_compared_with_its_folder_lists_every_page(index: Path) -> None:
    listed = {(index.parent / link).resolve() for link in _LINK.findall(index.read_text())}
    mine = {page for page in PAGES if page.is_relative_to(index.parent)}
    if index.parent != RECORDS:
        mine -= {page for page in PAGES if page.parent == RECORDS and page.name != "README.md"}
    assert mine - listed - {index} == set()


@pytest.mark.parametrize("record", sorted(RECORDS.glob("0*.md")), ids=lambda record: record.name)
def test_record_when_listed_in_the_index_has_the_same_title(record: Path) -> None:
    number, title = int(record.name[:4]), record.read_text().splitlines()[0]
    assert title.startswith(f"# {number}. ")
    assert (RECORDS / "README.md").read_text().count(f"- [{number}]({record.name}) {title.partition('. ')[2]}\n") == 1


@pytest.mark.parametrize("record", sorted(RECORDS.glob("0*.md")), ids=lambda record: record.name)
def test_record_when_read_has_the_form_of_all_records(record: Path) -> None:
    text = record.read_text()
    assert re.match(r"# \d+\. \S.*\n\nStatus: (accepted|superseded by \d+), 20\d\d-\d\d-\d\d\.", text)
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == ["Context", "Options considered", "Decision", "Consequences"]
    assert not re.search(r"^## .*\n+(?=## |\Z)", text, re.MULTILINE), "a section is empty"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_diagram_when_read_can_be_drawn_and_names_files_that_exist(page: Path) -> None:
    """A semicolon ends a message of a sequence diagram, and the rest of it is an error."""
    files = [path.as_posix() for path in (ROOT / "src" / "grid").rglob("*.py")]
    for diagram in re.findall(r"^```mermaid\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
        assert ";" not in diagram
        assert [
            name for name in re.findall(r"[\w/]+\.py", diagram) if not any(f.endswith("/" + name) for f in files)
        ] == []


def test_numbers_in_the_readme_when_looked_up_are_those_of_the_performance_page() -> None:
    rows = [row for row in (ROOT / "README.md").read_text().splitlines() if re.match(r"\| [^|]+ \| [\d.]+ \S+ \|", row)]
    measured = (ROOT / "docs" / "performance" / "README.md").read_text()
    assert len(rows) == 5
    for row in rows:
        _, _, grid, peer, _ = (cell.strip() for cell in row.split("|"))
        assert re.search(rf"^\|.*\| {re.escape(grid)} \|.*\| {re.escape(peer)} \|", measured, re.MULTILINE), row


def test_table_of_packages_in_the_architecture_is_up_to_date() -> None:
    made = subprocess.run(
        [sys.executable, "-c", "import room_map; print(room_map.with_table(room_map.PAGE.read_text()), end='')"],
        cwd=ROOT / "scripts",
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert made == (ROOT / "ARCHITECTURE.md").read_text(), "run python scripts/room_map.py"


@pytest.mark.parametrize(
    ("words", "anchor", "file"),
    [
        ("a slow server is hedged", "where-a-slow-server-is-hedged", "src/grid/immutable/read/get_plan.py"),
        ("GET /file/CAP", "a-get-at-the-gateway", "src/grid/gateway/files/file_resource.py"),
        ("Which bytes a server checks", "which-bytes-a-server-checks", "src/grid/storage/files/containers.py"),
    ],
)
def test_question_of_a_stranger_is_answered_two_links_from_the_readme(words: str, anchor: str, file: str) -> None:
    readme = " ".join((ROOT / "README.md").read_text().split())
    assert words in readme and f"](ARCHITECTURE.md#{anchor})" in readme
    sections = re.split(r"\n###? ", (ROOT / "ARCHITECTURE.md").read_text())
    (section,) = [each for each in sections if each.split("\n")[0].lower().replace(" ", "-") == anchor]
    assert f"]({file})" in section


def test_function_when_the_architecture_names_its_file_is_there() -> None:
    text = " ".join((ROOT / "ARCHITECTURE.md").read_text().split())
    named = re.findall(r"((?:`[\w.]+`(?:, | and )?)+) in \[[^\]]+\]\((src/[^)]+\.py)\)", text)
    assert len(named) >= 5
    for functions, file in named:
        source = (ROOT / file).read_text()
        for function in re.findall(r"[\w.]+", functions.replace(" and ", " ")):
            assert re.search(rf"\b(def|class) {function.rpartition('.')[2]}\b", source), (function, file)
