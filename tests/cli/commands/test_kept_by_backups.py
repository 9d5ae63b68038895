"""Links, attributes and owners in backups, what backups leave out, and concurrent backups."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from grid.caps import LitCap
from grid.cli.transfer.backup_lock import lock_backup, read_unfinished
from grid.cli.transfer.file_note import KEY, MAX_ATTRIBUTE_BYTES
from grid.directory.edits import SetChild
from tests.support.memory_command import MemoryCommand

LONG = "../" * 40 + "far/away"
"""A target that does not fit into a literal capability."""


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> MemoryCommand:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tree" / "sub").mkdir(parents=True)
    Path("tree/file").write_bytes(b"file" * 100)
    Path("tree/sub/file").write_bytes(b"other" * 100)
    return MemoryCommand(tmp_path / "client", monkeypatch, capsys)


def backed_up(command: MemoryCommand, *options: str) -> dict[str, int]:
    done: dict[str, int] = json.loads(command.succeed("backup", "--json", *options, "tree", "work:b"))
    return done


def attributes(path: str) -> dict[str, bytes]:
    return {name: os.getxattr(path, name) for name in os.listxattr(path) if name.startswith("user.")}


def test_links_when_backed_up_are_restored_as_links_and_never_followed(command: MemoryCommand) -> None:
    Path("tree/to-file").symlink_to("file")
    Path("tree/dangling").symlink_to(LONG)
    Path("tree/to-sub").symlink_to("sub")
    os.symlink(b"not-utf8-\xff", b"tree/sub/odd")
    os.utime("tree/to-file", (1e9, 1e9), follow_symlinks=False)
    first = backed_up(command)
    assert (first["files_uploaded"], first["files_skipped"]) == (6, 0)
    command.succeed("get", "work:b/Latest/to-file", "shown")
    assert Path("shown").read_bytes() == b"file"
    command.succeed("restore", "work:b/Latest", "back")
    for name in (b"to-file", b"dangling", b"to-sub", b"sub/odd"):
        assert os.readlink(b"back/" + name) == os.readlink(b"tree/" + name)
    assert os.lstat("back/to-file").st_mtime == 1e9
    again = json.loads(command.succeed("restore", "--json", "work:b/Latest", "back"))
    assert (again["files_copied"], again["files_skipped"]) == (1, 5), "a long link is fetched again"
    Path("tree/to-file").unlink()
    Path("tree/to-file").symlink_to("elsewhere")
    backed_up(command)
    command.succeed("restore", "work:b/Latest", "back")
    assert os.readlink("back/to-file") == "elsewhere"


def test_shares_of_storage_nodes_when_below_the_directory_are_left_out_and_named(command: MemoryCommand) -> None:
    for node in ("tree/grid/storage0", "tree/grid/storage1", "tree/plain"):
        Path(node, "storage", "shares", "aa").mkdir(parents=True)
        Path(node, "storage", "shares", "aa", "0").write_bytes(b"share" * 100)
        Path(node, "private").mkdir()
        Path(node, "private", "node.privkey").write_bytes(b"key")
    for node in ("tree/grid/storage0", "tree/grid/storage1"):
        Path(node, "tahoe.cfg").write_text("[node]\n")
    Path("tree/storage").write_bytes(b"a file of that name")
    ended = command.run("backup", "tree", "work:b")
    assert ended.code == 0, "the snapshot is complete without them"
    where = os.path.abspath("tree/grid/storage0")
    assert f"left out the shares in '{where}/storage' and of 1 other node: they are on a grid already\n" in ended.err
    command.succeed("restore", "work:b/Latest", "back")
    kept = {str(each.relative_to("back")) for each in Path("back").rglob("*") if each.is_file()}
    assert kept == {
        "file", "sub/file", "storage", "plain/private/node.privkey", "plain/storage/shares/aa/0",
        *(f"grid/storage{number}/{name}" for number in range(2) for name in ("tahoe.cfg", "private/node.privkey")),
    }  # fmt: skip
    assert "left out" not in command.run("backup", "--quiet", "tree", "work:b").err
    command.succeed("backup", "tree/grid/storage0/storage", "work:shares")
    assert command.succeed("ls", "work:shares/Latest/shares/aa") == "0", "a directory that is named is stored"


def test_attributes_when_backed_up_are_restored(command: MemoryCommand) -> None:
    for path in ("tree/file", "tree/sub"):
        os.setxattr(path, "user.grid.test", b"\x00\xffvalue")
    backed_up(command)
    command.succeed("restore", "work:b/Latest", "back")
    assert attributes("back/file") == attributes("back/sub") == {"user.grid.test": b"\x00\xffvalue"}
    os.setxattr("tree/file", "user.grid.test", b"changed")
    assert backed_up(command)["directories_created"] == 1
    command.succeed("restore", "work:b/Latest", "anew")
    assert attributes("anew/file") == {"user.grid.test": b"changed"}


def test_attributes_when_too_large_are_reported_and_the_file_is_kept(
    command: MemoryCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "listxattr", lambda path, **more: ["user.large"])
    monkeypatch.setattr(os, "getxattr", lambda path, name, **more: bytes(MAX_ATTRIBUTE_BYTES))
    ended = command.run("backup", "tree", "work:b")
    assert ended.code == 0 and "too large to be kept" in ended.err


def test_owners_are_restored_only_by_root(command: MemoryCommand, monkeypatch: pytest.MonkeyPatch) -> None:
    backed_up(command)
    given: list[tuple[object, ...]] = []
    monkeypatch.setattr(os, "chown", lambda target, uid, gid, **more: given.append((uid, gid)))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    command.succeed("restore", "work:b/Latest", "mine")
    assert not given
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    command.succeed("restore", "--no-owner", "work:b/Latest", "nobody")
    assert not given
    command.succeed("restore", "work:b/Latest", "back")
    status = os.stat("tree/file")
    assert set(given) == {(status.st_uid, status.st_gid)} and len(given) == 3

    def refuse(target: object, uid: int, gid: int, **more: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "chown", refuse)
    ended = command.run("restore", "work:b/Latest", "refused")
    assert ended.code == 0 and ended.err.count("owners cannot be restored here") == 1


def test_setuid_programs_when_restored_lose_their_privileges(command: MemoryCommand) -> None:
    os.chmod("tree/file", 0o4755)
    backed_up(command)
    command.succeed("restore", "work:b/Latest", "back")
    assert stat.S_IMODE(os.stat("back/file").st_mode) == 0o755


def test_snapshot_when_it_leads_through_a_link_of_an_earlier_one_writes_nothing_outside(
    command: MemoryCommand, tmp_path: Path
) -> None:
    (tmp_path / "outside").mkdir()
    Path("tree/trap").symlink_to(tmp_path / "outside")
    backed_up(command)
    command.succeed("restore", "work:b/Latest", "back")
    Path("tree/trap").unlink()
    Path("tree/trap").mkdir()
    Path("tree/trap/file").write_bytes(b"evil" * 30)
    backed_up(command)
    for arguments in (("restore", "work:b/Latest", "back"), ("cp", "-r", "work:b/Latest/trap", "back")):
        ended = command.run(*arguments)
        assert ended.code == 1 and "symbolic link" in ended.err
    assert not list((tmp_path / "outside").iterdir())


@pytest.mark.parametrize("target", [b"", b"nul\0byte"])
def test_link_when_its_target_is_impossible_is_reported_and_the_rest_restored(
    command: MemoryCommand, target: bytes
) -> None:
    root = command.grid.store.directory(command.root)
    hostile = SetChild(
        "bad", LitCap(data=target), {KEY: {"kind": "link", "attributes": {"trusted.x": "AA==", "user.y": 5}}}
    )
    command.grid.run(root.edit([hostile, SetChild("good", LitCap(data=b"good"))]))
    ended = command.run("restore", "work:", "back")
    assert ended.code == 1 and "cannot be a path" in ended.err
    assert Path("back/good").read_bytes() == b"good" and not os.path.lexists("back/bad")


def test_ignore_files_markers_and_pattern_files_leave_files_out(command: MemoryCommand) -> None:
    Path("tree/.gridignore").write_text("*.log\n!keep.log\n")
    for name in ("a.log", "keep.log", "b.o", "c.tmp", "cache/.nobackup", "cache/large"):
        Path("tree", name).parent.mkdir(exist_ok=True)
        Path("tree", name).write_bytes(b"x")
    Path("patterns").write_text("*.tmp\n")
    options = (
        "--exclude",
        "*.o",
        "--exclude-file",
        "patterns",
        "--exclude-if-present",
        ".nobackup",
        "--one-file-system",
    )
    backed_up(command, *options)
    listed = set(command.succeed("find", "--type", "f", "work:b/Latest").split())
    assert listed == {".gridignore", "file", "sub/file", "keep.log", "cache/.nobackup"}
    assert "not the name of a file" in command.fail(2, "backup", "--exclude-if-present", "a/b", "tree", "work:b")


def test_ignore_file_when_wrong_is_reported_and_the_snapshot_is_incomplete(command: MemoryCommand) -> None:
    Path("tree/.gridignore").write_text("ok\n**/*/*/*/*/*/*/*\n")
    ended = command.run("backup", "tree", "work:b")
    assert ended.code == 2 and "cannot use the patterns in" in ended.err and "line 2" in ended.err
    assert "file" in command.names("work:b/Latest")


def test_backup_when_another_one_runs_names_its_process_and_ends(command: MemoryCommand, tmp_path: Path) -> None:
    key = f"{command.root.to_string()}/b"
    with lock_backup(command.path / "private", str(tmp_path / "tree"), key):
        assert f"process {os.getpid()}" in command.fail(1, "backup", "tree", "work:b")
        command.succeed("backup", "tree", "work:other")
    command.succeed("backup", "tree", "work:b")


def test_backup_when_its_arguments_are_swapped_is_wrong_usage(command: MemoryCommand) -> None:
    assert "comes first: grid backup DIR ALIAS:PATH" in command.fail(2, "backup", "work:b", "tree")
    Path("work:b").mkdir()
    assert "There is no path 'tree'" in command.fail(4, "backup", "work:b", "tree")


def test_lock_when_its_holder_was_killed_is_free(tmp_path: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path; from grid.cli.transfer.backup_lock import lock_backup\n"
        "with lock_backup(Path(sys.argv[1]), 'a', 'b'):\n print('held', flush=True)\n time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", program, tmp_path], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
        holder.send_signal(signal.SIGKILL)
    (lock,) = (tmp_path / "locks").iterdir()
    assert lock.read_text() == f"{holder.pid}\n" and stat.S_IMODE(lock.stat().st_mode) == 0o600
    (left,) = read_unfinished(tmp_path, "b")
    assert (left.directory, left.problem, left.is_running) == ("a", "", False) and "it was cut off" in left.sentence
    with lock_backup(tmp_path, "a", "b"):
        assert lock.read_text() == f"{os.getpid()}\n"
    assert not read_unfinished(tmp_path, "b")


def test_snapshots_while_a_backup_runs_say_so_and_warn_of_nothing(command: MemoryCommand, tmp_path: Path) -> None:
    backed_up(command)
    with lock_backup(command.path / "private", str(tmp_path / "tree"), f"{command.root.to_string()}/b"):
        shown = command.run("snapshots", "work:b").err
        assert f"a backup of {tmp_path}/tree is running; it began at 20" in shown and "WARNING" not in shown
        (found,) = json.loads(command.succeed("snapshots", "--json", "work:b"))["unfinished"]
        assert found["running"] is True and found["problem"] is None
    assert "backup of" not in command.run("snapshots", "work:b").err


def test_lock_that_is_only_looked_at_delays_no_backup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with lock_backup(tmp_path, "a", "b"):
        pass
    (lock,) = (tmp_path / "locks").iterdir()
    with lock.open() as looked_at:
        fcntl.flock(looked_at, fcntl.LOCK_SH)
        pauses: list[float] = []

        def sleep(pause_s: float) -> None:
            pauses.append(pause_s)
            if len(pauses) == 2:
                fcntl.flock(looked_at, fcntl.LOCK_UN)

        monkeypatch.setattr(time, "sleep", sleep)
        with lock_backup(tmp_path, "a", "b"):
            assert len(pauses) == 2


def test_backup_without_room_for_its_record_is_made(tmp_path: Path) -> None:
    (tmp_path / "unfinished").write_bytes(b"in the way of the records")
    with lock_backup(tmp_path, "a", "b"):
        pass
    with pytest.raises(KeyError), lock_backup(tmp_path, "a", "b"):
        raise KeyError
    assert read_unfinished(tmp_path, "b") == []


def test_backup_that_servers_refuse_ends_early_and_snapshots_tell_of_it_until_one_succeeds(
    command: MemoryCommand, tmp_path: Path
) -> None:
    backed_up(command)
    for index in range(60):
        Path(f"tree/sub/{index}").write_bytes(b"%d" % index * 100)
    lost, command.grid.servers[6:] = command.grid.servers[6:], []
    ended = command.run("backup", "--jobs", "3", "tree", "work:b")
    assert ended.code == 5 and "WARNING: no snapshot was stored" in ended.err
    assert 10 <= ended.err.count("cannot backup file") <= 13
    shown = command.run("snapshots", "work:b")
    assert shown.code == 0 and "1 snapshot\n" in shown.err
    assert f"WARNING: the last backup of {tmp_path}/tree stored no snapshot; it began at 20" in shown.err
    assert "only 6 servers took shares, and 7 are needed" in shown.err
    assert "WARNING" not in command.run("snapshots", "work:").err
    kept, command.grid.servers[:] = list(command.grid.servers), command.grid.servers[:1]
    unread = command.run("snapshots", "work:b")
    assert unread.code == 4 and "stored no snapshot" in unread.err
    error = json.loads(command.run("snapshots", "--json", "work:b").err)["error"]
    (failed,) = error["unfinished"]
    assert error["exit_code"] == 4 and failed["directory"] == f"{tmp_path}/tree"
    command.grid.servers[:] = [*kept, *lost]
    (failed,) = json.loads(command.succeed("snapshots", "--json", "work:b"))["unfinished"]
    assert failed["directory"] == f"{tmp_path}/tree" and failed["problem"].startswith("only 6 servers")
    backed_up(command)
    assert json.loads(command.succeed("snapshots", "--json", "work:b"))["unfinished"] == []


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"directory": "/x", "began": -1, "problem": ""}', "\xff", "[" * 9999]
)
def test_record_that_is_malformed_is_ignored(tmp_path: Path, text: str) -> None:
    with pytest.raises(KeyError), lock_backup(tmp_path, "a", "b"):
        raise KeyError
    (record,) = (tmp_path / "unfinished").iterdir()
    assert stat.S_IMODE(record.stat().st_mode) == 0o600 and len(read_unfinished(tmp_path, "b")) == 1
    record.write_bytes(text.encode("latin-1"))
    assert read_unfinished(tmp_path, "b") == read_unfinished(tmp_path, "c") == []


def test_backup_of_the_client_directory_leaves_out_what_the_backup_itself_writes(command: MemoryCommand) -> None:
    Path("client/locks").write_bytes(b"of that name elsewhere")
    Path("client/private/introducer_default_cache.yaml").write_bytes(b"rewritten by each command")
    Path("alias").symlink_to("client")
    command.succeed("backup", "alias", "work:b")
    assert "locks" in command.names("work:b/Latest")
    kept = command.names("work:b/Latest/private")
    written = {"backupdb.sqlite", "locks", "unfinished", "introducer_default_cache.yaml"}
    assert "aliases" in kept and not written & set(kept)


def test_messages_of_a_quiet_backup_carry_the_time_for_a_log(command: MemoryCommand) -> None:
    os.mkfifo("tree/pipe")
    moment = r"2\d\d\d-\d\d-\d\d \d\d:\d\d:\d\dZ: "
    quiet = command.run("backup", "--quiet", "tree", "work:b").err
    assert re.fullmatch(rf"WARNING: {moment}cannot backup special file '.*/tree/pipe'\n", quiet)
    assert command.run("backup", "tree", "work:b").err.startswith("WARNING: cannot backup")
    missing = command.fail(4, "backup", "--quiet", "missing", "work:b")
    assert re.match(moment, missing.removeprefix("grid: "))


def test_sockets_and_pipes_when_excluded_leave_the_snapshot_complete(command: MemoryCommand) -> None:
    os.mkfifo("tree/pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("tree/sub/socket")
    assert command.run("backup", "tree", "work:b").code == 2
    ended = command.run("backup", "--exclude-special", "tree", "work:b")
    assert (ended.code, ended.err) == (0, "") and " 0 files skipped" in ended.out
