"""Storing request bodies: convergent keys computed on arrival, limits on parallel stores, and bodies that pass straight through."""

from __future__ import annotations

import os
import random
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from grid.engine.grid import Encoding
from grid.errors import GridError
from grid.gateway.files.uploads import ArrivingKey, PassingSource
from grid.gateway.shared.store_turns import LARGE_STORES, PASSING_STORES
from grid.immutable.share.encode import convergent_hasher
from grid.immutable.share.geometry import Geometry
from grid.limits import MAX_SDMF_BODY
from grid.storage.files.memory_disk import DirectoryNode, FileNode
from tests.gateway.one_level import folder_of, gateway_of_files
from tests.support.web_gateway import WebGateway

ENCODING = Encoding(k=3, n=10, happy=7, max_segment_size=1000)
SECRET = b"secret"


def key_of(data: bytes) -> bytes:
    """The key by the definition."""
    hasher = convergent_hasher(SECRET, Geometry.of_file(len(data), 3, 10, 1000))
    hasher.update(data)
    return hasher.digest(16)


def arrive(data: bytes, expected: int | None) -> bytes | None:
    arriving = ArrivingKey(SECRET, ENCODING, expected)
    for start in range(0, len(data), 77):
        arriving.update(data[start : start + 77])
    return arriving.finish()


@pytest.mark.parametrize("size", [56, 500, 999, 1000, 1001, 5000])
def test_key_when_the_size_is_known_then_is_that_of_the_file(size: int) -> None:
    assert arrive(bytes(size), size) == key_of(bytes(size))


@pytest.mark.parametrize("size", [1000, 1001, 5000])
def test_key_when_a_long_file_comes_without_its_size_then_is_that_of_the_file(size: int) -> None:
    assert arrive(bytes(size), None) == key_of(bytes(size))


@pytest.mark.parametrize(("size", "expected"), [(0, None), (55, None), (500, None), (0, 0), (55, 55), (500, 800)])
def test_key_when_the_file_is_not_as_expected_then_there_is_none(size: int, expected: int | None) -> None:
    assert arrive(bytes(size), expected) is None


def test_key_when_nearly_all_came_then_is_right_or_none() -> None:
    assert arrive(bytes(997), 998) in (None, key_of(bytes(997)))


DATA = random.Random(3).randbytes(12_000_000)


async def pieces(data: bytes, step: int) -> AsyncIterator[bytes]:
    for start in range(0, len(data), step):
        yield data[start : start + step]


def is_idle(web: WebGateway) -> bool:
    """Whether all turns are free."""
    return web.gateway.stores.large.is_free and web.gateway.stores.passing.is_free


async def idle(web: WebGateway) -> None:
    """Return when no request is under way."""
    while web.factory.requests:
        await web.gateway.store.runtime.clock.sleep(0.01)


@pytest.mark.parametrize("step", [1, 7, 100, 1000])
async def test_passing_body_when_read_in_order_then_gives_its_bytes_once(step: int) -> None:
    data = DATA[:100]
    source = PassingSource(100, pieces(data, step))
    assert bytes(await source.read_at(0, 0)) == b""
    assert bytes(await source.read_at(0, 30)) == data[:30]
    assert bytes(await source.read_at(30, 1)) == data[30:31]
    with pytest.raises(GridError, match="second time"):
        await source.read_at(0, 30)
    assert bytes(await source.read_at(31, 69)) == data[31:]
    with pytest.raises(GridError, match="ended"):
        await source.read_at(100, 1)


