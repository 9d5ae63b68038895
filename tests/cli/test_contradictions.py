"""Contradictory options are refused in one line, before anything is done."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from grid.cli.main import main
from grid.storage.calls.service import StorageService
from grid.storage.files.memory_disk import MemoryDisk
from grid.storage.settings import StorageSettings
from tests.support.memory_command import MemoryCommand

USAGE = 2
FURL = "pb://l2rdxsw4e5nqqud4h4cj7uuaz2s6is2e@tcp:127.0.0.1:9/ln3ddyjdlt3cxe5uujeubs3ho2cl4jht"


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> MemoryCommand:
    monkeypatch.chdir(tmp_path)
    Path("file").write_bytes(b"x" * 100)
    return MemoryCommand(tmp_path / "client", monkeypatch, capsys)


CONTRADICTIONS = [
    (["--mutable", "--format", "chk"], "--mutable and --format CHK contradict each other"),
    (["--private-key-path", "key"], "--private-key-path is for mutable files"),
    (["--private-key-path", "key", "--format", "chk"], "--private-key-path is for mutable files"),
    (["--unique", "--mutable"], "--unique is for immutable files"),
    (["--no-convergence", "--format", "mdmf"], "--unique is for immutable files"),
    (["--needed", "5", "--total", "3"], "--needed (5) must not be larger than --total (3)"),
    (["--happy", "11"], "--happy (11) must not be larger than shares.total (10)"),
    (["--total", "5"], "shares.happy (7) must not be larger than --total (5)"),
    (["--total", "2", "--happy", "1"], "shares.needed (3) must not be larger than --total (2)"),
    (["-n"], "-n, -i and -u need a path"),
    (["-u"], "-n, -i and -u need a path"),
]


def test_put_when_its_options_contradict_each_other_stores_nothing(command: MemoryCommand) -> None:
    for options, words in CONTRADICTIONS:
        assert words in command.fail(USAGE, "put", *options, "file"), options
    assert command.names() == []


def test_put_into_a_mutable_file_when_the_options_are_those_of_a_new_one_is_refused(command: MemoryCommand) -> None:
    cap = command.succeed("put", "-m", "file")
    for options in (["--format", "chk"], ["--format", "mdmf"], ["--needed", "2"], ["--unique"]):
        said = command.fail(USAGE, "put", *options, "file", cap)
        assert "new file" in said or "a capability" in said, options
    assert command.succeed("put", "--format", "sdmf", "file", cap) == cap


@pytest.mark.parametrize("command_name", ["put", "get", "cp", "mv", "restore"])
def test_options_about_replacing_when_they_contradict_each_other_are_refused(
    command: MemoryCommand, command_name: str
) -> None:
    for options in (["-n", "-i"], ["-n", "-u"]):
        said = command.fail(USAGE, command_name, *options, "work:a", "work:b")
        assert "contradict each other" in said
    said = command.fail(USAGE, command_name, "-i", "work:a", "work:b")
    assert said == "-i needs a terminal: use -n or -u instead"


@pytest.mark.parametrize("name", ["x/y", "/", "a b", "a:b"])
def test_alias_when_no_path_could_begin_with_it_is_refused(command: MemoryCommand, name: str) -> None:
    before = (command.path / "private" / "aliases").read_text()
    assert command.fail(1, "create-alias", name).startswith("Alias names cannot contain")
    assert command.fail(1, "add-alias", name, "URI:DIR2:x").startswith("Alias names cannot contain")
    assert (command.path / "private" / "aliases").read_text() == before


BAD_PLACES = [
    (["--port", "28461", "--location", "foo"], "--location: expected tcp:HOST:PORT"),
    (["--port", "28461", "--location", "tcp:28461"], "--location: expected tcp:HOST:PORT"),
    (["--port", "28461", "--location", "AUTO,tcp:h"], "--location: expected tcp:HOST:PORT"),
    (["--port", "foo", "--location", "AUTO"], "--port: expected tcp:PORT"),
    (["--port", "tcp:99999", "--location", "AUTO"], "--port: expected tcp:PORT"),
    (["--hostname", "no host"], "--hostname: expected a host name"),
    (["--hostname", "http://h"], "--hostname: expected a host name"),
]


def test_address_when_nobody_could_reach_it_is_refused_before_anything_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for kind in (["storage", "--introducer", FURL], ["introducer"]):
        for options, words in BAD_PLACES:
            assert main(["create", *kind, *options, str(tmp_path / "new")]) == USAGE
            assert capsys.readouterr().err.splitlines()[-1].startswith(f"grid: {words}"), options
            assert not (tmp_path / "new").exists()


def test_new_node_when_a_value_is_bad_or_a_file_cannot_be_written_is_not_half_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["create", "storage", "--introducer", FURL, "--reserved-space", "lots", str(tmp_path / "new")]) == 1
    assert "reserved_space" in capsys.readouterr().err and not (tmp_path / "new").exists()
    (tmp_path / "empty").mkdir()
    real = os.replace

    def fail(source: object, target: object, **options: object) -> None:
        if str(target).endswith("tahoe.cfg"):
            raise OSError(28, "No space left on device")
        real(str(source), str(target))

    monkeypatch.setattr(os, "replace", fail)
    for name in ("new", "empty"):
        assert main(["create", "client", "--introducer", FURL, str(tmp_path / name)]) == 1
        assert "cannot be created: No space left" in capsys.readouterr().err
    assert not (tmp_path / "new").exists() and list((tmp_path / "empty").iterdir()) == []


def test_node_when_its_location_is_invalid_does_not_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "grid.cfg").write_text("[node]\ntub.port = 28461\ntub.location = foo\n")
    assert main(["run", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert "section [node], key tub.location: expected tcp:HOST:PORT" in said and said.count("\n") == 1


@pytest.fixture
def running(tmp_path: Path) -> subprocess.Popen[bytes]:
    """A process that a node directory names as the one that runs it."""
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    (tmp_path / "node").mkdir()
    created = psutil.Process(process.pid).create_time()
    (tmp_path / "node" / "running.process").write_text(f"{process.pid} {created}\n")
    return process


@pytest.mark.parametrize("text", ["[node]\nnicname = x\n", "nonsense", "[node]\ntub.port = foo\n", None])
def test_stop_when_the_configuration_is_broken_or_gone_ends_the_node(
    tmp_path: Path, running: subprocess.Popen[bytes], text: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    if text is not None:
        (tmp_path / "node" / "grid.cfg").write_text(text)
    assert main(["stop", str(tmp_path / "node")]) == 0
    assert capsys.readouterr().out == "the node has stopped\n"
    assert running.wait() == -signal.SIGTERM


def test_stop_when_nothing_runs_says_so_only_of_a_node(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "grid.cfg").write_text("nonsense")
    assert main(["stop", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "no node was running\n"
    (tmp_path / "grid.cfg").unlink()
    for path in (tmp_path, tmp_path / "none"):
        assert main(["stop", str(path)]) == 1
        assert "`grid create`" in capsys.readouterr().err


def test_put_when_forced_without_an_existing_file_is_refused(command: MemoryCommand) -> None:
    assert "--force overwrites an existing mutable file" in command.fail(USAGE, "put", "--force", "-m", "file")


def test_put_when_the_encoding_needs_most_shares_says_so_in_one_line(command: MemoryCommand) -> None:
    risky = command.run("put", "-m", "--needed", "6", "file")
    assert risky.code == 0 and risky.err.count("\n") == 1 and risky.err.startswith("Note: with 6 of 10 shares needed")
    told = json.loads(command.run("put", "-m", "--json", "--needed", "6", "file").err)
    assert told["event"] == "warning" and told["message"].startswith("with 6 of 10 shares needed")
    assert command.run("put", "-m", "--needed", "5", "file").err == ""
    assert command.run("put", "--needed", "6", "file").err == ""


def test_put_when_no_version_is_left_overwrites_by_force_only(command: MemoryCommand) -> None:
    cap = command.succeed("put", "-m", "--needed", "7", "file")
    grid = command.grid
    for index in range(4, 10):
        empty = StorageService(grid.servers[index].identity, MemoryDisk(2**28), grid.runtime, StorageSettings())
        grid.run(empty.start())
        grid.servers[index] = empty
    Path("other").write_bytes(b"y" * 100)
    assert command.run("put", "other", cap).code
    assert command.succeed("put", "--force", "other", cap) == cap
    command.succeed("get", cap, "read")
    assert Path("read").read_bytes() == b"y" * 100


def test_create_client_when_the_encoding_needs_most_shares_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for needed, told in (("6", True), ("5", False)):
        arguments = ["create", "client", str(tmp_path / needed), "--introducer", FURL, "--needed", needed]
        assert main(arguments) == 0
        assert ("Note: with 6 of 10" in capsys.readouterr().err) is told
