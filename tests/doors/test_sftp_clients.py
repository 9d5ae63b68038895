"""Real clients of SFTP at the door of a real grid: each stores, lists, reads and removes; all read while seven of ten nodes are dead."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from perf.processes.node_process import child_environment
from tests.doors.files import contents, make_files
from tests.doors.grid import program
from tests.doors.sftp_grid import HOST, Door, mounted, opened_door, required, run

pytestmark = [pytest.mark.doors, pytest.mark.timeout(900)]

STEPS = 10_000
FILE_SIZE = 256 * 1024


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    with opened_door(tmp_path_factory.mktemp("door")) as opened:
        yield opened


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_files(tmp_path_factory.mktemp("data") / "files")


def rclone(door: Door, folder: Path, *words: str | Path) -> str:
    config = {
        "RCLONE_CONFIG": "",
        "RCLONE_CONFIG_GRID_TYPE": "sftp",
        "RCLONE_CONFIG_GRID_HOST": "127.0.0.1",
        "RCLONE_CONFIG_GRID_PORT": str(door.port),
        "RCLONE_CONFIG_GRID_USER": "alice",
        "RCLONE_CONFIG_GRID_KEY_FILE": str(door.key),
        "RCLONE_CONFIG_GRID_SHELL_TYPE": "none",
    }
    done = subprocess.run(
        [program("rclone"), *map(str, words)], check=False, cwd=folder, capture_output=True, text=True,
        env={**child_environment(), "HOME": str(folder), **config}, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def test_sftp_stores_lists_moves_reads_and_removes_a_tree(door: Door, data: Path, tmp_path: Path) -> None:
    said = door.openssh(
        "sftp", data.parent, HOST,
        commands="mkdir sftp\nput -r files sftp/\nls -l sftp/files\nrename sftp/files sftp/moved\n",
    )  # fmt: skip
    assert "12000000" in said
    door.openssh("sftp", tmp_path, HOST, commands="get -r sftp/moved back\nrm sftp/moved/large\n")
    assert contents(tmp_path / "back") == contents(data)
    assert b"large" not in door.door.client.run("ls", door.in_grid("sftp/moved"))


def test_scp_copies_a_tree_both_ways_and_with_the_old_protocol_is_refused(
    door: Door, data: Path, tmp_path: Path
) -> None:
    door.openssh("scp", data.parent, "-r", "-p", "files", f"{HOST}:/scp")
    door.openssh("scp", tmp_path, "-r", "-p", f"{HOST}:/scp", "back")
    assert contents(tmp_path / "back") == contents(data)
    assert (tmp_path / "back" / "large").stat().st_mtime == int((data / "large").stat().st_mtime)
    door.door.client.run("get", door.in_grid("scp/large"), str(tmp_path / "ours"))
    assert (tmp_path / "ours").read_bytes() == (data / "large").read_bytes()
    assert door.try_openssh("scp", tmp_path, "-O", f"{HOST}:/scp/small", "old").returncode != 0


def test_rclone_copies_checks_and_removes_a_folder(door: Door, data: Path, tmp_path: Path) -> None:
    rclone(door, tmp_path, "copy", data, "grid:rclone")
    rclone(door, tmp_path, "check", "--download", data, "grid:rclone")
    rclone(door, tmp_path, "sync", data, "grid:rclone")
    rclone(door, tmp_path, "copy", "grid:rclone", tmp_path / "back")
    assert contents(tmp_path / "back") == contents(data)
    rclone(door, tmp_path, "moveto", "grid:rclone/small", "grid:rclone/moved")
    assert "moved" in rclone(door, tmp_path, "lsf", "grid:rclone")
    rclone(door, tmp_path, "purge", "grid:rclone")


def test_paramiko_does_all_that_the_door_offers(door: Door, data: Path, tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes((data / "large").read_bytes())
    script = Path(__file__).with_name("paramiko_program.py")
    done = run([program("paramiko"), str(script), str(door.port), str(door.key), str(tmp_path)], tmp_path)
    assert done.returncode == 0 and done.stdout.split()[-1] == "done", done.stdout


def test_asyncssh_copies_a_tree_both_ways(door: Door, data: Path, tmp_path: Path) -> None:
    import asyncssh

    async def copy() -> None:
        connecting = asyncssh.connect(
            "127.0.0.1", door.port, username="alice", client_keys=[str(door.key)], known_hosts=None, config=None,
            agent_path=None,
        )  # fmt: skip
        async with connecting as connection, connection.start_sftp_client() as client:
            await client.put(str(data), "/asyncssh", recurse=True, preserve=True)
            await client.get("/asyncssh", str(tmp_path / "back"), recurse=True)
            await client.rmtree("/asyncssh")
            assert not await client.exists("/asyncssh")

    asyncio.run(copy())
    assert contents(tmp_path / "back") == contents(data)


def test_sshfs_keeps_a_file_right_through_10000_random_operations(door: Door, tmp_path: Path) -> None:
    with mounted(door, tmp_path) as mount:
        wanted = exercise(mount / "exercised", random.Random(20261123))
    door.door.client.run("get", door.in_grid("exercised"), str(tmp_path / "back"))
    assert (tmp_path / "back").read_bytes() == wanted


def exercise(path: Path, chance: random.Random) -> bytes:
    """Read, write, cut, sync, and reopen the file, comparing it with bytes in memory; returns its final contents."""
    wanted = bytearray()
    file = path.open("w+b", buffering=0)
    try:
        for step in range(STEPS):
            offset = chance.randrange(FILE_SIZE)
            size = chance.randrange(1, FILE_SIZE // 4)
            kind = chance.choices(("write", "read", "cut", "sync", "again"), (45, 45, 8, 1, 1))[0]
            if kind == "write":
                data = chance.randbytes(min(size, FILE_SIZE - offset))
                wanted.extend(bytes(max(0, offset - len(wanted))))
                wanted[offset : offset + len(data)] = data
                assert os.pwrite(file.fileno(), data, offset) == len(data)
            elif kind == "read":
                assert os.pread(file.fileno(), size, offset) == wanted[offset : offset + size], f"step {step}"
            elif kind == "cut":
                os.ftruncate(file.fileno(), offset)
                del wanted[offset:]
                wanted.extend(bytes(offset - len(wanted)))
            elif kind == "sync":
                os.fsync(file.fileno())
            else:
                file.close()
                file = path.open("r+b", buffering=0)
            if step % 100 == 0:
                assert os.fstat(file.fileno()).st_size == len(wanted), f"step {step}"
    finally:
        file.close()
    return bytes(wanted)


def test_sshfs_behaves_as_a_file_system_does(door: Door, tmp_path: Path) -> None:
    with mounted(door, tmp_path) as mount:
        home = mount / "posix"
        home.mkdir()
        with pytest.raises(FileExistsError):
            home.mkdir()
        (home / "one").write_bytes(b"one")
        (home / "two").write_bytes(b"two")
        (home / "one").rename(home / "two")
        assert (home / "two").read_bytes() == b"one" and not (home / "one").exists()
        with pytest.raises(OSError):
            home.rmdir()
        (home / "two").chmod(0o640)
        os.utime(home / "two", (1_000_000_000, 1_000_000_000))
        found = (home / "two").stat()
        assert (found.st_mode & 0o777, found.st_mtime) == (0o640, 1_000_000_000)
        with pytest.raises(OSError):
            (home / "link").symlink_to("two")
        with (home / "two").open("rb") as file:
            (home / "two").unlink()
            assert file.read() == b"one"
        with pytest.raises(FileNotFoundError):
            (home / "two").read_bytes()
        run([required("cp"), "-r", "--preserve=mode,timestamps", "/etc/default", str(home)], tmp_path)
        assert sorted(os.listdir(home / "default")) == sorted(os.listdir("/etc/default"))


def test_every_client_reads_while_seven_of_ten_nodes_are_dead(door: Door, data: Path, tmp_path: Path) -> None:
    door.openssh("scp", data.parent, "-r", "files", f"{HOST}:/kept")
    for node in door.grid.storage[:7]:
        node.kill()
    door.openssh("sftp", tmp_path, HOST, commands="get -r kept sftp\n")
    door.openssh("scp", tmp_path, "-r", f"{HOST}:/kept", "scp")
    rclone(door, tmp_path, "copy", "grid:kept", tmp_path / "rclone")
    for name in ("sftp", "scp", "rclone"):
        assert contents(tmp_path / name) == contents(data)
    with mounted(door, tmp_path) as mount:
        assert contents(mount / "kept") == contents(data)