@pytest.mark.parametrize("format", ["chk", "mdmf", "sdmf"])
async def test_client_when_it_goes_away_in_the_middle_then_nothing_is_stored_or_kept(
    tmp_path: Path, format: str
) -> None:
    async with gateway_of_files(tmp_path) as web:
        descriptors = len(list(Path("/proc/self/fd").iterdir()))
        room = [service.store.available_space() for service in web.services]
        connection = await web.connect()
        connection.send(web.head("PUT", f"/uri?format={format}", len(DATA)) + DATA[: len(DATA) // 2])
        while not any(request.body and request.body.received > 5_000_000 for request in web.factory.requests):
            await web.gateway.store.runtime.clock.sleep(0.01)
        await connection.close()
        await idle(web)
        assert is_idle(web)
        if format == "chk":
            assert [service.store.available_space() for service in web.services] == room
        for _ in range(500):  # Threads of the pool close what they have opened.
            if len(list(Path("/proc/self/fd").iterdir())) <= descriptors:
                break
            await web.gateway.store.runtime.clock.sleep(0.01)
        assert len(list(Path("/proc/self/fd").iterdir())) <= descriptors


async def test_files_when_many_come_at_once_then_all_are_stored(tmp_path: Path) -> None:
    async with gateway_of_files(tmp_path) as web:
        connections = []
        for index in range(3 * LARGE_STORES):
            body = bytes([index]) + DATA[:1_500_000]
            connections.append(await web.connect())
            connections[-1].send(web.head("PUT", f"/uri?format={'mdmf' if index % 3 else 'chk'}", len(body)) + body)
        for index, connection in enumerate(connections):
            reply = await connection.reply()
            assert reply.status == 200
            assert (await web.get(f"/uri/{reply.text}")).body == bytes([index]) + DATA[:1_500_000]
        assert is_idle(web)


async def test_clients_when_they_are_slow_then_hold_up_nobody(tmp_path: Path) -> None:
    async with gateway_of_files(tmp_path) as web:
        slow = []
        for index in range(LARGE_STORES + PASSING_STORES + 1):
            slow.append(await web.connect())
            slow[-1].send(
                web.head("PUT", f"/uri?format={'chk' if index % 2 else 'mdmf'}", len(DATA)) + DATA[:1_500_000]
            )
        for format in ("chk", "mdmf", "sdmf"):
            reply = await web.put(f"/uri?format={format}", DATA[:1_500_000])
            assert reply.status == 200
        for connection in slow:
            connection.send(DATA[1_500_000:])
        for connection in slow:
            assert (await connection.reply()).status == 200
        assert is_idle(web)


def spooled_bytes(folder: Path) -> int:
    """Bytes in files without a name that this process has open below the folder."""
    found = [os.stat(path).st_size for path in Path("/proc/self/fd").iterdir() if _leads_into(path, folder)]
    return sum(found)


def _leads_into(path: Path, folder: Path) -> bool:
    try:
        return os.readlink(path).startswith(str(folder))
    except FileNotFoundError:
        return False


def written_bytes(web: WebGateway) -> int:
    """Bytes of shares on the disks of the servers that are not zero, as holes are."""
    nodes: list[DirectoryNode | FileNode] = [disk._root for disk in web.disks]
    count = 0
    while nodes:
        node = nodes.pop()
        if isinstance(node, DirectoryNode):
            nodes.extend(node.entries.values())
        else:
            count += len(node.data) - node.data.count(0)
    return count


EXPANDING = Encoding(k=1, n=3, happy=3)
"""A batch of segments is a small part of DATA."""


async def test_unique_file_when_its_end_is_missing_then_is_being_written_and_nothing_is_spooled(tmp_path: Path) -> None:
    async with gateway_of_files(tmp_path, encoding=EXPANDING) as web:
        nap = web.gateway.store.runtime.clock.sleep
        for query, is_unique in (("", False), ("?unique=true", True)):
            connection = await web.connect()
            before = written_bytes(web)
            connection.send(web.head("PUT", f"/uri{query}", len(DATA)) + DATA[:11_000_000])
            while not any(request.body and request.body.received == 11_000_000 for request in web.factory.requests):
                await nap(0.01)
            while is_unique and written_bytes(web) < before + 4_000_000:
                await nap(0.01)
            while not is_unique and spooled_bytes(tmp_path) < 4_000_000:
                await nap(0.01)
            assert bool(written_bytes(web) - before) == is_unique
            assert bool(spooled_bytes(tmp_path)) != is_unique
            connection.send(DATA[11_000_000:])
            reply = await connection.reply()
            assert reply.status == 200
            assert (await web.get(f"/uri/{reply.text}")).body == DATA
            await idle(web)
        assert is_idle(web)


@pytest.mark.parametrize("size", [0, 55, 56, 1_000_000, 2_000_000, 5_000_000])
async def test_unique_files_when_they_are_equal_then_get_their_own_keys(tmp_path: Path, size: int) -> None:
    async with gateway_of_files(tmp_path) as web:
        caps = [(await web.put("/uri?unique=true", DATA[:size])).text for _ in range(2)]
        form = await web.post_form("/uri?t=upload&unique=true&when_done=/%25(uri)s", {"file": ("x", DATA[:size])})
        assert form.status == 302
        assert (caps[0] == caps[1]) == (size <= 55)
        for cap in caps:
            assert (await web.get(f"/uri/{cap}")).body == DATA[:size]


async def test_files_when_the_client_has_no_convergence_then_get_their_own_keys(tmp_path: Path) -> None:
    async with gateway_of_files(tmp_path, convergence=None) as web:
        folder = await folder_of(web)
        for size in (1_000_000, 3_000_000):
            caps = [(await web.put("/uri", DATA[:size])).text for _ in range(2)]
            caps.append((await web.put(f"{folder}/name", DATA[:size])).text)
            assert len(set(caps)) == 3
            for cap in caps:
                assert (await web.get(f"/uri/{cap}")).body == DATA[:size]


async def test_unique_file_when_its_client_goes_away_then_nothing_is_stored(tmp_path: Path) -> None:
    async with gateway_of_files(tmp_path, encoding=EXPANDING) as web:
        room = [service.store.available_space() for service in web.services]
        connection = await web.connect()
        connection.send(web.head("PUT", "/uri?unique=true", len(DATA)) + DATA[:11_000_000])
        while not written_bytes(web):
            await web.gateway.store.runtime.clock.sleep(0.01)
        await connection.close()
        await idle(web)
        assert is_idle(web)
        while [service.store.available_space() for service in web.services] != room:  # A server may be writing still.
            await web.gateway.store.runtime.clock.sleep(0.01)
        assert [service.store.available_space() for service in web.services] == room


@pytest.mark.parametrize("size", [100, 200_000, 1_500_000])
async def test_equal_files_when_they_come_at_once_then_are_stored_one_after_the_other(
    tmp_path: Path, size: int
) -> None:
    async with gateway_of_files(tmp_path) as web:
        connections = [await web.connect() for _ in range(6)]
        for connection in connections:
            connection.send(web.head("PUT", "/uri", size) + DATA[:size])
        replies = [await connection.reply() for connection in connections]
        replies.append(await web.post_form("/uri?t=upload&when_done=/%25(uri)s", {"file": ("x", DATA[:size])}))
        assert [reply.status for reply in replies] == 6 * [200] + [302]
        assert len({reply.text for reply in replies[:6]}) == 1
        assert not web.gateway.stores._alone


async def test_sdmf_when_it_is_too_large_then_is_refused_before_it_comes(tmp_path: Path) -> None:
    async with gateway_of_files(tmp_path) as web:
        connection = await web.connect()
        connection.send(web.head("PUT", "/uri?format=sdmf", MAX_SDMF_BODY + 1))
        await connection.at_least(20)
        assert connection.received.startswith(b"HTTP/1.1 413 ")
        await connection.close()
        await idle(web)


async def test_body_when_the_disk_has_no_room_for_it_then_is_refused_before_it_comes(tmp_path: Path) -> None:
    async with gateway_of_files(tmp_path) as web:
        connection = await web.connect()
        connection.send(web.head("PUT", "/uri", 2**62))
        await connection.at_least(20)
        assert connection.received.startswith(b"HTTP/1.1 507 ")
        await connection.close()
        await idle(web)


async def test_body_when_the_client_waits_for_permission_then_is_asked_for(tmp_path: Path) -> None:
    async with gateway_of_files(tmp_path) as web:
        connection = await web.connect()
        connection.send(web.head("PUT", "/uri", 10, {"Expect": "100-continue"}))
        await connection.at_least(12)
        assert connection.received.startswith(b"HTTP/1.1 100 ")
        del connection.received[:]
        connection.send(b"0123456789")
        await connection.ended()
        assert b"URI:LIT:" in connection.received
