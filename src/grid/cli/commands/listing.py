"""The lines of `grid ls`. Pure. [spec cli 2.3]"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from attrs import frozen

from grid.caps import ChkCap, DirectoryCap, LitCap, UnknownChild
from grid.cli.terminal.quoting import plain
from grid.directory.metadata import Metadata
from grid.directory.pack import Child

HALF_A_YEAR_S = 180 * 24 * 3600


@frozen(kw_only=True)
class Columns:
    """Which columns are shown beside the name."""

    long: bool = False
    classify: bool = False
    uri: bool = False
    readonly_uri: bool = False


def listing_lines(children: Mapping[str, Child], columns: Columns, now: float) -> list[str]:
    """One line for each child, in the order of their names."""
    rows = [_row(name, child, columns, now) for name, child in sorted(children.items())]
    if not rows:
        return []
    aligned = []
    for column in zip(*rows, strict=True):
        width = max(map(len, column))
        left = len(rows[0]) == 1 or any(value.startswith("URI") for value in column)
        aligned.append([value.ljust(width) if left else value.rjust(width) for value in column])
    return [" ".join(row).rstrip() for row in zip(*aligned, strict=True)]


def _row(name: str, child: Child, columns: Columns, now: float) -> Sequence[str]:
    read, write = _cap_texts(child)
    row = [_mode(child, read, write), _size(child), _date(child.metadata, now)] if columns.long else []
    row.append(plain(name) + (_mark(child, write) if columns.classify else ""))
    if columns.uri:
        row.append(write or read or "-")
    if columns.readonly_uri:
        row.append(read or "-")
    return row


def _cap_texts(child: Child) -> tuple[str, str]:
    """The read cap and the write cap, empty where there is none."""
    target = child.target
    if isinstance(target, UnknownChild):
        return (target.read or b"").decode("utf-8", "replace"), (target.write or b"").decode("utf-8", "replace")
    read = "" if target.authority == "verify" else target.read_cap().to_string()
    return read, target.to_string() if target.authority == "write" else ""


def _mode(child: Child, read: str, write: str) -> str:
    is_directory = isinstance(child.target, DirectoryCap)
    kind = "?" if isinstance(child.target, UnknownChild) else "d" if is_directory else "-"
    return kind + ("r" if read else "-") + ("w" if write else "-") + ("x" if is_directory else "-")


def _size(child: Child) -> str:
    match child.target:
        case DirectoryCap():
            return "-"
        case LitCap() | ChkCap():
            return str(child.target.size)
        case _:
            return "?"


def _date(metadata: Metadata, now: float) -> str:
    times = metadata.get("tahoe")
    made = times.get("linkcrtime") if isinstance(times, Mapping) else None
    if made is None:
        made = metadata.get("ctime")
    if not isinstance(made, int | float) or isinstance(made, bool):
        return "-"
    try:
        when = time.localtime(made)
    except (OverflowError, ValueError, OSError):
        return "-"
    return time.strftime("%b %d  %Y" if now - made > HALF_A_YEAR_S else "%b %d %H:%M", when)


def _mark(child: Child, write: str) -> str:
    if isinstance(child.target, DirectoryCap):
        return "/"
    if isinstance(child.target, UnknownChild):
        return "?"
    return "*" if write else ""
