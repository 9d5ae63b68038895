"""Media for the shares of a topology's servers, each mounted for the run and measured with synchronous writes.

Mounts are in a directory named after the process that made it; each run removes what ended runs left behind.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Self

from attrs import evolve, frozen

from perf.network.contract import Loopback, NetworkError, Placement, Topology
from perf.network.control_groups import ControlGroup
from perf.network.namespaces import PREFIX, dies_with_starter, owner_lives, owner_name, run_tool
from perf.network.secure_shell import mount_over_ssh

IMAGE_BYTES = 8 << 30
"""Size of a file system on a loop device. The image is sparse, so it takes only what is written."""

THROTTLE = 20 << 20
"""Bytes per second of a throttled disk, in each direction."""

DELAY_MS = 5
"""Delay of each write to a delayed disk."""

PROBE_WRITES = ((64 << 20, 1), (1 << 20, 32), (4096, 100))
"""Size and number of the synchronous writes that measure a medium."""

_DD_SECONDS = re.compile(r"copied, ([0-9.e+-]+) s")

READY_S = 20.0
POLL_S = 0.02


@frozen
class Mounted:
    """directory: the medium.

    prefix: for commands that write there, if the limits apply to processes rather than the medium.
    """

    directory: Path
    prefix: tuple[str, ...] = ()


def _tmpfs(work: Path, stack: ExitStack) -> Mounted:
    return Mounted(_mount(work, stack, "-t", "tmpfs", "grid-perf"))


def _ext4(work: Path, stack: ExitStack) -> Mounted:
    return Mounted(_mount(work, stack, str(_format(_loop(work, stack), "ext4"))))


def _xfs(work: Path, stack: ExitStack) -> Mounted:
    return Mounted(_mount(work, stack, str(_format(_loop(work, stack), "xfs"))))


def _sshfs(work: Path, stack: ExitStack, cipher: str = "") -> Mounted:
    far = work / "far"
    far.mkdir()
    mount_over_ssh(work, far, work / "medium", stack, cipher)
    return Mounted(work / "medium")


def _throttled(work: Path, stack: ExitStack) -> Mounted:
    device = _format(_loop(work, stack), "ext4")
    directory = _mount(work, stack, str(device))
    group = stack.enter_context(ControlGroup("blkio", work.name.rpartition("-")[2]))
    group.limit_disk(device, THROTTLE)
    return Mounted(directory, group.prefix)


def _delayed(work: Path, stack: ExitStack) -> Mounted:
    image, export = _image(work), work / "export"
    export.touch()
    for tool in ("nbdfuse", "nbdkit"):
        if shutil.which(tool) is None:
            raise NetworkError(f"{tool} is not installed: apt-get install nbdkit libnbd-bin")
    server = ["nbdkit", "--exit-with-parent", "--filter=delay", "file", str(image), f"wdelay={DELAY_MS}ms"]
    with (work / "nbdfuse.log").open("wb") as log:
        process = subprocess.Popen(
            [*dies_with_starter(), "nbdfuse", str(export), "[", *server, "]"], stderr=log, stdin=subprocess.DEVNULL
        )
    stack.callback(process.wait)
    stack.callback(run_tool, "umount", "-l", str(export))
    _wait(lambda: export.stat().st_size == IMAGE_BYTES, f"nbdfuse: {(work / 'nbdfuse.log')}")
    return Mounted(_mount(work, stack, str(_format(_loop_of(export, stack), "ext4"))))


MEDIA: Mapping[str, Callable[[Path, ExitStack], Mounted]] = {
    "tmpfs": _tmpfs,
    "ext4": _ext4,
    "xfs": _xfs,
    "sshfs": _sshfs,
    "sshfs-aes128-gcm": partial(_sshfs, cipher="aes128-gcm@openssh.com"),
    "throttled": _throttled,
    "delayed": _delayed,
}
"""Media by their names in perf.network.site."""


class OnMedium:
    """Another topology whose storage nodes are on a medium, with all nodes of a host on the same one."""

    def __init__(self, medium: str, inner: Topology | None = None, directory: Path | None = None) -> None:
        """medium: of MEDIA; ValueError if unknown.

        directory: for images and mounts; the temporary directory by default.
        """
        if medium not in MEDIA:
            raise ValueError(f"there is no medium {medium!r}; there are {', '.join(MEDIA)}")
        self.medium = medium
        self._inner: Topology = inner or Loopback()
        self._directory = directory or Path(tempfile.gettempdir())
        self._stack = ExitStack()
        self._placement = Placement()
        self._ceilings: list[dict[str, float]] = []

    @property
    def name(self) -> str:
        """The inner topology's name; the medium is a separate factor."""
        return self._inner.name

    @property
    def placement(self) -> Placement:
        """The inner topology's hosts, each with a directory."""
        return self._placement

    def found(self) -> Mapping[str, Any]:
        """The inner topology's findings, and the rate of synchronous writes on each host, in bytes per second."""
        return {**self._inner.found(), "medium": self.medium, "synchronous_writes": self._ceilings}

    def __enter__(self) -> Self:
        """Build the inner topology, mount, and measure."""
        remove_mounts_left_behind(self._directory)
        with ExitStack() as stack:
            placement = stack.enter_context(self._inner).placement
            hosts = []
            for host in placement.servers:
                mounted = self._make(host.name, stack)
                self._ceilings.append(synchronous_writes(mounted))
                hosts.append(evolve(host, directory=mounted.directory, prefix=(*host.prefix, *mounted.prefix)))
            self._placement = evolve(placement, servers=tuple(hosts))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *details: object) -> None:
        """Unmount and remove everything, and leave the inner topology."""
        self._ceilings.clear()
        self._stack.close()

    def _make(self, host: str, stack: ExitStack) -> Mounted:
        work = self._directory / f"{owner_name(os.getpid())}-{self.medium}-{host}"
        (work / "medium").mkdir(parents=True)
        stack.callback(shutil.rmtree, work)
        return MEDIA[self.medium](work, stack)


