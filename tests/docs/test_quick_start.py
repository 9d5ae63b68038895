"""The ten lines for three machines, run as written on three hosts with their own networks."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from perf.network.contract import Host
from perf.network.line import Access
from perf.network.spokes import Bridged, Spokes
from tests.perf.network.conftest import expect
from tests.support.mailbox import mailbox_server

pytestmark = pytest.mark.documents

PAGE = Path(__file__).resolve().parents[2] / "docs" / "three-machines.md"
NEEDS = ("root", "ip", "nsenter", "setpriv")
DEADLINE_S = 60
TITLES = ("In ten lines", "In ten lines, with a copied FURL")
CODE = re.compile(r"(?<=--join )\S+")


def lines(title: str) -> list[tuple[str, str]]:
    """The machine and the command of each line."""
    block = re.search(rf"^## {title}$.*?^```text\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
    assert block is not None
    return [(name, command) for name, _, command in (line.partition("$ ") for line in block[1].splitlines())]


class Machines:
    """Three hosts with a home directory each. Names of machines in a command become their addresses."""

    def __init__(self, hosts: dict[str, Host], root: Path, mailbox: str) -> None:
        self._hosts, self._root = hosts, root
        programs = root / "programs"
        programs.mkdir()
        for name in hosts:
            (root / name).mkdir()
        copy = programs / "scp"
        copy.write_text(f'#!/bin/sh\nexec cp "$1" "{root}/${{2%:}}/"\n')
        copy.chmod(copy.stat().st_mode | stat.S_IXUSR)
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("GRID_", "PYTHON"))}
        path = os.pathsep.join([str(programs), str(Path(sys.executable).parent), os.environ["PATH"]])
        self._environment = {**kept, "PATH": path, "GRID_WORMHOLE_SERVER": mailbox}

    def home(self, name: str) -> Path:
        """The home directory of a machine."""
        return self._root / name

    def type(self, name: str, command: str) -> subprocess.CompletedProcess[str]:
        """Run a line at a machine until the shell shows its prompt again."""
        for machine, host in self._hosts.items():
            command = command.replace(f"--hostname {machine}", f"--hostname {host.address}")
        return subprocess.run(
            self._hosts[name].command(["bash", "-c", command]),
            cwd=self.home(name),
            env={**self._environment, "HOME": str(self.home(name))},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=DEADLINE_S,
        )

    def insist(self, name: str, command: str) -> str:
        """Type a line until it works, like a user who is faster than the machines; returns its output."""
        deadline = time.monotonic() + DEADLINE_S
        while (done := self.type(name, command)).returncode:
            assert time.monotonic() < deadline, f"{name}$ {command}\n{done.stdout}{done.stderr}"
            time.sleep(0.5)
        return done.stdout

    def invite(self, name: str, command: str) -> tuple[str, subprocess.Popen[str]]:
        """Type a line that shows a code and waits: the code, and what waits."""
        waiting = subprocess.Popen(
            self._hosts[name].command(command.split()),
            cwd=self.home(name),
            env={**self._environment, "HOME": str(self.home(name))},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert waiting.stdout is not None
        return waiting.stdout.readline().strip().rpartition(": ")[2], waiting


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    expect(*NEEDS)
    with Bridged("quick", Spokes(servers=2, client=Access(), server=Access()), rate_s=0) as network:
        placement = network.placement
        hosts = dict(zip(("one", "two", "three"), (placement.client, *placement.servers), strict=True))
        with mailbox_server(tmp_path, host=placement.client) as mailbox:
            yield Machines(hosts, tmp_path, mailbox)


@pytest.mark.parametrize("title", TITLES)
def test_quick_start_has_ten_lines(title: str) -> None:
    assert len(lines(title)) == 10


@pytest.mark.parametrize("title", TITLES)
def test_quick_start_when_typed_at_three_machines_keeps_a_photo_that_any_two_bring_back(
    machines: Machines, title: str
) -> None:
    photo = os.urandom(300_000)
    (machines.home("one") / "photo.jpg").write_bytes(photo)
    code, waiting = "", None
    for name, command in lines(title):
        if " invite " in command:
            code, waiting = machines.invite(name, command)
            continue
        machines.insist(name, CODE.sub(code, command))
        if waiting is not None:
            said, _ = waiting.communicate(timeout=DEADLINE_S)
            assert waiting.returncode == 0 and "has the settings of this grid" in said
            waiting = None
    assert (machines.home("one") / "copy.jpg").read_bytes() == photo
    shown = machines.insist("one", "grid check work:photo.jpg")
    assert "good-shares: 3 (encoding is 2-of-3)" in shown
    if title == TITLES[0]:  # What joined by an invitation has numbers that fit, and stores files, too.
        (machines.home("three") / "note").write_bytes(os.urandom(5000))
        machines.insist("three", "grid -d store put note")
    machines.insist("two", "grid stop store")
    machines.insist("one", "grid get work:photo.jpg again.jpg")
    assert (machines.home("one") / "again.jpg").read_bytes() == photo
