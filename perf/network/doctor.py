"""Finds out what this machine can do for a campaign, without changing it, and how to get what is missing."""

from __future__ import annotations

import gzip
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from attrs import frozen

from perf.network.contract import Ability, NetworkError
from perf.network.control_groups import find_controller

CONGESTION_CONTROLS = ("cubic", "bbr")


@frozen(kw_only=True)
class Fact:
    """present: None if it cannot be determined. needed_for: topologies and media. advice: how to get it."""

    name: str
    present: bool | None
    needed_for: str
    advice: str = ""
    detail: str = ""

    def ability(self) -> Ability:
        """The fact as `perf doctor` prints it."""
        found = self.detail or {True: "there", False: "missing", None: "unknown"}[self.present]
        return Ability(
            name=self.name,
            available=bool(self.present),
            found=f"{found}; needed for {self.needed_for}",
            remedy=self.advice,
        )


def facts() -> list[Fact]:
    """All facts, in the order in which a reader would fix them."""
    return [
        Fact(
            name="root",
            present=os.geteuid() == 0,
            needed_for="every topology but loopback, existing and machines",
            advice="run the campaign as root, or in a virtual machine where you are",
        ),
        *_tools(),
        Fact(
            name="TUN devices",
            present=os.access("/dev/net/tun", os.R_OK | os.W_OK),
            needed_for="wan1, wan30, wan100, lossy, adsl",
            advice="modprobe tun; in a container, pass --device /dev/net/tun --cap-add NET_ADMIN",
        ),
        Fact(
            name="netem",
            present=_kernel_has("CONFIG_NET_SCH_NETEM"),
            needed_for="nothing: the emulated line does without it",
        ),
        *_congestion_controls(),
        *_controllers(),
        Fact(
            name="loop devices",
            present=Path("/dev/loop-control").exists(),
            needed_for="media ext4, xfs, throttled, delayed",
            advice="modprobe loop; in a container, pass --privileged",
        ),
        Fact(
            name="FUSE",
            present=Path("/dev/fuse").exists(),
            needed_for="media sshfs, delayed",
            advice="modprobe fuse; in a container, pass --device /dev/fuse",
        ),
        Fact(
            name="page cache can be dropped",
            present=os.access("/proc/sys/vm/drop_caches", os.W_OK),
            needed_for="cold caches",
            advice="run the campaign as root",
        ),
        Fact(
            name="pressure",
            present=Path("/proc/pressure/cpu").exists(),
            needed_for="telling whether the machine was busy",
            advice="a kernel with CONFIG_PSI, started with psi=1",
        ),
    ]


def missing(names: Sequence[str]) -> list[Fact]:
    """Those of these facts that do not hold."""
    return [fact for fact in facts() if fact.name in names and fact.present is False]


LINE_NEEDS = ("root", "ip", "nsenter", "setpriv", "C compiler", "TUN devices")
"""Facts required for emulated links."""


_TOOLS = (
    ("ip", "ip", "all topologies in namespaces", "apt-get install iproute2"),
    ("tc", "tc", "atlas", "apt-get install iproute2"),
    ("nsenter", "nsenter", "all topologies in namespaces", "apt-get install util-linux"),
    ("setpriv", "setpriv", "nodes that end with the campaign", "apt-get install util-linux"),
    ("losetup", "losetup", "media ext4, xfs, throttled, delayed", "apt-get install mount"),
    ("mkfs.ext4", "mkfs.ext4", "media ext4, throttled, delayed", "apt-get install e2fsprogs"),
    ("mkfs.xfs", "mkfs.xfs", "medium xfs", "apt-get install xfsprogs"),
    ("sshfs", "sshfs", "medium sshfs", "apt-get install sshfs"),
    ("sshd", "sshd", "medium sshfs", "apt-get install openssh-server"),
    ("nbdkit", "nbdkit", "medium delayed", "apt-get install nbdkit"),
    ("nbdfuse", "nbdfuse", "medium delayed", "apt-get install libnbd-bin"),
)
"""Name of the fact, program, what needs it, how to get it on Debian."""

_SYSTEM_PATH = ":".join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))


def _tools() -> list[Fact]:
    compiler = shutil.which(os.environ.get("CC", "cc"))
    found = [
        Fact(
            name="C compiler",
            present=compiler is not None,
            needed_for="wan1, wan30, wan100, lossy, adsl",
            advice="apt-get install gcc, or set CC",
            detail=compiler or "",
        )
    ]
    for name, program, needed_for, advice in _TOOLS:
        path = shutil.which(program, path=_SYSTEM_PATH)
        found.append(Fact(name=name, present=path is not None, needed_for=needed_for, advice=advice, detail=path or ""))
    return found


def _congestion_controls() -> list[Fact]:
    """The kernel's congestion controls, even if reserved for root: routes select them, and only root makes routes."""
    has = {name: _kernel_has(f"CONFIG_TCP_CONG_{name.upper()}") for name in CONGESTION_CONTROLS}
    available = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
    listed = available.read_text().split() if available.exists() else []
    return [
        Fact(
            name=f"congestion control {name}",
            present=True if name in listed else has[name],
            needed_for="lossy-bbr" if name == "bbr" else "lossy",
            advice=f"modprobe tcp_{name}",
        )
        for name in CONGESTION_CONTROLS
    ]


def _controllers() -> list[Fact]:
    return [
        _controller("processor limits", lambda: find_controller("cpu"), "slow-server, slow-client"),
        _controller("disk limits", lambda: find_controller("blkio"), "medium throttled"),
        _controller("freezer", lambda: find_controller("freezer"), "freezing what is not measured at once"),
    ]


def _controller(name: str, find: Callable[[], tuple[Path, int]], needed_for: str) -> Fact:
    try:
        mount, version = find()
    except NetworkError as error:
        return Fact(name=name, present=False, needed_for=needed_for, advice=str(error))
    writable = os.access(mount, os.W_OK)
    return Fact(
        name=name,
        present=writable,
        needed_for=needed_for,
        advice="run the campaign as root",
        detail=f"control groups version {version} at {mount}",
    )


def _kernel_has(option: str) -> bool | None:
    """Whether the running kernel was built with this option; None if unknown."""
    try:
        with gzip.open("/proc/config.gz", "rt") as file:
            settings = file.read()
    except OSError:
        return None
    return any(f"{option}={value}\n" in settings for value in "ym")
