"""Output of every command with `--json`: docs/json-output.schema.json defines each, and the commands keep to it."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import jsonschema_rs
import pytest

from grid.node.local_grid import LocalGrid
from tests.cli.command import Outcome, grid
from tests.cli.test_help import commands
from tests.support.memory_command import Ended, MemoryCommand

SCHEMAS = json.loads((Path(__file__).parents[2] / "docs" / "json-output.schema.json").read_text())
COMMON = {
    "error", "warning", "version", "log-line", "link", "node", "check-result", "repair-result", "statistics",
    "statistics-line",
}  # fmt: skip


def leaves() -> dict[str, click.Command]:
    """Every command that does something, by its words."""
    return dict(commands())


def validator(name: str) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator({"$ref": f"#/$defs/{name.replace(' ', '-')}", "$defs": SCHEMAS["$defs"]})


def values(text: str) -> Iterator[Any]:
    """Every JSON value in the text, which has nothing else in it."""
    decoder, place = json.JSONDecoder(), 0
    while text[place:].strip():
        place += len(text[place:]) - len(text[place:].lstrip())
        value, place = decoder.raw_decode(text, place)
        yield value


def check(name: str, text: str) -> None:
    found = list(values(text))
    assert found, name
    for value in found:
        validator(name).validate(value)


IN_MEMORY: dict[str, list[list[str]]] = {
    "put": [["file"], ["file", "work:new"], ["-n", "file", "work:a"], ["--mutable", "file"]],
    "get": [["work:a", "back"], ["-n", "work:a", "back"]],
    "cat": [["work:a", "work:dir/b"]],
    "cp": [["--dry-run", "file", "work:a"], ["file", "work:a"], ["-r", "tree", "work:"]],
    "ls": [["work:"], ["-R", "work:"], ["work:a"], ["work:mutable"]],
    "find": [["work:"]],
    "tree": [["work:"]],
    "du": [["work:"]],
    "mkdir": [["work:more"], []],
    "mv": [
        ["work:new", "work:moved"],
        ["work:moved", "work:dir/b", "work:more"],
        ["work:more/moved", "work:moved"],
        ["work:more/b", "work:dir/b"],
        ["-n", "work:moved", "work:a"],
    ],
    "ln": [["work:moved", "work:a"]],
    "rm": [["work:moved"]],
    "unlink": [["work:more"]],
    "undo": [[], ["--list"]],
    "share": [["work:a"], ["--expires", "never", "work:dir"]],
    "shares": [[]],
    "unshare": [["a"]],
    "block": [["work:a"], ["--reason", "not yours", "work:dir"]],
    "blocks": [[]],
    "unblock": [["work:dir"], ["work:a"]],
    "create-alias": [["second"]],
    "add-alias": [["third", "work"]],
    "list-aliases": [[]],
    "backup": [["tree", "work:backup"], ["tree", "work:backup"]],
    "snapshots": [["work:backup"]],
    "diff": [["work:dir", "work:tree"]],
    "restore": [["work:backup/Latest", "restored"]],
    "forget": [["--keep-last", "1", "--dry-run", "work:backup"], ["--keep-last", "1", "work:backup"]],
    "check": [["work:a"], ["--repair", "work:a"], ["--deep", "work:"], ["--deep", "--repair", "work:"]],
    "deep-check": [["work:"]],
    "repair": [["work:a"]],
    "pack": [["--dry-run", "work:dir"], ["work:dir"]],
    "repack": [["--dry-run", "work:dir"], ["work:dir"]],
    "unpack": [["--dry-run", "work:dir"], ["work:dir"]],
    "manifest": [["work:"]],
    "stats": [["work:"]],
    "status": [[]],
    "completion": [["bash"]],
    "create client": [
        ["--introducer", "furl", "client2"],
        ["--introducer", "furl", "--needed", "9", "--happy", "9", "client3"],
    ],
    "create storage": [["--introducer", "furl", "--hostname", "localhost", "storage"]],
    "create introducer": [["--hostname", "localhost", "introducer"]],
    "config list": [[], ["--all"]],
    "config get": [["client.shares.happy"]],
    "config set": [["node.nickname", "me"]],
    "config unset": [["node.nickname"]],
    "stop": [["introducer"]],
    "s3 key add": [["--bucket", "photos=work:dir"]],
    "s3 key list": [[]],
    "s3 key remove": [["KEY"]],
    "s3 public add": [["--bucket", "photos=work:dir"]],
    "s3 public list": [[]],
    "s3 public remove": [["photos"]],
}
"""Command lines of each command, one after the other on one grid."""

DOCUMENTS = {"ls", "list-aliases", "stats"}
"""Commands that print one document of several lines; all others print a value per line."""

ON_PROCESSES = {
    "init",
    "df",
    "up",
    "down",
    "run",
    "gateway",
    "transfer",
    "sync",
    "watch",
    "web",
    "alias export",
    "alias import",
    "invite",
}


def test_every_command_takes_json_and_has_a_schema() -> None:
    assert set(SCHEMAS["$defs"]) == COMMON | {name.replace(" ", "-") for name in leaves()}
    assert set(IN_MEMORY) | ON_PROCESSES == set(leaves())
    for name, command in leaves().items():
        assert any("--json" in parameter.opts for parameter in command.params), name
        validator(name)


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> MemoryCommand:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    command = MemoryCommand(tmp_path / "client", monkeypatch, capsys)
    for name in ("file", "tree/a", "tree/sub/b", "other"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(name * 50)
    Path("furl").write_text("pb://l2rdxsw4e5nqqud4h4cj7uuaz2s6is2e@tcp:127.0.0.1:9/ln3ddyjdlt3cxe5uujeubs3ho2cl4jht\n")
    for path in ("a", "dir/b", "dir/c"):
        command.succeed("put", "other", f"work:{path}")
    command.succeed("put", "--mutable", "other", "work:mutable")
    return command


@pytest.fixture
def listening(command: MemoryCommand) -> Iterator[None]:
    """Something listens where the gateway would: `grid share` asks for no more."""
    with socket.create_server(("127.0.0.1", 0)) as gateway:
        (command.path / "node.url").write_text(f"http://127.0.0.1:{gateway.getsockname()[1]}/\n")
        yield


@pytest.mark.usefixtures("listening")
def test_results_in_json_are_what_the_schemas_say(command: MemoryCommand) -> None:
    access_key = ""
    for name, lines in IN_MEMORY.items():
        for arguments in lines:
            filled = {"work": command.root.to_string(), "KEY": access_key}
            given = [filled.get(text, text) for text in arguments]
            command.wait(10)  # Snapshots are named by the second.
            ended = command.run("--json", *name.split(), *given)
            assert ended.code == 0, (name, ended)
            on_stderr = name in ("get", "cat")
            text = "\n".join(ended.err.splitlines()[-1:]) if on_stderr else ended.out
            check(name, text)
            assert name in DOCUMENTS or all(json.loads(line) is not None for line in text.splitlines()), name
            access_key = json.loads(ended.out)["access_key"] if name == "s3 key add" else access_key
            for line in ended.err.splitlines():
                told = json.loads(line)
                assert on_stderr or told["event"] in ("progress", "warning"), (name, line)
                if told["event"] == "warning":
                    check("warning", line)


WRONG = {
    "create-alias": ["work"],
    "add-alias": ["more", "not-a-capability"],
    "list-aliases": ["one too many"],
    "undo": ["17"],
    "shares": ["one too many"],
    "blocks": ["one too many"],
    "completion": ["cmd"],
    "alias export": ["--passphrase-file", "none", "file"],
    "alias import": ["none"],
    "config list": ["one too many"],
    "config get": ["no.such"],
    "config set": ["client.shares.happy", "1000"],
    "config unset": ["node.web.port"],
    "create client": ["--introducer", "furl", "tree"],
    "create storage": ["--introducer", "none", "d"],
    "create introducer": ["--port", "x", "d"],
    "invite": ["--wormhole-server", "x", "laptop"],
    "cp": ["work:none", "x"],
    "mkdir": ["work:a/b"],
    "transfer": ["none", "also-none"],
    "sync": ["none", "work:none"],
    "watch": ["none", "work:none"],
    "mv": ["work:none", "work:x"],
    "ln": ["work:none", "work:x"],
    "diff": ["work:none", "work:x"],
    "backup": ["none", "work:x"],
    "restore": ["work:none", "x"],
    "forget": ["work:none", "2026"],
    "up": ["--dir", "tree"],
    "down": ["--dir", "none"],
    "run": ["none"],
    "gateway": ["none"],
    "stop": ["none"],
    "df": ["one too many"],
    "status": ["one too many"],
    "web": [],
    "put": ["none"],
    "s3 key list": ["one too many"],
    "s3 key add": [],
    "s3 public list": ["one too many"],
    "s3 public add": [],
}
"""A command line of each command that fails; of all others, a path where nothing is."""


def test_failures_in_json_are_what_the_schema_says(command: MemoryCommand) -> None:
    for name in leaves():
        for arguments in (WRONG.get(name, ["work:none"]), ["--no-such-option"]):
            ended = command.run("--json", *name.split(), *arguments)
            assert_error(name, ended)
    for line in (
        ["--json", "no-such-command"],
        ["no-such-command", "--json"],
        ["--json", "config", "x"],
        ["--json", "config"],
        ["--json", "-x"],
    ):
        assert_error(" ".join(line), command.run(*line))


def assert_error(name: str, ended: Ended | Outcome) -> None:
    assert ended.code, name
    last = ended.err.splitlines()[-1]
    check("error", last)
    told = json.loads(last)["error"]
    assert told["exit_code"] == ended.code and "Usage:" not in ended.err, (name, ended.err)


def test_nothing_at_a_path_ends_with_one_status(command: MemoryCommand) -> None:
    for name in (
        "get",
        "cat",
        "ls",
        "find",
        "tree",
        "du",
        "check",
        "deep-check",
        "repair",
        "pack",
        "manifest",
        "stats",
    ):
        told = json.loads(command.run(name, "--json", "work:none").err.splitlines()[-1])["error"]
        assert (told["kind"], told["exit_code"]) == ("not-found", 4), name


def test_version_in_json_is_what_the_schema_says(command: MemoryCommand) -> None:
    check("version", command.succeed("--version", "--json"))


def test_results_of_nodes_in_json_are_what_the_schemas_say(local_grid: LocalGrid, tmp_path: Path) -> None:
    client = local_grid.client
    check("up", grid("--json", "up", "--dir", local_grid.path, "--detach").line)
    check("df", grid("-d", client, "--json", "df").line)
    check("status", grid("-d", client, "--json", "status").line)
    node = tmp_path / "grid" / "introducer"
    assert grid("create", "introducer", "--hostname", "localhost", node).code == 0
    check("down", grid("--json", "down", "--dir", node.parent).line)
    for name in ("run", "gateway"):
        started = grid("--json", name, node, *(["--stop-with-stdin"] if name == "run" else []))
        if name == "run":
            check(name, started.line)
        else:
            assert_error(name, started)
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "a").write_bytes(b"a")
    for name in ("transfer", "sync"):
        check(name, grid("-d", client, "--json", name, tmp_path / "tree", tmp_path / name).line)
    watched = [tmp_path / "tree", tmp_path / "watched"]
    check("watch", grid("-d", client, "--json", "watch", "--once", "--settle", "0", *watched).line)
    check("watch", grid("-d", client, "--json", "watch", "--status", *watched).line)
