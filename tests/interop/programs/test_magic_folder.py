"""magic-folder 24.3.0 syncs folders of three participants: two on Grid's gateway, one on a client node of 1.20.

They meet by invites, through a mailbox server of their own. What is waited for is what anybody would see in the folders.
"""

from __future__ import annotations

import json
import random
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field

from perf.processes.clients import COMMAND_S, run_command
from perf.processes.node_process import child_environment, free_ports, wait_until
from perf.processes.process_grid import ClientSettings, ProcessGrid
from tests.interop.programs.conftest import program
from tests.support.mailbox import mailbox_server
from tests.support.warm_programs import warm_script

pytestmark = pytest.mark.interop

FOLDER = "shared"
SPREAD_S = 25.0
"""Scans and polls come every second; each change takes several directories' reads and writes besides."""

ROUNDS = 6
"""magic-folder 24.3.0 fails on mistakes of its own where one poll tells it twice of a snapshot, by two participants, and above
all of a deletion, and learns nothing more then until it is started again. Those that said so, and no others, are."""

QUIET_S = 4.0
ATTEMPTS = 4
"""A daemon learns of a new file from each of those who have it, and takes a change made in between for a conflict, wherever
its node is: it is given the time for a few polls, and where that was not enough, another file."""

ODD_NAMES = ("with space.txt", "n\u00e4me", "quote'\"s", "percent%41", "\u96ea", "deep/er/file")


def warm_magic_folder() -> str:
    """The path of its command; only daemons start afresh."""
    return warm_script(program("magic-folder"))


@define
class Daemon:
    """A process that ends with its stdin, as magic-folder's daemon does."""

    command: Sequence[str]
    log: Path
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)
    defects: int = field(default=0, init=False)

    def has_new_defect(self) -> bool:
        """Whether it has reported an error of its own since the last call."""
        before, self.defects = self.defects, self.log.read_text(errors="replace").count("Unhandled")
        return self.defects > before

    def start(self) -> None:
        """Run it."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command,
                cwd=self.log.parent,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=child_environment(),
            )

    def stop(self) -> None:
        """End it."""
        if self.process is not None:
            self.process.kill()
            self.process.communicate()


@define
class Participant:
    """magic-folder's daemon on a client node, with its configuration, and the folder that it keeps."""

    name: str
    daemon: Daemon
    configuration: Path
    folder: Path
    port: int

    def run(self, *arguments: str) -> str:
        """What the command line prints."""
        return run_command([warm_magic_folder(), "--config", str(self.configuration), *arguments]).decode()

    def files(self) -> dict[str, bytes]:
        """What is in the folder."""
        return {
            path.relative_to(self.folder).as_posix(): path.read_bytes()
            for path in self.folder.rglob("*")
            if path.is_file() and not path.name.endswith((".tmp", ".temp"))
        }

    def asked(self, what: str) -> Any:
        """What the daemon answers about the folder."""
        token = (self.configuration / "api_token").read_text().strip()
        address = f"http://127.0.0.1:{self.port}/v1/magic-folder/{FOLDER}/{what}"
        request = urllib.request.Request(address, headers={"Authorization": f"Bearer {token}"})
        try:
            with urllib.request.urlopen(request, timeout=COMMAND_S) as answer:
                return json.load(answer)
        except urllib.error.HTTPError:
            raise
        except OSError:
            return {}  # It is about to start.

    def recorded(self) -> dict[str, int | None]:
        """The files that the daemon has done with, and their sizes."""
        return {entry["relpath"]: entry["size"] for entry in self.asked("file-status") or ()}

    def log(self) -> str:
        """The end of the daemon's output."""
        lines = self.daemon.log.read_text(errors="replace").splitlines()
        return "\n".join([line for line in lines if '" 200 ' not in line][-40:])


def have(participants: Sequence[Participant], files: Mapping[str, bytes | None]) -> bool:
    """Wait until all have these files, and their daemons know it; False if one of them has a conflict instead.

    files: None for one that they have no longer.
    """
    sizes = {name: None if contents is None else len(contents) for name, contents in files.items()}

    def has(one: Participant) -> bool:
        found = one.files()
        return {name: found.get(name) for name in files} == dict(files) and sizes.items() <= one.recorded().items()

    def conflict() -> bool:
        return any(files.keys() & one.asked("conflicts").keys() for one in participants)

    def settled() -> bool:
        return all(has(one) for one in participants) or conflict()

    for _ in range(ROUNDS):
        try:
            wait_until(settled, f"{sorted(files)} to be with everybody", SPREAD_S)
        except TimeoutError:
            stuck = [one.daemon for one in participants if one.daemon.has_new_defect()]
            for daemon in stuck:
                daemon.stop()
                daemon.start()
        else:
            return not conflict()
    found = {one.name: (sorted(one.files()), one.recorded(), one.asked("conflicts")) for one in participants}
    raise AssertionError(f"{sorted(files)}: {found}\n" + "\n".join(one.log() for one in participants))


