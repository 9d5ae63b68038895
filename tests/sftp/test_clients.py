"""The door with OpenSSH's sftp and scp, and asyncssh's client: others read what they store, and vice versa."""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from grid.sftp.paths import MAX_PATH
from tests.sftp.conftest import COMMAND_S, RunningDoor

CONTENTS = random.Random(5).randbytes(3_000_000)
READS = 'grid_sftp_requests_total{operation="read"'


def test_sftp_when_files_are_uploaded_moved_and_downloaded_keeps_every_byte(door: RunningDoor, tmp_path: Path) -> None:
    (tmp_path / "up").write_bytes(CONTENTS)
    (tmp_path / "small").write_bytes(b"small")
    commands = (
        "mkdir d", "put up d/first", "put small d/second", "rename d/first d/second", "ls -l d", "get d/second back",
        "chmod 600 d/second",
    )  # fmt: skip
    said = door.openssh("sftp", tmp_path, "alice@127.0.0.1", commands="\n".join(commands) + "\n")
    assert (tmp_path / "back").read_bytes() == CONTENTS
    assert door.contents("/d/second") == CONTENTS and door.contents("/d/first") is None
    assert str(len(CONTENTS)) in said
    assert door.run(lambda client: client.stat("d/second")).permissions & 0o777 == 0o600


def test_sftp_when_directories_are_removed_refuses_those_that_hold_something(door: RunningDoor, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"f")
    full = door.try_openssh("sftp", tmp_path, "alice@127.0.0.1", commands="mkdir e\nput f e/f\nrmdir e\n")
    assert full.returncode != 0 and door.contents("/e/f") == b"f"
    door.openssh("sftp", tmp_path, "alice@127.0.0.1", commands="rm e/f\nrmdir e\n")
    assert door.ask("GET", "/e?t=json")[0] == 404


def test_scp_when_times_and_modes_are_kept_brings_them_back(door: RunningDoor, tmp_path: Path) -> None:
    (tmp_path / "script").write_bytes(CONTENTS[:100_000])
    (tmp_path / "script").chmod(0o750)
    os.utime(tmp_path / "script", (1_000_000_000, 1_000_000_000))
    door.openssh("scp", tmp_path, "-p", "script", "alice@127.0.0.1:/script")
    door.openssh("scp", tmp_path, "-p", "alice@127.0.0.1:/script", "back")
    found = (tmp_path / "back").stat()
    assert (found.st_mode & 0o777, found.st_mtime) == (0o750, 1_000_000_000)
    assert (tmp_path / "back").read_bytes() == CONTENTS[:100_000]
    _, said = door.ask("GET", "/script?t=json")
    metadata = json.loads(said)[1]["metadata"]
    assert metadata["mtime"] == 1_000_000_000 and metadata["mode"] == 0o750


def test_scp_when_the_file_is_long_stores_all_of_it(door: RunningDoor, tmp_path: Path) -> None:
    (tmp_path / "long").write_bytes(CONTENTS * 3)
    said = door.openssh("scp", tmp_path, "long", "alice@127.0.0.1:/long")
    assert "reordered" not in said
    assert door.contents("/long") == CONTENTS * 3


def test_scp_when_it_asks_for_a_command_is_refused(door: RunningDoor, tmp_path: Path) -> None:
    assert door.try_openssh("scp", tmp_path, "-O", "alice@127.0.0.1:/script", "back").returncode != 0
    assert not (tmp_path / "back").exists()


def test_write_when_it_replaces_part_of_a_file_keeps_the_rest(door: RunningDoor) -> None:
    door.ask("PUT", "/part", CONTENTS)

    async def work(client: Any) -> bytes:
        async with client.open("part", "r+b") as file:
            await file.seek(1_000_000)
            await file.write(b"in the middle")
            await file.seek(0, 2)
            await file.write(b"at the end")
            await file.seek(999_990)
            return bytes(await file.read(30))

    wanted = bytearray(CONTENTS)
    wanted[1_000_000:1_000_013] = b"in the middle"
    wanted += b"at the end"
    assert door.run(work) == wanted[999_990:1_000_020]
    assert door.contents("/part") == bytes(wanted)


