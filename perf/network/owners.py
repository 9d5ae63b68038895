"""Directories of a run, named after the process that made them, and removed by later runs if it was killed.

A name says the process's pid and start time, so that a later process with the same pid is another one, and the place: the
machine, and the namespaces in which these numbers hold. A directory is removed only if its name says all this, it is from this place, and
its owner is certainly gone.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Literal

Kind = Literal["run", "record", "node", "client", "soak", "faults"]

_NAME = re.compile(r"grid-perf-(?:run|record|node|client|soak|faults)-(\d+)-(\d+)-([0-9a-f]{8})-\w+")


def started(pid: int) -> str:
    """A process's start time in clock ticks since boot; empty if it does not exist, or nothing is known of it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def owned_prefix(kind: Kind) -> str:
    """The prefix of the name of a directory that this process makes; tempfile adds the rest."""
    return f"grid-perf-{kind}-{os.getpid()}-{started(os.getpid())}-{_place()}-"


def own_directory(kind: Kind, below: Path | None = None) -> tempfile.TemporaryDirectory[str]:
    """A context with a directory of this process. below: in this one instead of that for temporary files."""
    return tempfile.TemporaryDirectory(prefix=owned_prefix(kind), dir=below)


def remove_left_behind(folders: Iterable[Path]) -> list[Path]:
    """Remove the directories of killed runs directly below these; return them. Those with a mount that stays are left."""
    removed = []
    for folder in dict.fromkeys(folder.resolve() for folder in folders):
        with suppress(OSError):
            for path in sorted(folder.glob("grid-perf-*")):
                if _is_left_behind(path) and _unmounted(path):
                    shutil.rmtree(path, ignore_errors=True)
                    removed.append(path)
    return removed


def _is_left_behind(path: Path) -> bool:
    name = _NAME.fullmatch(path.name)
    if name is None or name[3] != _place() or path.is_symlink() or not path.is_dir():
        return False
    return path.stat().st_uid == os.geteuid() and _is_gone(int(name[1]), name[2])


def _is_gone(pid: int, start: str) -> bool:
    """Whether the process with this pid and start time has certainly ended."""
    if now := started(pid):
        return now != start
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass
    return False


@cache
def _place() -> str:
    """Names this machine, and the namespaces of its pids and clocks."""
    parts = [os.uname().nodename]
    for path in ("/etc/machine-id", "/proc/self/ns/pid", "/proc/self/ns/time"):
        with suppress(OSError):
            parts.append(os.readlink(path) if "/ns/" in path else Path(path).read_text().strip())
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:8]


def _unmounted(directory: Path) -> bool:
    """Unmount everything below the directory; return whether nothing is mounted there any more.

    What is mounted there may be another machine's, and is not to be removed.
    """
    for mount in reversed(_mounts(directory)):
        for command in (("umount", "-l"), ("fusermount3", "-u", "-z"), ("fusermount", "-u", "-z")):
            if shutil.which(command[0]) is not None and mount in _mounts(directory):
                subprocess.run([*command, mount], capture_output=True, check=False)
    return not _mounts(directory)


def _mounts(directory: Path) -> list[str]:
    lines = Path("/proc/self/mounts").read_text().splitlines()
    points = [re.sub(r"\\(\d{3})", lambda code: chr(int(code[1], 8)), line.split()[1]) for line in lines]
    return sorted(point for point in points if point.startswith(f"{directory}/"))