@pytest.fixture(scope="module")
def participants(grid: ProcessGrid, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Participant]]:
    """alice and bob on one gateway of Grid, carol on 1.20."""
    program("magic-folder")
    root = tmp_path_factory.mktemp("magic")
    ours = grid.start_client(ClientSettings(kind="grid", needed=1, happy=1, total=2, gateway=True))
    theirs = grid.start_client(ClientSettings(kind="tahoe", needed=1, happy=1, total=2))
    for client in (ours, theirs):
        grid.wait_connected(client)
    started: list[Daemon] = []
    found = []
    with mailbox_server(root) as mailbox:
        try:
            for name, client, port in zip(("alice", "bob", "carol"), (ours, ours, theirs), free_ports(3), strict=True):
                found.append(make_participant(root, name, client.directory, port, mailbox))
                started.append(found[-1].daemon)
            for one in found:
                wait_until(lambda one=one: "Magic Folder setup" in one.log(), f"{one.name}'s daemon")  # type: ignore[misc]
                one.run("set-config", "--enable", "invites")
            gather(found)
            yield found
        finally:
            for daemon in reversed(started):
                daemon.stop()


def make_participant(root: Path, name: str, node: Path, port: int, mailbox: str) -> Participant:
    """A daemon that was started, and its folder, which it does not know yet."""
    configuration, folder = root / f"{name}.config", root / name
    folder.mkdir()
    options = ["--config", str(configuration)]
    endpoints = ["-l", f"tcp:{port}:interface=127.0.0.1", "-c", f"tcp:127.0.0.1:{port}"]
    run_command([warm_magic_folder(), *options, "init", *endpoints, "-n", str(node), "-m", mailbox])
    daemon = Daemon([program("magic-folder"), *options, "run"], root / f"{name}.log")
    daemon.start()
    return Participant(name, daemon, configuration, folder, port)


def gather(participants: Sequence[Participant]) -> None:
    """The first makes the shared folder, and invites the others."""
    first, *others = participants
    pace = ["--poll-interval", "1", "--scan-interval", "1"]
    first.run("add", "--name", FOLDER, "--author", first.name, *pace, str(first.folder))
    for other in others:
        invite = subprocess.Popen(
            [warm_magic_folder(), "--config", str(first.configuration), "invite", "--folder", FOLDER, other.name],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.PIPE,
            env=child_environment(),
            text=True,
        )
        assert invite.stdout is not None
        code = ""
        said: list[str] = []
        while not code:
            line = invite.stdout.readline()
            assert line, said
            said.append(line)
            words = [word.strip("'\".,") for word in line.split()]
            code = next((word for word in words if word.count("-") >= 2 and word[0].isdigit()), "")
        other.run("join", "--name", FOLDER, "--author", other.name, *pace, code, str(other.folder))
        rest, _ = invite.communicate(timeout=COMMAND_S)
        assert invite.returncode == 0, (said, rest)


def test_files_when_added_by_anyone_come_to_everybody(participants: list[Participant]) -> None:
    added: dict[str, bytes] = {}
    for index, one in enumerate(participants):
        mine = {f"{one.name}: {name}": name.encode() * (index + 1) for name in ODD_NAMES if "/" not in name}
        for name, contents in mine.items():
            (one.folder / name).write_bytes(contents)
        added |= mine
    (participants[0].folder / "deep" / "er").mkdir(parents=True)
    (participants[0].folder / "deep" / "er" / "file").write_bytes(b"deep")
    (participants[1].folder / "empty").touch()
    assert have(participants, {**added, "deep/er/file": b"deep", "empty": b""})


@pytest.mark.nightly("tests/interop/programs/test_magic_folder.py::test_files_when_added_by_anyone_come_to_everybody")
def test_file_of_20_mb_when_added_on_grid_comes_to_1_20_and_is_the_same(participants: list[Participant]) -> None:
    contents = random.Random(20).randbytes(20_000_000)
    (participants[0].folder / "large").write_bytes(contents)
    assert have(participants, {"large": contents})


@pytest.mark.parametrize("editor", [0, pytest.param(2, marks=pytest.mark.deep)], ids=["on-grid", "on-1.20"])
def test_file_when_edited_and_then_deleted_changes_for_everybody(participants: list[Participant], editor: int) -> None:
    edited = participants[editor]
    for number in range(ATTEMPTS):
        name = f"edited by {edited.name} {number}"
        (participants[1].folder / name).write_bytes(b"first")
        have(participants, {name: b"first"})
        time.sleep(QUIET_S)
        (edited.folder / name).write_bytes(b"second, longer")
        if not have(participants, {name: b"second, longer"}):
            continue
        time.sleep(QUIET_S)
        (edited.folder / name).unlink()
        if have(participants, {name: None}):
            return
    raise AssertionError(f"a conflict at each of {ATTEMPTS} attempts:\n{edited.log()}")


@pytest.mark.nightly(
    "tests/interop/programs/test_magic_folder.py::test_file_when_edited_and_then_deleted_changes_for_everybody"
)
def test_file_when_two_edit_it_at_once_is_kept_in_both_versions(participants: list[Participant]) -> None:
    alice, _, carol = participants
    (alice.folder / "contested").write_bytes(b"common")
    assert have(participants, {"contested": b"common"})
    time.sleep(QUIET_S)
    (alice.folder / "contested").write_bytes(b"by alice")
    (carol.folder / "contested").write_bytes(b"by carol!")

    def both_are_there() -> bool:
        found = {contents for one in participants for name, contents in one.files().items() if "contested" in name}
        return {b"by alice", b"by carol!"} <= found and any(
            "conflict" in name for one in participants for name in one.files()
        )

    wait_until(both_are_there, "a conflict to be reported", ROUNDS * SPREAD_S)


def test_folder_when_all_is_done_is_still_there_with_everybody(participants: list[Participant]) -> None:
    for one in participants:
        listed = json.loads(one.run("list", "--json"))
        assert FOLDER in listed
        assert one.files().keys() >= {"deep/er/file", "empty"}
