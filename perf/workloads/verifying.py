"""Verifies returned files by SHA-256, outside the timed part."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from attrs import evolve

from perf.workloads.rows import Table


def digests(folder: Path) -> dict[str, str]:
    """SHA-256 by name of the files in a folder; empty if it does not exist."""
    found = {}
    for path in sorted(folder.iterdir()) if folder.exists() else []:
        with path.open("rb") as file:
            found[path.name] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def verified(table: Table, sent: Mapping[str, str], back: Mapping[str, str]) -> bool:
    """Whether they are equal; if not, add a failed sample that names the first different file."""
    wrong = [name for name in sent if back.get(name) != sent[name]]
    if not wrong:
        return True
    last = table.samples[-1]
    if last.error:
        return False
    table.add(
        evolve(
            last,
            scenario=f"{last.scenario} (compared)",
            seconds=None,
            error=f"wrong bytes: {len(wrong)} of {len(sent)} files, first {wrong[0]}",
        )
    )
    return False
