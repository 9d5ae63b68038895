"""The options of `grid transfer`, and those that it shares with `sync` and `watch`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from grid.cli.commands.transfer import transfer
from grid.cli.commands.watch import watch
from grid.cli.terminal.exit_codes import ExitCode
from tests.cli.command import environment
from tests.support.memory_command import MemoryCommand

USAGE = 2


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> MemoryCommand:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for folder in ("source", "target"):
        Path(folder).mkdir()
    return MemoryCommand(tmp_path / "client", monkeypatch, capsys)


WAYS = [
    ("--checksum", "--size-only"),
    ("--size-only", "--checksum"),
    ("--update", "--checksum"),
    ("--size-only", "--update"),
]


@pytest.mark.parametrize("name", ["transfer", "sync"])
@pytest.mark.parametrize("ways", WAYS)
def test_two_ways_to_compare_files_are_refused(command: MemoryCommand, name: str, ways: tuple[str, str]) -> None:
    said = command.fail(USAGE, name, *ways, "source", "target")
    if name == "sync" and "--update" in ways:
        assert "--update" in said, "sync has no such option"
    else:
        assert all(way in said for way in ways) and "contradict each other" in said


@pytest.mark.parametrize(("way", "sent"), [("--size-only", ()), ("--checksum", ("new", "old")), ("--update", ("new",))])
def test_each_way_to_compare_files_sends_what_differs_by_it(
    command: MemoryCommand, way: str, sent: tuple[str, ...]
) -> None:
    for name, modified in (("new", 2e9), ("old", 1e9)):
        Path("source", name).write_text("source")
        Path("target", name).write_text("target")
        os.utime(Path("source", name), (modified, modified))
        os.utime(Path("target", name), (1.5e9, 1.5e9))
    command.succeed("transfer", way, "source", "target")
    assert tuple(name for name in ("new", "old") if Path("target", name).read_text() == "source") == sent


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("transfer", "source", "source/copy"), "source/copy lies in source: each run would copy the copies, too"),
        (("transfer", "source", "link/copy"), "link/copy lies in source"),
        (("transfer", "source", "./source/"), "are the same"),
        (("transfer", "--delete", "target/in", "target"), "target/in lies in target, and --delete would remove it"),
        (("sync", "--delete", "target/in", "target"), "--delete would remove it"),
        (("sync", "source", "source/copy"), "lies in"),
        (("watch", "--once", "--settle", "0", "source", "source/copy"), "lies in"),
        (("transfer", "sftp://host/a", "sftp://host/a/b"), "lies in"),
        (("transfer", "s3://bucket/a", "s3://bucket/a/b/c"), "s3://bucket/a/b/c lies in s3://bucket/a"),
    ],
)
def test_ends_that_lie_in_each_other_are_refused_before_anything_happens(
    command: MemoryCommand, arguments: tuple[str, ...], words: str
) -> None:
    for package in ("obstore", "asyncssh"):
        if find_spec(package) is None and any("://" in argument for argument in arguments):
            pytest.fail("the extra `transfer` belongs to the environment of tests")
    Path("source", "file").write_text("x")
    Path("target", "in").mkdir()
    Path("target", "in", "file").write_text("x")
    Path("link").symlink_to("source")
    before = sorted(map(str, Path().rglob("*")))
    assert words in command.fail(1, *arguments)
    assert sorted(path for path in map(str, Path().rglob("*")) if not path.startswith("state")) == before


def test_target_that_lies_in_its_source_is_taken_if_it_is_excluded(command: MemoryCommand) -> None:
    Path("source", "file").write_text("x")
    for copied in (1, 0):
        said = command.succeed("transfer", "--exclude", "/copy", "source", "source/copy")
        assert said.startswith(f"{copied} file")
    command.succeed("transfer", "source/file", "source")
    assert sorted(map(str, Path("source").rglob("*"))) == ["source/copy", "source/copy/file", "source/file"]
    command.succeed("transfer", "source", "source-2")


def test_url_of_an_unknown_kind_is_named_as_such(command: MemoryCommand) -> None:
    assert "ftp:// is no kind of source or target; there are s3," in command.fail(
        USAGE, "transfer", "ftp://x/y", "target"
    )


def test_files_that_fail_are_named_with_reasons_and_the_others_arrive(command: MemoryCommand) -> None:
    for name in ("good", "taken", "fine"):
        Path("source", name).write_text(name)
    Path("target", "taken").mkdir()
    for options in ((), ("--json",)):
        ended = command.run("transfer", "--retries", "0", *options, "source", "target")
        assert ended.code == 1
        assert {path.name for path in Path("target").iterdir() if path.is_file()} == {"good", "fine"}
        if not options:
            warning, summary = ended.err.splitlines()
            assert warning.startswith("WARNING: ") and "taken" in warning and "directory" in warning.lower()
            assert summary == "grid: 1 file could not be copied; see the warnings above"
            assert ended.out == "2 files copied\n"
            continue
        result = json.loads(ended.out)
        assert (result["files_copied"], result["files_unchanged"]) == (0, 2)
        ((name, why),) = [(each["name"], each["why"]) for each in result["failures"]]
        assert name == "taken" and "directory" in why.lower()
        events = [json.loads(line) for line in ended.err.splitlines()]
        assert any(event.get("event") == "warning" and "taken" in event["message"] for event in events)
        assert events[-1]["error"]["kind"] == "incomplete"


def test_options_have_the_names_that_other_commands_give_them() -> None:
    for command in (transfer, watch):
        for name in ("--transfers", "--jobs"):
            assert command.make_context("command", [name, "3", "a", "b"]).params["transfers"] == 3
    for name, convergent in (("--convergent", True), ("--unique", False)):
        assert transfer.make_context("transfer", [name, "a", "b"]).params["convergent"] is convergent


def test_a_copy_that_is_ended_by_a_signal_says_that_it_was_interrupted(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    (source / "file").write_bytes(os.urandom(2_000_000))
    words = [
        sys.executable,
        "-m",
        "grid.cli",
        "transfer",
        "--bwlimit",
        "10k",
        "--no-progress",
        str(source),
        str(target),
    ]
    with subprocess.Popen(
        words, stderr=subprocess.PIPE, env=environment(XDG_STATE_HOME=str(tmp_path / "state")), text=True
    ) as process:
        while process.poll() is None and not (target.exists() and any(target.iterdir())):
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=60)
    assert process.returncode == ExitCode.INTERRUPTED
    assert "interrupted" in said and "bug" not in said
