"""Attacks on the door: invalid keys, old algorithms, endless login attempts, packets that are not requests."""

from __future__ import annotations

import asyncio
import struct
from pathlib import Path
from typing import Any

import pytest

from perf.processes.open_doors import make_key
from tests.sftp.conftest import COMMAND_S, RunningDoor


def refused(door: RunningDoor, **options: Any) -> BaseException:
    """Why a connection is refused."""

    async def connect() -> BaseException:
        import asyncssh

        with pytest.raises((asyncssh.Error, OSError)) as caught:
            async with door.connect(**options):
                pass
        error: BaseException = caught.value
        return error

    return asyncio.run(asyncio.wait_for(connect(), COMMAND_S))


def test_login_when_the_key_or_the_name_is_another_is_refused(door: RunningDoor, tmp_path: Path) -> None:
    make_key(tmp_path / "stranger")
    assert "Permission denied" in str(refused(door, client_keys=[str(tmp_path / "stranger")]))
    assert "Permission denied" in str(refused(door, account="bob", client_keys=[str(door.folder / "alice")]))
    assert "Permission denied" in str(refused(door, account="nobody", client_keys=[str(door.folder / "alice")]))
    assert "Permission denied" in str(refused(door, client_keys=None, password="guess"))


def test_login_when_six_keys_were_refused_ends_the_connection(door: RunningDoor, tmp_path: Path) -> None:
    strangers = [tmp_path / f"k{number}" for number in range(8)]
    for file in strangers:
        make_key(file)
    own = str(door.folder / "alice")

    async def connect() -> None:
        async with door.connect(client_keys=[*map(str, strangers[:5]), own]):
            pass

    asyncio.run(connect())
    refused(door, client_keys=[*map(str, strangers), own])


@pytest.mark.parametrize(
    "old",
    [
        {"encryption_algs": ["aes256-cbc"]},
        {"encryption_algs": ["3des-cbc"]},
        {"mac_algs": ["hmac-sha1"]},
        {"mac_algs": ["hmac-md5"]},
        {"kex_algs": ["diffie-hellman-group14-sha1"]},
        {"kex_algs": ["diffie-hellman-group-exchange-sha256"]},
    ],
    ids=str,
)
def test_algorithm_when_it_is_old_is_refused(door: RunningDoor, old: dict[str, list[str]]) -> None:
    refused(door, **old)


def raw_session(door: RunningDoor, packets: bytes) -> bytes:
    """The answer to these bytes, until the door ends the session."""

    async def talk() -> bytes:
        async with door.connect() as connection:
            process = await connection.create_process(subsystem="sftp", encoding=None)
            process.stdin.write(packets)
            return bytes(await asyncio.wait_for(process.stdout.read(), COMMAND_S))

    return asyncio.run(talk())


INIT = struct.pack(">IBI", 5, 1, 3)


@pytest.mark.parametrize(
    "packet",
    [
        struct.pack(">IB", 2**32 - 1, 3),
        struct.pack(">I", 0),
        struct.pack(">IBI", 5, 3, 7),
        struct.pack(">IBIIH", 11, 3, 7, 2**31, 1),
    ],
    ids=["endless", "empty", "cut", "string past the end"],
)
def test_packet_when_it_is_not_a_request_ends_its_session_alone(door: RunningDoor, packet: bytes) -> None:
    answer = raw_session(door, INIT + packet)
    assert answer[4] == 2
    assert "." not in door.run(lambda client: client.realpath("/"))


def test_request_when_it_is_unknown_is_answered(door: RunningDoor) -> None:
    unknown = struct.pack(">IBI", 5, 77, 9)
    answer = raw_session(door, INIT + unknown + struct.pack(">I", 0))
    length = int.from_bytes(answer[:4], "big")
    assert answer[4 + length :][4:13] == struct.pack(">BII", 101, 9, 8)


def test_channel_when_it_is_not_a_session_is_refused(door: RunningDoor) -> None:
    async def work() -> None:
        import asyncssh

        async with door.connect() as connection:
            with pytest.raises(asyncssh.ChannelOpenError):
                await connection.open_connection("127.0.0.1", door.web)
            with pytest.raises(asyncssh.ChannelOpenError):
                await connection.run("id", check=True)

    asyncio.run(asyncio.wait_for(work(), COMMAND_S))


def test_handles_when_there_are_too_many_are_refused_and_given_back(door: RunningDoor) -> None:
    door.ask("PUT", "/handle", b"x")

    async def work(client: Any) -> int:
        import asyncssh

        opened = [await client.open("handle", "rb") for _ in range(256)]
        with pytest.raises(asyncssh.SFTPFailure):
            await client.open("handle", "rb")
        for file in opened:
            await file.close()
        async with client.open("handle", "rb") as file:
            return len(await file.read())

    assert door.run(work) == 1