def test_write_when_the_file_is_cut_and_grows_again_has_zeros_there(door: RunningDoor) -> None:
    async def work(client: Any) -> None:
        async with client.open("cut", "wb") as file:
            await file.write(b"0123456789")
        await client.truncate("cut", 4)
        async with client.open("cut", "r+b") as file:
            await file.seek(8)
            await file.write(b"89")

    door.run(work)
    assert door.contents("/cut") == b"0123\0\0\0\x0089"


def test_write_when_the_file_is_not_closed_leaves_what_was_there(door: RunningDoor) -> None:
    door.ask("PUT", "/kept", b"old")

    async def break_off() -> None:
        async with door.connect() as connection:
            client = await connection.start_sftp_client()
            for name in ("kept", "never"):
                file = await client.open(name, "wb")
                await file.write(CONTENTS)
            connection.abort()

    asyncio.run(break_off())
    assert door.contents("/kept") == b"old" and door.contents("/never") is None


def test_file_when_it_is_created_for_reading_is_empty_and_there(door: RunningDoor) -> None:
    """As open(path, O_RDONLY | O_CREAT) asks through sshfs, for example for a file to lock."""
    import asyncssh

    flags = asyncssh.FXF_READ | asyncssh.FXF_CREAT
    door.ask("PUT", "/filled", b"filled")

    async def work(client: Any) -> None:
        async with client.open("created", flags, encoding=None) as file:
            assert await file.read() == b""
        assert await client.getsize("created") == 0
        async with client.open("filled", flags, encoding=None) as file:
            assert await file.read() == b"filled"
        for path in ("created", "filled"):
            with pytest.raises(asyncssh.SFTPFailure):
                await client.open(path, flags | asyncssh.FXF_EXCL)
        async with client.open("half", "wb") as writing:
            await writing.write(b"half")
            async with client.open("half", flags, encoding=None) as reading:
                assert await reading.read() == b"half"
            assert door.contents("/half") is None, "the file of another handle is stored when that is closed"

    door.run(work)
    assert door.contents("/created") == b"" and door.contents("/filled") == b"filled"
    assert door.contents("/half") == b"half"

    async def refused(client: Any) -> None:
        async with client.open("filled", flags, encoding=None) as file:
            assert await file.read() == b"filled"
        with pytest.raises(asyncssh.SFTPPermissionDenied):
            await client.open("another", flags, encoding=None)

    door.run(refused, account="reader")
    assert door.contents("/another") is None


def test_write_when_it_is_read_before_it_is_closed_shows_others_the_old_file(door: RunningDoor) -> None:
    door.ask("PUT", "/shared", b"old")

    async def work(client: Any) -> tuple[bytes | None, int]:
        async with client.open("shared", "wb") as file:
            await file.write(b"newer")
            size = (await client.stat("shared")).size
            return await asyncio.to_thread(door.contents, "/shared"), size

    assert door.run(work) == (b"old", 5)
    assert door.contents("/shared") == b"newer"


def test_mdmf_when_it_is_written_is_changed_in_place(door: RunningDoor) -> None:
    _, cap = door.ask("PUT", "/notes?format=mdmf", CONTENTS[:400_000])

    async def work(client: Any) -> None:
        async with client.open("notes", "r+b") as file:
            await file.seek(200_000)
            await file.write(b"in place")

    door.run(work)
    _, said = door.ask("GET", "/notes?t=json")
    assert json.loads(said)[1]["rw_uri"] == cap.decode()
    assert door.contents("/notes") == CONTENTS[:200_000] + b"in place" + CONTENTS[200_008:400_000]


def test_rename_when_the_name_is_taken_replaces_only_as_posix_has_it(door: RunningDoor) -> None:
    import asyncssh

    door.ask("PUT", "/one", b"one")
    door.ask("PUT", "/two", b"two")
    door.ask("PUT", "/in/it", b"it")

    async def work(client: Any) -> None:
        with pytest.raises(asyncssh.SFTPFailure):
            await client.rename("one", "two")
        with pytest.raises(asyncssh.SFTPFailure):
            await client.posix_rename("one", "in")
        await client.posix_rename("one", "two")
        await client.posix_rename("in/it", "moved")

    door.run(work)
    assert (door.contents("/one"), door.contents("/two"), door.contents("/moved")) == (None, b"one", b"it")


