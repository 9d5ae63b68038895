"""`grid invite` and `grid create --join`: both as processes, which meet at a server on this machine."""

from __future__ import annotations

import json
import signal
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest

from grid.node.create import Listening, NewClient, create_client, create_introducer
from grid.node.directory import open_directory
from grid.node.local_grid import LocalGrid, share_counts
from tests.cli.command import Outcome, environment, grid
from tests.cli.test_json_output import check
from tests.cli.test_remembered_servers import loaded_by
from tests.support.mailbox import hostile_server, mailbox_server
from tests.support.warm_programs import warm_program

SECRET = "ln3ddyjdlt3cxe5uujeubs3ho2cl4jht"
FURL = f"pb://l2rdxsw4e5nqqud4h4cj7uuaz2s6is2e@tcp:grid.example.org:9/{SECRET}"
SPARE = 2**21


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with mailbox_server(tmp_path_factory.mktemp("mailbox")) as url:
        yield url


@pytest.fixture
def inviter(tmp_path: Path) -> Path:
    """A client that stores files as 2-of-4, on 3 servers."""
    create_client(tmp_path / "inviter", NewClient(introducer_furl=FURL, needed=2, happy=3, total=4))
    return tmp_path / "inviter"


class Inviting:
    """`grid invite`, which waits; what it printed first."""

    def __init__(self, server: str, *arguments: str | Path) -> None:
        self._process = subprocess.Popen(
            [warm_program("grid.cli"), *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(GRID_WORMHOLE_SERVER=server),
        )
        assert self._process.stdout is not None
        self.first = self._process.stdout.readline().strip()
        self.code = self.first.rpartition(": ")[2]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdout is not None
        if not self._process.stdout.closed:
            self._process.kill()
            self._process.communicate()

    def interrupt(self) -> None:
        """As Ctrl-C does."""
        self._process.send_signal(signal.SIGINT)

    def note(self) -> str:
        """The first note that it prints after the code."""
        assert self._process.stderr is not None
        return next(line for line in self._process.stderr if line.startswith("Note: this grid"))

    def end(self) -> Outcome:
        """How it ended, and what it printed after its first line."""
        out, err = self._process.communicate(timeout=120)
        assert SECRET not in self.first + out + err
        return Outcome(self._process.returncode, out.encode(), err)


def joined(server: str, *arguments: str | Path) -> Outcome:
    outcome = grid("create", *arguments, GRID_WORMHOLE_SERVER=server)
    assert SECRET not in outcome.out.decode() + outcome.err and "Traceback" not in outcome.err
    return outcome


def test_client_that_was_invited_has_all_that_it_needs(server: str, inviter: Path, tmp_path: Path) -> None:
    with Inviting(server, "-d", inviter, "invite", "laptop") as invited:
        assert invited.first.startswith("Invitation code for laptop: ")
        outcome = joined(server, "client", "--join", invited.code, tmp_path / "new")
        assert outcome.code == 0, outcome.err
        assert "Invited as laptop. Each file is stored as 4 shares, any 2 of which restore it." in outcome.line
        ended = invited.end()
    assert (ended.code, ended.line) == (0, "laptop has the settings of this grid."), ended.err
    assert f"grid create client DIR --join {invited.code}" in ended.err
    found = open_directory(tmp_path / "new")
    client = found.settings.client
    assert (found.settings.nickname, client.needed, client.happy, client.total) == ("laptop", 2, 3, 4)
    introducers = found.private / "introducers.yaml"
    assert FURL in introducers.read_text() and stat.S_IMODE(introducers.stat().st_mode) == 0o600
    assert [path for path in found.path.rglob("*") if path.is_file() and SECRET in path.read_text()] == [introducers]


def test_storage_node_that_was_invited_invites_others_to_the_same(server: str, tmp_path: Path) -> None:
    create_introducer(tmp_path / "i", Listening(port="tcp:9", location="tcp:grid.example.org:9"))
    (tmp_path / "i" / "private" / "introducer.furl").write_text(f"{FURL}\n")
    numbers = ["--needed", "2", "--happy", "3", "--total", "3"]
    with Inviting(server, "-d", tmp_path / "i", "invite", *numbers, "attic") as invited:
        spoken = invited.code.upper().replace("-", " ")
        outcome = joined(server, "storage", "--join", spoken, "--hostname", "attic.example.org", tmp_path / "attic")
        assert outcome.code == 0, outcome.err
        assert invited.end().code == 0
    found = open_directory(tmp_path / "attic").settings
    assert found.nickname == "attic" and found.storage.enabled
    with Inviting(server, "-d", tmp_path / "attic", "invite", "office") as invited:
        assert joined(server, "client", "--join", invited.code, tmp_path / "office").code == 0
    client = open_directory(tmp_path / "office").settings.client
    assert (client.needed, client.happy, client.total) == (2, 3, 3)


def test_options_of_the_new_node_count_more_than_its_invitation(server: str, inviter: Path, tmp_path: Path) -> None:
    given = ["--nickname", "mine", "--needed", "1", "--happy", "1", "--total", "2"]
    with Inviting(server, "-d", inviter, "invite", "laptop") as invited:
        outcome = joined(server, "client", "--join", invited.code, *given, tmp_path / "new")
        assert outcome.code == 0 and "Invited as mine. Each file is stored as 2 shares, any 1 of" in outcome.line
    found = open_directory(tmp_path / "new").settings
    assert (found.nickname, found.client.needed, found.client.total) == ("mine", 1, 2)


@pytest.mark.parametrize("options", [(), ("--needed", "3", "--happy", "20", "--total", "20")])
def test_invitation_to_a_grid_that_is_too_small_is_noted_with_numbers_that_fit(
    server: str, local_grid: LocalGrid, options: tuple[str, ...]
) -> None:
    count = len(local_grid.storages)
    assert count < 7
    with Inviting(server, "-d", local_grid.introducer, "invite", *options, "laptop") as inviting:
        said = inviting.note()
        inviting.interrupt()
        assert inviting.end().code == 130
    if options:
        assert (
            said
            == f"Note: this grid has {count} servers now: the new node can store files once there are 20 (--happy).\n"
        )
        return
    needed, happy, total = share_counts(count)
    assert said == (
        f"Note: this grid has {count} servers now, and the new node needs 7 to store a file: press Ctrl-C, and invite with"
        f" numbers that fit: --needed {needed} --happy {happy} --total {total}.\n"
    )


def test_both_sides_in_json_say_what_the_schemas_say(server: str, inviter: Path, tmp_path: Path) -> None:
    with Inviting(server, "-d", inviter, "--json", "invite", "laptop") as invited:
        check("invite", invited.first)
        first = json.loads(invited.first)
        assert (first["event"], first["server"]) == ("invitation", server)
        outcome = joined(server, "client", "--json", "--join", first["code"], tmp_path / "new")
        check("create-client", outcome.line)
        assert json.loads(outcome.line)["invitation"]["encoding"] == {"needed": 2, "happy": 3, "total": 4}
        ended = invited.end()
    check("invite", ended.line)
    assert ended.err == ""


def test_code_is_not_spent_by_a_node_that_cannot_be_created(server: str, inviter: Path, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").touch()
    with Inviting(server, "-d", inviter, "invite", "laptop") as invited:
        code = ["--join", invited.code]
        wrong: tuple[tuple[int, list[str | Path]], ...] = (
            (1, ["client", *code, tmp_path / "full"]),
            (1, ["client", *code, tmp_path / "full" / "mine" / "new"]),
            (2, ["client", *code, "--needed", "2", tmp_path / "new"]),
            (1, ["client", *code, "--needed", "2", "--happy", "2", "--total", "1", tmp_path / "new"]),
            (2, ["client", *code, "--introducer", FURL, tmp_path / "new"]),
            (1, ["storage", *code, "--reserved-space", "lots", tmp_path / "new"]),
            (2, ["storage", *code, "--port", "tcp:9", tmp_path / "new"]),
        )
        for status, arguments in wrong:
            assert joined(server, *arguments).code == status, arguments
            assert not (tmp_path / "new").exists()
        assert joined(server, "client", *code, tmp_path / "new").code == 0
        assert invited.end().code == 0


def test_wrong_code_ends_both_sides_and_leaves_nothing(server: str, inviter: Path, tmp_path: Path) -> None:
    with Inviting(server, "-d", inviter, "invite", "laptop") as invited:
        wrong = invited.code.partition("-")[0] + "-wrong-words"
        outcome = joined(server, "client", "--json", "--join", wrong, tmp_path / "new")
        told = json.loads(outcome.err)["error"]
        assert (outcome.code, told["kind"]) == (7, "no-authority")
        assert told["message"] == "the code is wrong, and ended with this attempt: ask for a new one"
        ended = invited.end()
    assert ended.code == 7 and "invite again" in ended.err
    assert not (tmp_path / "new").exists()


def test_invitation_that_nobody_takes_ends_with_what_to_do(server: str, inviter: Path) -> None:
    with Inviting(server, "-d", inviter, "invite", "--timeout", "1", "laptop") as invited:
        ended = invited.end()
    assert ended.code == 4
    assert ended.err.splitlines()[-1] == (
        "grid: nobody used the code within 1 second: invite again when the other side is ready"
    )


def test_invitation_that_is_interrupted_ends_cleanly(server: str, inviter: Path) -> None:
    with Inviting(server, "-d", inviter, "invite", "laptop") as invited:
        invited.interrupt()
        ended = invited.end()
    assert ended.code == 130 and ended.err.splitlines()[-1] == "grid: interrupted" and ended.line == ""


def test_command_line_that_makes_no_sense_is_explained(inviter: Path, tmp_path: Path) -> None:
    new = tmp_path / "new"
    wrong: tuple[tuple[list[str | Path], str], ...] = (
        (["create", "client", new], "Give --join CODE, from `grid invite` on another node, or --introducer FURL"),
        (["create", "client", "--join", "guitarist", new], "--join: not an invitation code"),
        (["create", "client", "--join", "7-a-b", "--wormhole-server", "x", new], "expected ws://HOST:PORT/v1"),
        (["create", "client", "--introducer", FURL, "--wormhole-server", "ws://a/v1", new], "is for --join"),
        (["-d", inviter, "invite", "a\nb"], "NICKNAME: a nickname with a line break"),
        (["-d", inviter, "invite", "--timeout", "0", "bob"], "--timeout"),
        (["join", "7-a-b"], "try `grid create client --join CODE`"),
    )
    for arguments, why in wrong:
        outcome = grid(*arguments)
        assert outcome.code == 2 and why in outcome.err, (arguments, outcome.err)
    assert not new.exists()


def test_node_that_cannot_invite_says_why(tmp_path: Path, inviter: Path) -> None:
    create_introducer(tmp_path / "i", Listening(port="tcp:9", location="tcp:grid.example.org:9"))
    outcome = grid("-d", tmp_path / "i", "invite", "bob")
    assert outcome.code == 1 and "start this introducer first, with `grid run" in outcome.err
    create_client(tmp_path / "alone", NewClient())
    outcome = grid("-d", tmp_path / "alone", "invite", "bob")
    assert outcome.code == 1 and "knows no introducer" in outcome.err
    outcome = grid("-d", inviter, "invite", "--needed", "5", "bob")
    assert outcome.code == 1 and "needed (5) must not be larger than total (4)" in outcome.err
    config = inviter / "tahoe.cfg"
    config.write_text(
        config.read_text().replace("[node]\n", "[node]\nreveal-ip-address = false\n") + "[connections]\ntcp = tor\n"
    )
    outcome = grid("-d", inviter, "invite", "bob")
    assert outcome.code == 1 and "must not reveal its address" in outcome.err


def test_introducer_that_only_this_machine_reaches_is_mentioned(server: str, tmp_path: Path) -> None:
    create_client(tmp_path / "c", NewClient(introducer_furl=FURL.replace("grid.example.org", "127.0.0.1")))
    with Inviting(server, "-d", tmp_path / "c", "--json", "invite", "--timeout", "1", "laptop") as invited:
        warning = invited.end().err.splitlines()[0]
    check("warning", warning)
    assert "nodes elsewhere cannot reach it" in warning


def test_server_that_is_not_there_is_unreachable(inviter: Path, tmp_path: Path) -> None:
    nowhere = "ws://127.0.0.1:1/v1"
    commands: tuple[list[str | Path], ...] = (
        ["-d", inviter, "invite", "--wormhole-server", nowhere, "bob"],
        ["create", "client", "--wormhole-server", nowhere, "--join", "7-a-b", tmp_path / "new"],
    )
    for arguments in commands:
        outcome = grid(*arguments)
        assert outcome.code == 5 and f"cannot reach the wormhole server {nowhere}" in outcome.err
        assert outcome.err.endswith("does it run?\n")


@pytest.mark.parametrize(
    ("payload", "why"),
    [
        (b"{" + b" " * SPARE, "sent too much"),
        (b'{"type": "welcome"}', "sent an invalid answer"),
        (b'{"type": "welcome", "welcome": {"error": "\\u001b[2Jgo"}}', "refuses: [2Jgo"),
        (b'{"type": "error", "error": "x", "orig": 7}', "reports an error: x"),
    ],
    ids=["large", "empty", "unwelcome", "error"],
)
def test_server_that_is_hostile_is_given_up(payload: bytes, why: str, tmp_path: Path) -> None:
    with hostile_server(payload) as url:
        outcome = joined(url, "client", "--join", "7-a-b", tmp_path / "new")
    assert outcome.code == 1 and why in outcome.err and url in outcome.err and "\x1b" not in outcome.err
    assert outcome.out == b"" and not (tmp_path / "new").exists()


def test_library_is_loaded_by_invitations_alone(tmp_path: Path) -> None:
    run = "from grid.cli.main import main; assert main(sys.argv[1:]) == 0"
    loaded = loaded_by(run, "create", "client", "--introducer", FURL, tmp_path / "new")
    assert not {"wormhole", "autobahn", "grid.node.invitations"} & loaded
    assert "grid.cli.commands.invite" in loaded
