"""A real grid of ten storage nodes whose client has the SFTP door open, configured as a node of 1.20."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from attrs import frozen

from perf.processes.node_directory import Kind
from perf.processes.node_process import child_environment, wait_until
from perf.processes.open_doors import SftpDoor, open_sftp_door
from perf.processes.process_grid import ClientSettings, ProcessGrid

COMMAND_S = 300.0
HOST = "alice@127.0.0.1"


@frozen
class Door:
    """A grid and its door."""

    grid: ProcessGrid
    door: SftpDoor

    @property
    def port(self) -> int:
        """Where it listens."""
        return self.door.port

    @property
    def key(self) -> Path:
        """The account's private key."""
        return self.door.key

    def in_grid(self, path: str) -> str:
        """The account's file as commands name it."""
        return f"{self.door.root}/{path}"

    @property
    def ssh_options(self) -> list[str]:
        """What every program of OpenSSH is given: the key, and nothing of the user's own."""
        options = (
            "StrictHostKeyChecking=no",
            "UserKnownHostsFile=/dev/null",
            "IdentitiesOnly=yes",
            "BatchMode=yes",
            f"IdentityFile={self.key}",
            f"Port={self.port}",
        )
        return ["-F", "none", *(word for option in options for word in ("-o", option))]

    def openssh(self, program: str, folder: Path, *words: str, commands: str = "") -> str:
        """Run sftp or scp in a folder; returns its output. AssertionError if it fails."""
        done = self.try_openssh(program, folder, *words, commands=commands)
        assert done.returncode == 0, done.stdout
        return done.stdout

    def try_openssh(
        self, program: str, folder: Path, *words: str, commands: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """The same, even if it fails."""
        batch = ["-b", "-"] if program == "sftp" else []
        return run([required(program), *self.ssh_options, *batch, *words], folder, commands)


def required(program: str) -> str:
    """The path of a program of Debian's; without it the test is skipped."""
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not installed")
    return found


def require_mounts() -> None:
    """Skip the test where file systems cannot be mounted."""
    if not os.access("/dev/fuse", os.W_OK):
        pytest.skip("there is no /dev/fuse that we may use")


def run(words: list[str], folder: Path, data: str = "") -> subprocess.CompletedProcess[str]:
    """Run a program, and keep its output."""
    return subprocess.run(
        words, check=False, cwd=folder, input=data, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        timeout=COMMAND_S, env=child_environment(),
    )  # fmt: skip


@contextmanager
def opened_door(folder: Path, *, storage_count: int = 10) -> Iterator[Door]:
    """A grid and its door, until the context ends."""
    needed, happy = min(3, storage_count), min(7, storage_count)
    settings = ClientSettings(kind="grid", needed=needed, happy=happy, total=storage_count)
    storage: list[Kind] = ["grid"] * storage_count
    with ProcessGrid(folder / "grid", introducer="grid", storage=storage, force_foolscap=False) as grid:
        door = open_sftp_door(grid, settings, folder / "alice")
        try:
            yield Door(grid, door)
        finally:
            door.node.stop()


@contextmanager
def mounted(door: Door, folder: Path) -> Iterator[Path]:
    """The account's directory, mounted with sshfs; skipped where file systems cannot be mounted."""
    mount = folder / "mnt"
    mount.mkdir()
    require_mounts()
    options = [word for word in door.ssh_options if word not in ("-F", "none")]
    words = [required("sshfs"), "-F", "/dev/null", *options, f"{HOST}:/", str(mount)]
    done = run(words, folder)
    if "fusermount" in done.stdout or "fuse:" in done.stdout:
        pytest.skip(f"sshfs cannot mount here: {done.stdout[:200]}")
    assert done.returncode == 0, done.stdout
    try:
        wait_until(mount.is_mount, "the mount", 10.0)
        yield mount
    finally:
        subprocess.run([required("fusermount3"), "-u", "-z", str(mount)], check=False)