def test_file_when_it_is_queried_before_the_answer_to_its_creation_exists(door: RunningDoor) -> None:
    async def work(client: Any) -> int:
        async def create() -> Any:
            return await client.open("/early", "wb")

        opening = asyncio.create_task(create())
        await asyncio.sleep(0)
        asking = asyncio.create_task(client.lstat("/early"))
        file, attributes = await asyncio.gather(opening, asking)
        await file.close()
        await client.remove("/early")
        size: int = attributes.size
        return size

    assert door.run(work) == 0


def test_file_when_two_sessions_create_it_exclusively_is_created_by_one(door: RunningDoor) -> None:
    import asyncssh

    async def work(client: Any) -> None:
        async def other(another: Any) -> None:
            async with another.open("lock", "xb") as file:
                await file.write(b"same")

        ours = await client.open("lock", "xb")
        await ours.write(b"same")
        await asyncio.to_thread(door.run, other)
        for _ in range(2):
            with pytest.raises(asyncssh.SFTPFailure):
                await ours.fsync()
        with pytest.raises(asyncssh.SFTPFailure):
            await ours.close()
        async with client.open("unshared", "xb") as file:
            await file.write(b"first")
            await file.fsync()
            await file.write(b" and more")

    door.run(work)
    assert (door.contents("/lock"), door.contents("/unshared")) == (b"same", b"first and more")


def test_link_when_it_is_symbolic_is_refused_with_a_reason(door: RunningDoor) -> None:
    import asyncssh

    async def work(client: Any) -> str:
        with pytest.raises(asyncssh.SFTPError) as refused:
            await client.symlink("part", "link")
        return str(refused.value)

    assert "symbolic links" in door.run(work)


def test_account_that_may_only_read_is_refused_every_change(door: RunningDoor) -> None:
    import asyncssh

    door.ask("PUT", "/readable", b"readable")
    door.ask("POST", "/empty?t=mkdir")
    status, said = door.ask("PUT", "/in-place?format=mdmf", b"in place")
    assert status == 201, said

    async def work(client: Any) -> None:
        async with client.open("readable", "rb") as file:
            assert await file.read() == b"readable"
        changes: tuple[Callable[[], Awaitable[object]], ...] = (
            lambda: client.open("readable", "wb"), lambda: client.open("new", "wb"), lambda: client.mkdir("new"),
            lambda: client.remove("readable"), lambda: client.posix_rename("readable", "new"),
            lambda: client.chmod("readable", 0o600), lambda: client.truncate("readable", 1),
            lambda: client.rename("readable", "new"), lambda: client.rmdir("empty"), lambda: client.open("readable", "ab"),
            lambda: client.open("in-place", "r+b"), lambda: client.utime("readable", (1, 1)),
            lambda: client.posix_rename("in-place", "readable"), lambda: client.mkdir("empty/new"),
        )  # fmt: skip
        for change in changes:
            with pytest.raises(asyncssh.SFTPPermissionDenied):
                await change()

    door.run(work, account="reader")
    assert door.contents("/readable") == b"readable" and door.contents("/in-place") == b"in place"
    assert door.contents("/new") is None and door.contents("/empty/new") is None


def test_paths_when_they_climb_end_at_the_root_of_the_account(door: RunningDoor) -> None:
    door.ask("PUT", "/secret", b"secret")

    async def work(client: Any) -> tuple[list[str], str]:
        return await client.listdir("/../../.."), await client.realpath("/a/../../b/./c")

    names, path = door.run(work, account="bob")
    assert "secret" not in names and path == "/b/c"


