"""Control groups of a run, versions 1 and 2: they limit the processes in them, and a command prefix enters them.

A group is named after the process that made it, like a namespace; each run removes those that ended runs left behind.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal

from perf.network.contract import NetworkError
from perf.network.namespaces import PREFIX, owner_lives, owner_name

PERIOD_US = 10_000
"""A short period makes a limited process slow, rather than asleep for a tenth of a second at a time."""

ENDING_S = 5.0

Controller = Literal["cpu", "blkio", "freezer"]

_VERSION_2_NAMES = {"cpu": "cpu", "blkio": "io"}


class ControlGroup:
    """A group that exists while entered as a context manager; processes left in it at the end are killed."""

    def __init__(self, controller: Controller, label: str) -> None:
        """NetworkError if this machine lacks the controller, or denies its use."""
        mount, self.version = find_controller(controller)
        self.path = mount / f"{owner_name(os.getpid())}-{label}"
        self._controller = controller

    def __enter__(self) -> ControlGroup:
        remove_groups_left_behind(self.path.parent)
        try:
            if self.version == 2 and self._controller in _VERSION_2_NAMES:
                wanted = f"+{_VERSION_2_NAMES[self._controller]}"
                (self.path.parent / "cgroup.subtree_control").write_text(wanted)
            self.path.mkdir()
        except OSError as error:
            raise NetworkError(f"cannot make the control group {self.path}: {error.strerror}; run as root") from None
        return self

    def __exit__(self, *details: object) -> None:
        _remove(self.path)

    @property
    def prefix(self) -> tuple[str, ...]:
        """Goes before a command to run in the group."""
        return ("sh", "-c", 'echo $$ >"$0" && exec "$@"', str(self.path / "cgroup.procs"))

    def limit_processor(self, percent: float) -> None:
        """Limit all its processes together to this percentage of one core."""
        quota = round(PERIOD_US * percent / 100)
        if self.version == 2:
            self._set("cpu.max", f"{quota} {PERIOD_US}")
        else:
            self._set("cpu.cfs_period_us", str(PERIOD_US))
            self._set("cpu.cfs_quota_us", str(quota))

    def limit_disk(self, device: Path, bytes_per_second: int) -> None:
        """Limit their reads from and writes to a block device, each."""
        number = device.stat().st_rdev
        name = f"{os.major(number)}:{os.minor(number)}"
        if self.version == 2:
            self._set("io.max", f"{name} rbps={bytes_per_second} wbps={bytes_per_second}")
        else:
            self._set("blkio.throttle.read_bps_device", f"{name} {bytes_per_second}")
            self._set("blkio.throttle.write_bps_device", f"{name} {bytes_per_second}")

    def statistics(self) -> dict[str, int]:
        """Of a processor limit: periods, those in which it throttled the processes, and for how long."""
        lines = (self.path / "cpu.stat").read_text().splitlines()
        return {name: int(value) for name, value in map(str.split, lines)}

    def _set(self, name: str, value: str) -> None:
        try:
            (self.path / name).write_text(value)
        except OSError as error:
            raise NetworkError(f"cannot set {name} to {value!r}: {error.strerror}") from None


def find_controller(controller: Controller) -> tuple[Path, int]:
    """The mount point and version of the controller; NetworkError if it is unavailable."""
    for mount, kind, options in _mounts():
        if kind == "cgroup" and controller in options:
            return mount, 1
        if kind == "cgroup2":
            # Version 2 can freeze any group.
            if controller == "freezer":
                return mount, 2
            controllers = (mount / "cgroup.controllers").read_text().split()
            if _VERSION_2_NAMES[controller] in controllers:
                return mount, 2
    raise NetworkError(
        f"no control groups with the controller {controller!r}: mount them with "
        f"`mount -t cgroup -o {controller} cgroup /sys/fs/cgroup/{controller}`, or version 2 with `mount -t cgroup2`"
    )


def remove_groups_left_behind(mount: Path) -> None:
    """Remove groups of ended runs, and end what still runs in them."""
    for path in mount.glob(f"{PREFIX}-*"):
        if not owner_lives(path.name):
            _remove(path)


def _mounts() -> Iterator[tuple[Path, str, list[str]]]:
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, mount, kind, options, *_ = line.split()
        yield Path(mount), kind, options.split(",")


def _remove(path: Path) -> None:
    deadline = time.monotonic() + ENDING_S
    while path.is_dir():
        for pid in (path / "cgroup.procs").read_text().split():
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        try:
            path.rmdir()
        except OSError:
            # A group is busy until the kernel has reaped its last process.
            if time.monotonic() > deadline:
                raise NetworkError(f"the control group {path} cannot be removed: something runs in it") from None
            time.sleep(0.01)
