"""Finds the installed programs of peers, and those missing, in the index that scripts/make_peers.py writes."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from attrs import frozen

from perf.network.contract import Ability

PROGRAMS = (
    "cp",
    "scp",
    "sftp",
    "sshfs",
    "ssh",
    "sshd",
    "rclone",
    "s5cmd",
    "awscli",
    "boto3",
    "paramiko",
    "restic",
    "kopia",
    "versitygw",
    "minio",
)
"""Their names in the index of installed peers."""

ADVICE = "`make peers` installs what can be installed here"


class MissingPeerError(Exception):
    """A program that is not installed: a gap in what can be measured, with its name and the reason."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name} is missing: {reason}")
        self.name = name
        self.reason = reason


@frozen
class Program:
    """An installed program. path: its executable."""

    name: str
    path: str
    version: str


def peers_folder() -> Path:
    """Where peers are installed: $GRID_PEERS, or grid-peers in the user's cache."""
    if chosen := os.environ.get("GRID_PEERS"):
        return Path(chosen).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "grid-peers"


def find_program(name: str) -> Program:
    """The program from the index; MissingPeerError."""
    index = peers_folder() / "peers.json"
    try:
        known: Mapping[str, Mapping[str, Mapping[str, str]]] = json.loads(index.read_text())
    except FileNotFoundError:
        raise MissingPeerError(name, ADVICE) from None
    found = known.get("found", {}).get(name)
    if found is None:
        raise MissingPeerError(name, str(known.get("missing", {}).get(name, ADVICE)))
    if not os.access(found["program"], os.X_OK):
        raise MissingPeerError(name, f"{found['program']} is gone; {ADVICE}")
    return Program(name, found["program"], found["version"])


def settle_tahoe() -> str:
    """The `tahoe` that GRID_TAHOE names, which is the installed one from now on if it names none; MissingPeerError."""
    path = os.environ.get("GRID_TAHOE") or find_program("tahoe").path
    if shutil.which(path) is None:
        raise MissingPeerError("tahoe", f"{path} cannot be run")
    os.environ["GRID_TAHOE"] = path
    return path


def abilities() -> Sequence[Ability]:
    """One entry per peer."""
    return [_tahoe(), *map(_installed, PROGRAMS)]


def _installed(name: str) -> Ability:
    try:
        program = find_program(name)
    except MissingPeerError as error:
        return Ability(name=name, available=False, found=error.reason, remedy=f"make peers PEERS={name}")
    return Ability(name=name, available=True, found=f"{program.version}, {program.path}")


def _tahoe() -> Ability:
    tahoe = os.environ.get("GRID_TAHOE", "")
    try:
        installed = find_program("tahoe").path
    except MissingPeerError:
        remedy = "make peers PEERS=tahoe, then set GRID_TAHOE to the path that it prints"
    else:
        remedy = f"set GRID_TAHOE to {installed}"
    available = bool(tahoe) and os.access(tahoe, os.X_OK)
    found = tahoe or "GRID_TAHOE is not set"
    return Ability(name="tahoe", available=available, found=found, remedy="" if available else remedy)