def test_paths_when_they_are_tricks_lead_to_no_file_of_another_account(door: RunningDoor) -> None:
    import asyncssh

    door.ask("PUT", "/secret", b"secret")
    climbs = ("/../secret", "a/../../secret", "%2e%2e/secret", "..%2fsecret", "..\\secret", "/uri/secret")
    broken = ("secret\0", "secret\0/../a", "x" * (MAX_PATH + 1), "d/" * 3000, "\udcff")

    async def work(client: Any) -> set[type]:
        for path in climbs:
            with pytest.raises(asyncssh.SFTPError):
                await client.open(path, "rb")
        refused = set()
        for path in broken:
            for attempt in (client.open, client.mkdir, client.stat, client.remove):
                with pytest.raises(asyncssh.SFTPError) as caught:
                    await (attempt(os.fsencode(path), "wb") if attempt == client.open else attempt(os.fsencode(path)))
                refused.add(type(caught.value))
        assert await client.listdir("/") == before
        return refused

    before = door.run(lambda client: client.listdir("/"), account="bob")
    assert door.run(work, account="bob") == {asyncssh.SFTPBadMessage}
    assert door.contents("/secret") == b"secret"


def test_entry_when_its_name_is_a_path_is_not_listed(door: RunningDoor) -> None:
    children = {name: ["filenode", {"ro_uri": "URI:LIT:"}] for name in ("../climbs", "a/b", "..", "plain")}
    status, said = door.ask("POST", "?t=set_children", json.dumps(children).encode(), "bob")
    assert status == 200, said
    names = door.run(lambda client: client.listdir("/"), account="bob")
    assert "plain" in names and not {"../climbs", "a/b", ".."} & set(names)


def test_reads_when_many_are_under_way_come_back_in_order(door: RunningDoor) -> None:
    door.ask("PUT", "/large", CONTENTS)

    async def work(client: Any) -> bytes:
        async with client.open("large", "rb") as file:
            pieces = [file.read(70_000, offset) for offset in range(0, len(CONTENTS), 60_000)]
            return b"".join([piece[:60_000] for piece in await asyncio.gather(*pieces)])

    assert door.run(work) == CONTENTS


def test_files_when_many_are_stored_at_once_share_publishes(door: RunningDoor) -> None:
    before = door.metric('grid_operations_total{kind="publish"')

    async def work(client: Any) -> list[str]:
        await client.mkdir("many")

        async def put(number: int) -> None:
            async with client.open(f"many/f{number}", "wb") as file:
                await file.write(b"%d" % number)

        await asyncio.gather(*map(put, range(60)))
        return sorted(name for name in await client.listdir("many") if name not in (".", ".."))

    assert door.run(work) == sorted(f"f{number}" for number in range(60))
    assert door.metric('grid_operations_total{kind="publish"') - before < 40
    assert door.metric("grid_sftp_requests_total{") > 60


@pytest.mark.parametrize("cipher", ["aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "aes256-ctr"])
def test_client_when_its_keys_change_between_packets_loses_no_byte(door: RunningDoor, cipher: str) -> None:
    async def work() -> tuple[bytes, str]:
        options: dict[str, Any] = {"encryption_algs": [cipher], "rekey_bytes": 500_000}
        async with door.connect(**options) as connection, connection.start_sftp_client() as client:
            async with client.open("keys", "wb") as file:
                await file.write(CONTENTS)
            async with client.open("keys", "rb") as file:
                return await file.read(), connection.get_extra_info("send_cipher")

    assert asyncio.run(asyncio.wait_for(work(), COMMAND_S)) == (CONTENTS, cipher)
    assert door.contents("/keys") == CONTENTS


def test_openssh_when_it_prefers_other_ciphers_is_given_the_fastest(door: RunningDoor, tmp_path: Path) -> None:
    said = door.openssh("sftp", tmp_path, "-v", "alice@127.0.0.1", commands="pwd\n")
    assert "server->client cipher: aes128-gcm@openssh.com" in said


def test_openssh_when_it_reads_a_long_file_asks_in_large_pieces(door: RunningDoor, tmp_path: Path) -> None:
    door.ask("PUT", "/pieces", CONTENTS)
    before = door.metric(READS)
    door.openssh("sftp", tmp_path, "alice@127.0.0.1", commands="get pieces back\n")
    assert (tmp_path / "back").read_bytes() == CONTENTS
    asked = door.metric(READS) - before
    assert len(CONTENTS) / 261_120 < asked <= len(CONTENTS) / 261_120 + 3
