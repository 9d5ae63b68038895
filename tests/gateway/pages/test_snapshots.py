"""The snapshots of a backup on the pages of its directories."""

from __future__ import annotations

import pytest

from grid.caps import DirectoryCap, SdmfWriteCap
from grid.directory.pack import Child
from grid.directory.snapshots import SnapshotNote
from grid.gateway.pages.directory import DirectoryView, Shown, render_directory
from grid.gateway.pages.snapshots import MAX_SHOWN, snapshots_card, way_to_snapshots
from tests.gateway.pages.hostile import HOSTILE, require_harmless

HOME = DirectoryCap(SdmfWriteCap(write_key=b"w" * 16, fingerprint=b"f" * 32))


def snapshot(**note: object) -> Child:
    return Child(target=HOME, metadata=SnapshotNote(**note).to_metadata())  # type: ignore[arg-type]


def page(children: dict[str, Child], *, has_slash: bool = True) -> str:
    return render_directory(DirectoryView(cap=HOME, root="URI:x", children=children, shown=Shown(has_slash=has_slash)))


def test_backup_leads_to_its_snapshots_and_other_directories_do_not() -> None:
    backup = {"Archives": Child(target=HOME), "Latest": Child(target=HOME)}
    assert 'href="Archives/"' in page(backup) and ">Snapshots</a>" in page(backup)
    assert 'href="/uri/URI%3Ax/Archives/"' in page(backup, has_slash=False)
    assert way_to_snapshots({"Archives": Child(target=HOME)}, "") is None


def test_snapshots_are_listed_newest_first_with_what_the_backup_recorded_of_them() -> None:
    note = {"host": "laptop", "directory": "/home/ada", "tags": ("a", "b"), "files": 1, "size": 5_000_000}
    html = page({
        "2026-11-23_08:00:00Z": snapshot(**note),
        "2026-11-24_08:00:00Z": snapshot(is_complete=False),
        "notes": Child(target=HOME),
    })  # fmt: skip
    require_harmless(html)
    card = html.partition('id="snapshots"')[2].partition("</section>")[0]
    assert card.index("2026-11-24 08:00 UTC") < card.index("2026-11-23 08:00 UTC") and "notes" not in card
    assert "<bdi>laptop</bdi>:<bdi>/home/ada</bdi>, 1 file, 5.00 MB, <bdi>#a</bdi>, <bdi>#b</bdi>" in card
    assert card.count("Incomplete") == 1
    assert 'href="2026-11-24_08%3A00%3A00Z/"' in card and 'href="2026-11-24_08%3A00%3A00Z/?t=zip"' in card


def test_long_list_of_snapshots_is_cut_and_says_so() -> None:
    children = {f"2026-{month:02}-{day:02}_00:00:00Z": snapshot() for month in range(1, 4) for day in range(1, 29)}
    card = snapshots_card(children, "")
    assert card is not None and card.count("<li>") == MAX_SHOWN and f"{84 - MAX_SHOWN} older ones" in card
    assert snapshots_card({"a": Child(target=HOME)}, "") is None


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_that_a_backup_recorded_becomes_markup(text: str) -> None:
    note = {"host": text, "directory": text, "tags": (text, text)}
    require_harmless(page({"2026-11-23_08:00:00Z": snapshot(**note)}))
