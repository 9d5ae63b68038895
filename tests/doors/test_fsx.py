"""fsx, the file system exerciser, on a file in a directory that sshfs mounts from the door of a real grid."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from perf.processes.node_process import child_environment
from tests.doors.grid import program
from tests.doors.sftp_grid import Door, mounted, opened_door

pytestmark = [pytest.mark.doors, pytest.mark.timeout(1200)]

OPERATIONS = 10_000
SEED = 20261123
FSX_S = 900.0

FSX = """
[weights]
close_open = 0.05
fsync = 0.05
read = 10
write = 10
mapread = 5
mapwrite = 5
truncate = 5
"""


def test_fsx_finds_no_wrong_byte_in_10000_operations(tmp_path: Path) -> None:
    with opened_door(tmp_path / "door") as door, mounted(door, tmp_path) as mount:
        exercise(door, mount, tmp_path)


def exercise(door: Door, mount: Path, tmp_path: Path) -> None:
    """Run fsx on a file of the mount, and compare what it left with what the grid has."""
    (tmp_path / "fsx.toml").write_text(FSX)
    words = [
        program("fsx"),
        "-N",
        str(OPERATIONS),
        "-S",
        str(SEED),
        "-f",
        str(tmp_path / "fsx.toml"),
        "-P",
        str(tmp_path),
    ]
    done = subprocess.run(
        [*words, str(mount / "fsx")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, text=True,
        env=child_environment(), timeout=FSX_S,
    )  # fmt: skip
    assert done.returncode == 0 and "All operations completed" in done.stdout, done.stdout[-4000:]
    wanted = (mount / "fsx").read_bytes()
    door.door.client.run("get", door.in_grid("fsx"), str(tmp_path / "back"))
    assert (tmp_path / "back").read_bytes() == wanted
