"""Invitations between Grid and a real 1.20, in both directions, at a server on this machine. [spec cli 4.4]"""

from __future__ import annotations

import configparser
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from grid.node.create import NewClient, create_client
from grid.node.directory import open_directory
from perf.processes.clients import COMMAND_S, run_command
from perf.processes.node_directory import tahoe_executable
from perf.processes.node_process import child_environment, tether, wait_until
from tests.support.mailbox import mailbox_server
from tests.support.warm_programs import warm_program, warm_tahoe

pytestmark = pytest.mark.interop

FURL = "pb://l2rdxsw4e5nqqud4h4cj7uuaz2s6is2e@tcp:grid.example.org:9/ln3ddyjdlt3cxe5uujeubs3ho2cl4jht"
CODE_LINES = ("Invite Code for client: ", "Invitation code for laptop: ")
"""Before the code, from 1.20 and from Grid."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with mailbox_server(tmp_path_factory.mktemp("mailbox")) as url:
        yield url


@pytest.fixture
def inviter(tmp_path: Path) -> Path:
    """A client directory that both programs use."""
    create_client(tmp_path / "inviter", NewClient(introducer_furl=FURL, needed=2, happy=3, total=4))
    return tmp_path / "inviter"


def of_tahoe(server: str, *arguments: str | Path) -> list[str]:
    """A command line of 1.20, which joins."""
    return [warm_tahoe(), f"--wormhole-server={server}", *map(str, arguments)]


def invite_of_tahoe(server: str, directory: Path) -> list[str]:
    """A command line of 1.20, which invites: not started warm, so that it shows the code before it ends."""
    return [tahoe_executable(), f"--wormhole-server={server}", "-d", str(directory), "invite", "laptop"]


def of_grid(*arguments: str | Path) -> list[str]:
    """A command line of Grid."""
    return [warm_program("grid.cli"), *map(str, arguments)]


class Inviting:
    """An inviter that waits, and its code."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            [*tether(), *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**child_environment(), "PYTHONUNBUFFERED": "1"},
            text=True,
        )
        assert self._process.stdout is not None
        self.said = ""
        self.code = ""
        while not self.code:
            line = self._process.stdout.readline()
            assert line, self.said
            self.said += line
            self.code = next((line.removeprefix(words).strip() for words in CODE_LINES if line.startswith(words)), "")

    def end(self) -> int:
        """Its exit code."""
        self.said += self._process.communicate(timeout=COMMAND_S)[0]
        return self._process.returncode


def test_grid_joins_by_an_invitation_of_1_20(server: str, inviter: Path, tmp_path: Path) -> None:
    invited = Inviting(invite_of_tahoe(server, inviter))
    run_command(of_grid("create", "client", "--wormhole-server", server, "--join", invited.code, tmp_path / "new"))
    assert invited.end() == 0 and "Completed successfully" in invited.said
    found = open_directory(tmp_path / "new")
    client = found.settings.client
    assert (found.settings.nickname, client.needed, client.happy, client.total) == ("laptop", 2, 3, 4)
    assert FURL in (found.private / "introducers.yaml").read_text()


def test_1_20_joins_by_an_invitation_of_grid_and_its_node_starts(server: str, inviter: Path, tmp_path: Path) -> None:
    invited = Inviting(of_grid("-d", inviter, "invite", "--wormhole-server", server, "laptop"))
    new = tmp_path / "new"
    run_command(of_tahoe(server, "create-client", "--webport=none", f"--join={invited.code}", new))
    assert invited.end() == 0 and "laptop has the settings of this grid" in invited.said
    config = configparser.ConfigParser()
    config.read(new / "tahoe.cfg")
    client = config["client"]
    assert (client["shares.needed"], client["shares.happy"], client["shares.total"]) == ("2", "3", "4")
    assert config["node"]["nickname"] == "laptop"
    assert FURL in (new / "private" / "introducers.yaml").read_text()
    with (tmp_path / "log").open("wb") as log:
        node = subprocess.Popen(
            [*tether(), tahoe_executable(), "run", "--allow-stdin-close", new],
            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=child_environment(),
        )  # fmt: skip
    try:
        wait_until(lambda: b"client running" in (tmp_path / "log").read_bytes(), "1.20's node")
    finally:
        node.kill()
        node.wait()


def test_storage_nodes_of_both_join_by_invitations_of_the_other(server: str, inviter: Path, tmp_path: Path) -> None:
    invited = Inviting(of_grid("-d", inviter, "invite", "--wormhole-server", server, "laptop"))
    run_command(of_tahoe(server, "create-node", "--hostname=localhost", f"--join={invited.code}", tmp_path / "theirs"))
    assert invited.end() == 0
    invited = Inviting(invite_of_tahoe(server, tmp_path / "theirs"))
    storage = ["create", "storage", "--hostname", "localhost", "--wormhole-server", server]
    run_command(of_grid(*storage, "--join", invited.code, tmp_path / "ours"))
    assert invited.end() == 0
    found = open_directory(tmp_path / "ours")
    assert found.settings.storage.enabled and found.settings.client.total == 4
    assert FURL in (found.private / "introducers.yaml").read_text()


@pytest.mark.parametrize("ours_invites", [True, False], ids=["grid-invites", "tahoe-invites"])
def test_wrong_code_ends_an_invitation_between_both(
    ours_invites: bool, server: str, inviter: Path, tmp_path: Path
) -> None:
    commands = (
        of_grid("-d", inviter, "invite", "--wormhole-server", server, "laptop"),
        invite_of_tahoe(server, inviter),
    )
    invited = Inviting(commands[0] if ours_invites else commands[1])
    wrong = invited.code.partition("-")[0] + "-wrong-words"
    if ours_invites:
        run_command(of_tahoe(server, "create-client", f"--join={wrong}", tmp_path / "new"), expected=(1,))
        assert invited.end() == 7 and "somebody tried a wrong code" in invited.said
    else:
        new = tmp_path / "new"
        run_command(of_grid("create", "client", "--wormhole-server", server, "--join", wrong, new), expected=(7,))
        assert invited.end() == 1
        assert not new.exists()