def synchronous_writes(mounted: Mounted) -> dict[str, float]:
    """Bytes per second for each size of write; each write is synced before the next begins, like dd with dsync."""
    target = mounted.directory / "probe"
    found = {}
    for size, count in PROBE_WRITES:
        command = [*mounted.prefix, "dd", "if=/dev/zero", f"of={target}", f"bs={size}", f"count={count}", "oflag=dsync"]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}, check=False)
        seconds = _DD_SECONDS.search(done.stderr)
        if done.returncode or seconds is None:
            raise NetworkError(f"cannot measure the medium at {mounted.directory}: {done.stderr.strip()}")
        found[str(size)] = size * count / float(seconds[1])
    target.unlink()
    return found


def remove_mounts_left_behind(directory: Path) -> None:
    """Unmount and remove what ended runs left below the directory."""
    for work in directory.glob(f"{PREFIX}-*"):
        if owner_lives(work.name):
            continue
        inside = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
        for mount in sorted((path for path in inside if path.startswith(f"{work}/")), reverse=True):
            run_tool("umount", "-l", mount)
        for line in run_tool("losetup", "--list", "--noheadings", "--output", "NAME,BACK-FILE").splitlines():
            device, _, backing = line.partition(" ")
            if backing.strip().startswith(f"{work}/"):
                run_tool("losetup", "-d", device)
        shutil.rmtree(work)


def _mount(work: Path, stack: ExitStack, *what: str) -> Path:
    directory = work / "medium"
    run_tool("mount", *what, str(directory))
    # Writers end with their grid, before this; a lazy unmount cannot fail because of leftovers.
    stack.callback(run_tool, "umount", "-l", str(directory))
    return directory


def _image(work: Path) -> Path:
    image = work / "image"
    with image.open("wb") as file:
        file.truncate(IMAGE_BYTES)
    return image


def _loop(work: Path, stack: ExitStack) -> Path:
    return _loop_of(_image(work), stack)


def _loop_of(image: Path, stack: ExitStack) -> Path:
    device = run_tool("losetup", "--find", "--show", str(image)).strip()
    stack.callback(run_tool, "losetup", "-d", device)
    return Path(device)


def _format(device: Path, kind: str) -> Path:
    run_tool(f"mkfs.{kind}", "-q", str(device))
    return device


def _wait(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + READY_S
    while not condition():
        if time.monotonic() > deadline:
            raise NetworkError(f"after {READY_S:.0f} s still waiting for {what}")
        time.sleep(POLL_S)
