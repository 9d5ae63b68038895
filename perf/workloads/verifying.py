"""What came back is what was sent: compared by SHA-256, after what is timed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from attrs import evolve

from perf.workloads.rows import Table


def digests(folder: Path) -> dict[str, str]:
    """Name -> SHA-256, of the files in a folder; nothing if it is not there."""
    found = {}
    for path in sorted(folder.iterdir()) if folder.exists() else []:
        with path.open("rb") as file:
            found[path.name] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def verified(table: Table, sent: Mapping[str, str], back: Mapping[str, str]) -> bool:
    """Whether they are equal; if not, a sample of its own says which file is not, behind the last one that failed to fail."""
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
