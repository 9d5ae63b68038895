"""Files that clients store, and comparison with what they read back."""

from __future__ import annotations

from pathlib import Path


def make_files(folder: Path) -> Path:
    """Files whose sizes fit a literal, one share message, and several parts; the folder."""
    (folder / "deep er").mkdir(parents=True)
    for name, size in (("empty", 0), ("small", 40), ("deep er/middle \u00e9", 20_000), ("large", 12_000_000)):
        (folder / name).write_bytes((name.encode() * (size // 5 + 1))[:size])
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
