"""Slow processors and media: in force during a run, and removed after it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from perf.network.control_groups import find_controller
from perf.network.media import MEDIA, OnMedium
from perf.network.processors import Limits, Slowed
from perf.network.site import MEDIA as NAMES
from perf.network.site import Site
from perf.network.topologies import make_topology
from tests.perf.network.conftest import expect

MEDIUM_NEEDS = {
    "tmpfs": (),
    "ext4": ("losetup", "mkfs.ext4", "loop devices"),
    "xfs": ("losetup", "mkfs.xfs", "loop devices"),
    "sshfs": ("sshfs", "sshd", "FUSE"),
    "sshfs-aes128-gcm": ("sshfs", "sshd", "FUSE"),
    "throttled": ("losetup", "mkfs.ext4", "loop devices", "disk limits"),
    "delayed": ("losetup", "mkfs.ext4", "loop devices", "nbdkit", "nbdfuse", "FUSE"),
}

_SPIN = "import time\nwhile time.process_time() < 0.3: pass"


def test_processor_when_a_server_is_limited_is_held_back_and_the_client_is_not() -> None:
    expect("root", "processor limits")
    with Slowed(Limits(server=0.1), servers=2) as slow:
        hosts = slow.placement.servers
        assert slow.placement.client.prefix == ()
        subprocess.run(hosts[0].command(["python3", "-c", _SPIN]), check=True)
        throttled = slow.found()["throttled"]
        assert throttled["server0"]["nr_throttled"] > 10 * (throttled["server1"]["nr_throttled"] + 1)
    mount, _ = find_controller("cpu")
    assert not list(mount.glob(f"gridperf-{os.getpid()}-*"))


def test_processes_of_a_host_without_aes_run_openssl_without_it() -> None:
    expect("root", "processor limits")
    with make_topology(Site(topology="slow-client", client_cpu=0.1, aes=False), 3) as slow:
        assert "OPENSSL_ia32cap" in slow.placement.client.environment
        limits = slow.found()["limits"]
        assert (limits["client"], limits["server"], limits["aes"]) == (0.1, 0.0, False)


@pytest.mark.parametrize("medium", ["tmpfs", "ext4", "throttled"])
def test_medium_is_mounted_for_the_run_and_gone_after_it(tmp_path: Path, medium: str) -> None:
    expect("root", *MEDIUM_NEEDS[medium])
    assert MEDIUM_NEEDS.keys() == MEDIA.keys() == set(NAMES)
    with OnMedium(medium, directory=tmp_path) as on_medium:
        (host,) = on_medium.placement.servers
        assert host.directory is not None
        assert os.path.ismount(host.directory)
        target = host.directory / "written"
        subprocess.run(host.command(["cp", "/etc/hostname", str(target)]), check=True)
        assert target.exists()
        found = on_medium.found()
        assert found["medium"] == medium
        assert all(rate > 0 for rate in found["synchronous_writes"][0].values())
    assert not list(tmp_path.iterdir())
    assert str(tmp_path) not in Path("/proc/self/mounts").read_text()


def test_medium_of_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="sshfs"):
        make_topology(Site(medium="floppy"), 3)
