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
_LINK = re.compile(r"\]\((?!https?:)([^)#\s]+)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_link_when_followed_leads_somewhere(page: Path) -> None:
    links = _LINK.findall(page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_index_when_compared_with_the_folder_lists_every_page() -> None:
    index = ROOT / "docs" / "README.md"
    listed = {(index.parent / link).resolve() for link in _LINK.findall(index.read_text())}
    assert {page for page in PAGES if page.is_relative_to(ROOT / "docs")} - listed - {index} == set()


def test_table_of_packages_in_the_architecture_is_up_to_date() -> None:
    made = subprocess.run(
        [sys.executable, "-c", "import room_map; print(room_map.with_table(room_map.PAGE.read_text()), end='')"],
        cwd=ROOT / "scripts",
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert made == (ROOT / "ARCHITECTURE.md").read_text(), "run python scripts/room_map.py"
