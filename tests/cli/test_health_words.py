"""Messages of check, repair, status and put about a grid with missing servers or shares."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from attrs import evolve

from grid.cli.commands.status import MAX_DETAIL, describe_status
from grid.errors import PeerGoneError
from grid.wire.reasons import ANOTHER_NODE
from tests.support.memory_command import MemoryCommand


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> MemoryCommand:
    monkeypatch.chdir(tmp_path)
    Path("file").write_bytes(b"x" * 30_000)
    return MemoryCommand(tmp_path / "client", monkeypatch, capsys)


def lose(command: MemoryCommand, count: int) -> None:
    """Take away the last servers, with everything that they hold."""
    del command.grid.servers[len(command.grid.servers) - count :]


def test_check_and_repair_of_a_healthy_file_say_the_same(command: MemoryCommand) -> None:
    for options in ([], ["-m"]):
        cap = command.succeed("put", *options, "file")
        checked = command.succeed("check", cap).splitlines()
        assert checked[0] == "Summary: Healthy"
        for arguments in (["repair", cap], ["check", "--repair", cap]):
            mended = command.succeed(*arguments).splitlines()
            assert mended == [*checked, " nothing to repair"]


def test_repair_when_shares_are_missing_says_so_as_check_does_and_what_was_done(command: MemoryCommand) -> None:
    cap = command.succeed("put", "file")
    lose(command, 2)
    checked = command.run("check", cap)
    assert checked.code == 1 and checked.out.startswith("Summary: Not Healthy: 8 shares (enc 3-of-10)\n")
    mended = command.run("repair", cap)
    assert mended.out.splitlines()[0] == checked.out.splitlines()[0]
    assert (mended.code, mended.out.splitlines()[-1]) == (0, " repair successful")


@pytest.mark.parametrize("options", [[], ["-m"]])
def test_check_when_shares_are_missing_names_the_servers_that_did_not_answer(
    command: MemoryCommand, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    async def gone(*arguments: object) -> None:
        raise PeerGoneError("gone")

    cap = command.succeed("put", *options, "file")
    assert "did not answer" not in command.succeed("check", cap)
    silent = command.grid.servers[3]
    for method in ("find_shares", "read_slot"):
        monkeypatch.setattr(silent, method, gone)
    checked = command.run("check", cap)
    assert checked.code == 1
    assert checked.out.splitlines()[-1].startswith(" servers that did not answer: ")
    assert (
        f"({silent.identity.server_id[:11]})" in checked.out and checked.out.count("(") == checked.out.count(")") == 3
    )


def test_deep_check_counts_healthy_files_on_too_few_servers_and_its_repair_spreads_them(command: MemoryCommand) -> None:
    servers, usual = command.grid.servers[:], command.grid.encoding
    lose(command, 8)
    command.grid.encoding = evolve(usual, happy=2)
    command.grid.store = command.grid.client()
    directory = command.succeed("mkdir")
    command.succeed("put", "file", f"{directory}/file")
    command.grid.encoding = usual
    command.grid.store = command.grid.client()
    command.grid.servers.extend(servers[2:])
    checked = command.succeed("deep-check", directory).splitlines()
    assert checked == [
        "done: 2 objects checked, 2 healthy, 0 unhealthy",
        " 2 healthy but spread over too few servers: `grid deep-check --repair` spreads them",
    ]
    assert '"crowded": true, "can-spread": true' in command.succeed("deep-check", "--json", directory)
    mended = command.succeed("deep-check", "--repair", directory).splitlines()
    assert " 2 repairs attempted, 2 successful, 0 failed" in mended
    assert mended[-1] == " post-repair: 2 healthy, 0 unhealthy"
    assert command.succeed("deep-check", directory) == checked[0]
    del command.grid.servers[:2]
    command.succeed("get", f"{directory}/file", "copy")
    assert Path("copy").read_bytes() == Path("file").read_bytes()


def test_get_when_a_terminal_would_show_a_binary_file_says_how_to_get_it(command: MemoryCommand) -> None:
    Path("binary").write_bytes(b"\0" * 30_000)
    cap = command.succeed("put", "binary")
    command.on_terminal = True
    refused = command.run("get", cap)
    assert refused.code == 2 and "looks binary" in refused.err and "\0" not in refused.out
    assert command.run("get", cap, "copy").code == 0 and Path("copy").read_bytes() == b"\0" * 30_000


def test_check_of_several_objects_checks_all_and_ends_with_the_highest_code(command: MemoryCommand) -> None:
    for name in ("a", "b"):
        Path(name).write_bytes(name.encode() * 30_000)
        command.succeed("put", name, f"work:{name}/file")
    assert command.run("check", "work:a/file", "work:b/file").code == 0
    lose(command, 2)
    for paths, code in (("a/file", "b/file"), 1), (("none", "a/file", "b/file"), 4), (("a/file", "none", "b/file"), 4):
        ended = command.run("check", *(f"work:{path}" for path in paths))
        assert (ended.code, ended.out.count("Summary: Not Healthy: 8 shares")) == (code, 2), ended
        assert ("work:none: No such file or directory" in ended.err) == (code == 4)
    for arguments in (["deep-check", "-v"], ["check", "--deep"]):
        ended = command.run(*arguments, "work:a", "work:none", "work:b")
        assert (ended.code, ended.out.count("2 objects checked")) == (4, 2), ended
    ended = command.run("check", "--json", "work:none", "work:a/file")
    assert ended.code == 4 and not json.loads(ended.out)["results"]["healthy"]
    (error,) = [json.loads(line)["error"] for line in ended.err.splitlines() if "error" in json.loads(line)]
    assert (error["kind"], error["path"], error["exit_code"]) == ("not-found", "work:none", 4)


def test_repair_when_it_fails_says_why(command: MemoryCommand) -> None:
    cap = command.succeed("put", "file")
    lose(command, 8)
    lost = command.run("repair", cap)
    assert (lost.code, lost.out.splitlines()[-1]) == (4, " repair failed: 2 good shares are left, and 3 are needed")


def test_verify_reports_bytes_and_shares_once_and_nothing_of_the_path_lookup(command: MemoryCommand) -> None:
    command.succeed("put", "file", "work:dir/file")
    command.succeed("put", "-m", "file", "work:dir/mutable")
    for name in ("file", "mutable"):
        ended = command.run("check", "--verify", "--json", f"work:dir/{name}")
        lines = [json.loads(line) for line in ended.err.splitlines()]
        assert lines and all(line["phase"] == "verifying" for line in lines if line["event"] == "progress")
        last = lines[-1]
        assert last["done"] == last["total"] > 30_000 and last["shares"] == last["total_shares"] == 10
        assert json.loads(ended.out)["results"]["healthy"] is True
    ended = command.run("check", "--json", "work:dir/none")
    assert ended.err.count("\n") == 1 and "error" in json.loads(ended.err)


def test_put_when_too_few_servers_answer_says_so_briefly(command: MemoryCommand) -> None:
    lose(command, 8)
    said = command.run("put", "file")
    assert (said.code, said.out) == (5, "")
    assert (
        said.err.replace(f" -d {command.path}", "")
        == "grid: only 2 servers are known, and 7 are needed; `grid status` lists servers that are offline: start them again, or choose numbers for 2 servers: `--needed 1 --happy 1 --total 2` for one file, or `grid config set client.shares.needed 1`, `grid config set client.shares.happy 1`, `grid config set client.shares.total 2` for all\n"
    )
    error = json.loads(command.run("put", "--json", "file").err.splitlines()[-1])["error"]
    assert (error["kind"], error["exit_code"]) == ("too-few-servers", 5)


def test_status_when_fewer_servers_answer_than_happy_ends_with_the_status_of_unreachable_ones(
    command: MemoryCommand,
) -> None:
    healthy = command.run("status")
    assert healthy.code == 0 and "servers    10 of 10 answer\n" in healthy.out
    lose(command, 3)
    assert command.run("status").code == 0
    lose(command, 1)
    ended = command.run("status")
    assert ended.code == 5 and "servers    6 of 6 answer; 7 are needed to store files\n" in ended.out
    assert command.run("status", "--json").code == 5


def test_status_lines_are_short_whatever_a_server_says() -> None:
    server = {"id": "v0-" + "a" * 52, "nickname": "storage0", "reachable": False}
    lines = describe_status(
        {
            "node": "/n",
            "introducers": [],
            "servers": [{**server, "detail": "lost"}, {**server, "detail": "x" * 300}],
        }
    )
    assert lines[-2] == "  storage0         v0-aaaaaaaa  offline: lost"
    assert len(lines[-1]) <= 32 + MAX_DETAIL and lines[-1].endswith("…")


def test_status_when_a_server_is_offline_says_where_it_should_be_and_what_to_look_at() -> None:
    server = {"id": "v0-" + "a" * 52, "nickname": "cellar", "reachable": False, "addresses": ["tcp:cellar:3459"]}
    lines = describe_status(
        {
            "node": "/n",
            "introducers": [{"name": "default", "state": "waiting", "detail": f"cannot be reached: {ANOTHER_NODE}"}],
            "servers": [{**server, "detail": "connection refused"}, {**server, "detail": "strange"}],
        }
    )
    assert lines[2] == "  the FURL is not that introducer's: copy its private/introducer.furl again"
    assert lines[5] == "    tcp:cellar:3459: nothing listens there: is the node running, and is that its port?"
    assert lines[7:] == ["    tcp:cellar:3459"]


def test_status_when_servers_are_full_counts_those_with_room() -> None:
    server = {"id": "v0-" + "a" * 52, "nickname": "s", "reachable": True, "version": "x"}
    servers = [{**server, "available_space": space} for space in (0, 5 * 10**9, None)]
    encoding = {"needed": 2, "happy": 3, "total": 3}
    lines = describe_status({"node": "/n", "encoding": encoding, "introducers": [], "servers": servers})
    assert lines[2] == "servers    3 of 3 answer; 2 have room, and 3 are needed to store files"
    assert lines[3].endswith("x, no space or read-only") and lines[5].endswith(" x")
    for word in ("full", "read-only"):
        told = [{**servers[0], "no_room": word}]
        lines = describe_status({"node": "/n", "introducers": [], "servers": told})
        assert lines[-1].endswith(f"x, {word}")


def test_status_of_a_grid_smaller_than_its_numbers_names_the_commands_that_mend_them() -> None:
    server = {"id": "v0-" + "a" * 52, "nickname": "s", "reachable": True, "version": "x", "available_space": None}
    encoding = {"needed": 3, "happy": 7, "total": 10}
    lines = describe_status({"node": "/n", "encoding": encoding, "introducers": [], "servers": [server] * 5})
    assert lines[4] == (
        "  this grid has only 5 servers, and shares.happy is 7; for numbers that fit: `grid -d /n config set client.shares.needed 1`,"
        " `grid -d /n config set client.shares.happy 3`, `grid -d /n config set client.shares.total 5`"
    )


def test_status_says_whose_clock_is_off() -> None:
    server = {"id": "v0-" + "a" * 52, "nickname": "s", "reachable": True, "version": "x", "available_space": None}

    encoding = {"encoding": {"needed": 1, "happy": 1, "total": 1}}

    def lines(*ahead: int, about: Mapping[str, object] = encoding) -> list[str]:
        servers = [{**server, "clock_ahead": each} for each in ahead] + [server]
        found = describe_status({"node": "/n", "introducers": [], "servers": servers, **about})
        return found[2 if not about else 3 :]

    one = lines(0, 320, -7200)
    assert one[0].endswith(" x") and one[1].endswith("x, clock 5 min ahead") and one[2].endswith("x, clock 2 h behind")
    assert lines(330, 340)[0] == "  all clocks agree except this machine's: correct it"
    assert lines(330, 340, about={})[0] == "  all clocks agree except the gateway's: correct it"
    assert len(lines(330)) == 2 and len(lines(330, 900)) == 3, "one alone proves nothing, nor do two that disagree"


@pytest.mark.parametrize("target", ["/proc/self", "/proc/self/fd"])
def test_directory_when_it_cannot_be_written_to_is_one_error(command: MemoryCommand, target: str) -> None:
    Path("tree").mkdir()
    for number in range(20):
        Path("tree", str(number)).write_text("x" * 100)
    command.succeed("backup", "tree", "work:b")
    for arguments in (["restore", "work:b/Latest", target], ["cp", "-r", "work:b/Latest/", target]):
        ended = command.run(*arguments)
        assert ended.code in (1, 4) and ended.out == ""
        assert ended.err.startswith(f"grid: {target}") and ended.err.count("\n") == 1, ended.err


def test_get_when_its_target_cannot_be_written_names_the_file_that_was_asked_for(command: MemoryCommand) -> None:
    cap = command.succeed("put", "file")
    ended = command.run("get", cap, "/proc/x")
    assert ended.err == "grid: /proc/x: cannot be written: No such file or directory\n"


def test_backup_without_a_terminal_is_quiet_and_names_files_when_asked(command: MemoryCommand) -> None:
    Path("tree").mkdir()
    for number in range(20):
        Path("tree", str(number)).write_text("x" * 100)
    quiet = command.run("backup", "tree", "work:b")
    assert quiet.err == "" and [line.split()[0] for line in quiet.out.splitlines()] == ["20", "backup"]
    assert command.run("backup", "-v", "tree", "work:b").out.count("uploading ") == 20


def test_copies_that_fail_are_summed_up_in_english(command: MemoryCommand) -> None:
    for count, words in ((1, "1 file could not be copied"), (2, "2 files could not be copied")):
        Path(f"tree{count}").mkdir()
        for number in range(count):
            Path(f"tree{count}", f"d{number}").write_text("x")
            command.succeed("mkdir", f"work:t{count}/tree{count}/d{number}")
        ended = command.run("cp", "-r", f"tree{count}", f"work:t{count}")
        assert ended.code == 1 and ended.err.endswith(f"grid: {words}; see the warnings above\n")
        told = command.run("cp", "-r", "--json", f"tree{count}", f"work:t{count}")
        error = json.loads(told.err.splitlines()[-1])["error"]
        assert (error["kind"], error["exit_code"]) == ("incomplete", 1)
        assert json.loads(told.err.splitlines()[0])["event"] == "warning"


def test_copy_onto_a_full_disk_ends_at_once_with_one_line(
    command: MemoryCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("tree").mkdir()
    for number in range(20):
        Path("tree", str(number)).write_text("x" * 100)
    command.succeed("backup", "tree", "work:b")

    def full(descriptor: int, data: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    ended = command.run("restore", "work:b/Latest", "back")
    monkeypatch.undo()
    assert (ended.code, ended.out) == (12, "")
    assert ended.err.count("\n") == 1 and ended.err.endswith("/back: No space left on device\n")
    assert list(Path(command.path.parent, "back").iterdir()) == []


def test_tree_with_a_lost_directory_is_reported_in_json_if_asked_for(command: MemoryCommand) -> None:
    command.succeed("put", "file", "work:tree/fine")
    lost = f"URI:DIR2-CHK:{'a' * 26}:{'a' * 52}:3:10:500"
    command.succeed("ln", lost, "work:tree/lost")
    for arguments in (["manifest", "work:tree"], ["deep-check", "work:tree"]):
        said = command.run(*arguments).err
        assert "grid: could not be read: lost: file not found: none of 10 servers" in said
        told = [json.loads(line)["error"] for line in command.run(*arguments, "--raw").err.splitlines()]
        assert [(each["kind"], each["path"]) for each in told] == [("not-enough-shares", "lost")]
