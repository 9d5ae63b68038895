"""Compares what comes back with what was put, outside the timed part. Wrong bytes are an error of the operation."""

from __future__ import annotations

import hashlib
from pathlib import Path

from perf.peers.contract import PeerError


class WrongBytesError(PeerError):
    """What came back is not what was put; the message names the first different file."""


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digests(folder: Path) -> dict[str, str]:
    """SHA-256 by name of the files in a folder; empty if it does not exist."""
    return {path.name: digest(path) for path in sorted(folder.iterdir())} if folder.exists() else {}


def expect_files(sources: Path, back: Path) -> None:
    """WrongBytesError unless every file of the first folder is in the second with the same bytes."""
    sent, found = digests(sources), digests(back)
    wrong = [name for name in sent if found.get(name) != sent[name]]
    if wrong:
        raise WrongBytesError(f"{len(wrong)} of {len(sent)} files have other bytes, first {wrong[0]}")


def expect_file(source: Path, back: Path) -> None:
    """WrongBytesError unless both files have the same bytes."""
    if digest(source) != digest(back):
        raise WrongBytesError(f"{source.name} has other bytes")
