"""The parts of a directory's page for backups: the way to the snapshots, and the snapshots with what is known of each. Pure.

Anyone who can write the directory can write what `grid backup` recorded beside a link: it is shown, and never trusted.
(decision 300)
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

from grid.caps import DirectoryCap
from grid.directory.pack import Child
from grid.directory.snapshots import ARCHIVES, LATEST, Snapshot, snapshots_of
from grid.gateway.pages.markup import Markup, icon, join, size_text, tag, time_mark, time_text
from grid.gateway.pages.shell import card
from grid.plural import counted

MAX_SHOWN = 50
"""Snapshots that the card lists, the newest first; the list of entries below it has them all."""

LONGEST_SHOWN = 200
"""Characters shown of a machine's or directory's name, or of a tag."""

MAX_TAGS = 5


def way_to_snapshots(children: Mapping[str, Child], base: str) -> Markup | None:
    """The link from a backup to its snapshots; None if the directory is no backup. base: its address, "" for this page's."""
    archives = children.get(ARCHIVES)
    if LATEST not in children or archives is None or not isinstance(archives.target, DirectoryCap):
        return None
    return tag("a", icon("undo"), "Snapshots", href=f"{base}{ARCHIVES}/", class_="button quiet")


def snapshots_card(children: Mapping[str, Child], base: str) -> Markup | None:
    """The snapshots among the entries, the newest first; None if there are none. base: see `way_to_snapshots`."""
    found = snapshots_of(children)[::-1]
    if not found:
        return None
    rest = len(found) - MAX_SHOWN
    more = tag("p", f"The list below has {counted(rest, 'older one')}, too.", class_="hint") if rest > 0 else None
    words = tag(
        "p", "Open a snapshot to see or download its files. ", tag("code", "grid restore"), " restores all of them."
    )
    rows = [_row(each, f"{base}{quote(each.name, safe='')}/") for each in found[:MAX_SHOWN]]
    return card("Snapshots", words, tag("ul", rows, class_="rows"), more, id="snapshots")


def _row(snapshot: Snapshot, address: str) -> Markup:
    made = time_text(snapshot.made_at.timestamp())
    incomplete = None if snapshot.note.is_complete else tag("span", "Incomplete", class_="badge")
    archive = tag(
        "a", icon("download"), "ZIP", href=f"{address}?t=zip", class_="button quiet", download=True,
        aria_label=f"Download {made} as ZIP",
    )  # fmt: skip
    about = tag("div", tag("a", time_mark(snapshot.made_at.timestamp()), href=address), tag("small", _about(snapshot)))
    return tag("li", about, incomplete, archive)


def _about(snapshot: Snapshot) -> Markup:
    """What the backup recorded, as far as it did."""
    note = snapshot.note
    origin = [tag("bdi", part[:LONGEST_SHOWN]) for part in (note.host, note.directory) if part]
    facts = [join(*origin[:1], ":" if origin[1:] else None, *origin[1:])] if origin else []
    if note.files is not None:
        facts.append(join(counted(note.files, "file")))
    if note.size is not None:
        facts.append(join(size_text(note.size)))
    facts += [tag("bdi", f"#{name[:LONGEST_SHOWN]}") for name in note.tags[:MAX_TAGS]]
    separated = [part for fact in facts for part in (", ", fact)]
    return join(*separated[1:])
