"""Every storage call through real sockets: requests and answers arrive unchanged."""

from __future__ import annotations

import pytest
from attrs import evolve

from grid.errors import (
    BadWriteEnablerError,
    ConflictingWriteError,
    DataTooLargeError,
    GridError,
    NoSpaceError,
    PeerError,
    PeerRefusedError,
    UnknownVersionError,
)
from grid.limits import READ_CALL_BYTES
from grid.ports import ServerVersion, ShareWrite, SlotSecrets, StorageServer, TestWrite
from tests.wire.foolscap.loopback import INDEX, LEASE, VERSION, ScriptedServer, connected, number

SINGLE = evolve(
    VERSION, batched_reads=False, batched_writes=False, batched_stores=False, batched_finds=False, packed_slots=False
)


@pytest.fixture(params=["batched", "single"])
def server(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ScriptedServer:
    """A server that offers the extensions, and one that does not."""
    if request.param == "single":
        from grid.wire.foolscap.server import server as module
        from grid.wire.foolscap.values import BATCH_KEY, pack_version

        def without_batches(version: ServerVersion) -> dict[bytes, object]:
            return {key: value for key, value in pack_version(version).items() if key != BATCH_KEY}

        monkeypatch.setattr(module, "pack_version", without_batches)
        return ScriptedServer(version=SINGLE)
    return ScriptedServer()


async def test_get_version_when_called_again_then_asks_the_server_again(server: ScriptedServer) -> None:
    async with connected(server) as client:
        assert await client.get_version() == server.version
        server.version = evolve(server.version, available_space=3)
        assert await client.get_version() == server.version
        assert server.calls == [("get_version",)] * 2


async def test_find_shares_when_some_are_held_then_gives_their_ranges(server: ScriptedServer) -> None:
    server.shares = {number(0): b"zero share", number(255): b"last"}
    async with connected(server) as client:
        found = await client.find_shares(INDEX, [(0, 4), (2, 100), (50, 1)])
        assert {share: [bytes(piece) for piece in pieces] for share, pieces in found.items()} == {
            0: [b"zero", b"ro share", b""],
            255: [b"last", b"st", b""],
        }
        assert found.keys() == (await client.find_shares(INDEX)).keys()


async def test_find_shares_when_none_is_held_then_is_empty(server: ScriptedServer) -> None:
    async with connected(server) as client:
        assert await client.find_shares(INDEX, [(0, 4)]) == {}


async def test_read_shares_when_one_is_missing_then_leaves_it_out(server: ScriptedServer) -> None:
    server.shares = {number(1): b"one"}
    async with connected(server) as client:
        found = await client.read_shares(INDEX, {number(1): [(1, 9)], number(2): [(0, 1)]})
        assert {share: [bytes(piece) for piece in pieces] for share, pieces in found.items()} == {1: [b"ne"]}


async def test_read_shares_when_a_share_appears_later_then_finds_it(server: ScriptedServer) -> None:
    server.shares = {number(1): b"one"}
    async with connected(server) as client:
        await client.read_shares(INDEX, {number(1): [(0, 1)]})
        server.shares[number(2)] = b"two"
        found = await client.read_shares(INDEX, {number(1): [(0, 1)], number(2): [(0, 3)]})
        assert bytes(found[number(2)][0]) == b"two"


async def test_read_shares_when_as_large_as_allowed_then_arrives_whole() -> None:
    server = ScriptedServer(shares={number(1): bytes(READ_CALL_BYTES)})
    async with connected(server) as client:
        found = await client.read_shares(INDEX, {number(1): [(0, READ_CALL_BYTES)]})
        assert bytes(found[number(1)][0]) == server.shares[number(1)]
        with pytest.raises(PeerRefusedError):
            await client.read_shares(INDEX, {number(1): [(0, READ_CALL_BYTES), (0, 1)]})


async def test_find_shares_when_the_answer_would_outgrow_its_limit_then_leaves_data_out() -> None:
    half = READ_CALL_BYTES // 2 + 1
    server = ScriptedServer(shares=dict.fromkeys(map(number, range(2)), bytes(half)))
    async with connected(server) as client:
        found = await client.find_shares(INDEX, [(0, half)])
        assert sorted(len(pieces) for pieces in found.values()) == [0, 1]


async def test_upload_when_written_and_closed_then_the_server_has_it(server: ScriptedServer) -> None:
    server.shares = {number(7): b""}
    async with connected(server) as client:
        allocation = await client.allocate(INDEX, LEASE, frozenset(map(number, (0, 5, 7))), 10)
        assert allocation.already == {7}
        assert allocation.upload.share_numbers == {0, 5}
        writes = [
            ShareWrite(number(0), 4, [b"x", memoryview(b"yz"), bytearray(b"!")]),
            ShareWrite(number(5), 0, [b"five"]),
        ]
        await allocation.upload.write(writes)
        await allocation.upload.close([number(0)])
        await allocation.upload.abort()
        await allocation.upload.abort()
        (upload,) = server.uploads
        assert upload.data == {0: b"\0\0\0\0xyz!", 5: b"five"}
        assert upload.closed == {0}
        assert upload.aborted == {5}


async def test_upload_when_one_share_is_aborted_then_the_others_go_on(server: ScriptedServer) -> None:
    async with connected(server) as client:
        upload = (await client.allocate(INDEX, LEASE, frozenset(map(number, (0, 5))), 10)).upload
        await upload.abort([number(5)])
        with pytest.raises(PeerError):
            await upload.write([ShareWrite(number(5), 0, [b"x"])])
        await upload.write([ShareWrite(number(0), 0, [b"x"])])
        await upload.close([number(0)])
        with pytest.raises(PeerError):
            await upload.write([ShareWrite(number(0), 0, [b"x"])])
        await upload.abort()
        assert server.uploads[0].aborted == {5}


@pytest.mark.parametrize(
    "error",
    [
        ConflictingWriteError("Chunk 0-1 doesn't match already written data."),
        DataTooLargeError("too large"),
        NoSpaceError("full"),
        BadWriteEnablerError("The write enabler was recorded by nodeid 'x'."),
    ],
)
async def test_write_when_the_server_refuses_then_raises_the_same_error(
    server: ScriptedServer, error: GridError
) -> None:
    async with connected(server) as client:
        upload = (await client.allocate(INDEX, LEASE, frozenset([number(0)]), 10)).upload
        server.uploads[0].refusal = error
        with pytest.raises(type(error), match=str(error)):
            await upload.write([ShareWrite(number(0), 0, [b"x"])])


async def test_calls_when_the_server_raises_another_error_then_its_kind_is_kept() -> None:
    server = ScriptedServer()
    async with connected(server) as client:
        await client.connect()
        server.refusal = UnknownVersionError("this container has version 9")
        with pytest.raises(PeerRefusedError, match="version 9") as caught:
            await client.find_shares(INDEX)
        assert caught.value.kind == "UnknownContainerVersionError"


async def test_calls_when_the_server_has_a_defect_then_its_text_stays_there() -> None:
    server = ScriptedServer()
    async with connected(server) as client:
        await client.connect()
        server.refusal = OSError("/secret/path")
        with pytest.raises(PeerRefusedError) as caught:
            await client.find_shares(INDEX)
        assert "secret" not in str(caught.value)
        assert caught.value.kind == "InternalError"


async def test_lease_and_advice_when_given_then_arrive(server: ScriptedServer) -> None:
    async with connected(server) as client:
        await client.add_lease(INDEX, LEASE)
        await client.advise_corrupt("mutable", INDEX, number(3), "schlecht ü" + "x" * 40000)
        _, lease, advice = server.calls
        assert lease == ("add_lease", INDEX, LEASE)
        assert advice[:4] == ("advise_corrupt", "mutable", INDEX, 3)
        assert str(advice[4]).startswith("schlecht ü")


async def test_slots_when_read_and_written_then_all_parts_arrive(server: ScriptedServer) -> None:
    server.shares = {number(2): b"slot share"}
    secrets = SlotSecrets(write_enabler=b"w" * 32, lease=LEASE)
    async with connected(server) as client:
        assert await client.read_slot(INDEX, frozenset(), [(0, 4), (5, 99)]) == {2: [b"slot", b"share"]}
        assert await client.read_slot(INDEX, frozenset([number(1)]), [(0, 4)]) == {}
        write = TestWrite(tests=[(0, 1, b"")], writes=[(3, memoryview(b"data"))], new_length=7)
        empty = TestWrite(tests=[], writes=[], new_length=0)
        answer = await client.test_and_write(INDEX, secrets, {number(2): write, number(4): empty}, [(0, 2)])
        assert answer.passed is True
        assert answer.data == {2: [b"sl"]}
        assert server.calls[-1] == (
            "test_and_write",
            INDEX,
            secrets,
            {2: TestWrite(tests=[(0, 1, b"")], writes=[(3, b"data")], new_length=7), 4: empty},
            [(0, 2)],
        )


def test_client_when_checked_by_type_then_is_a_storage_server() -> None:
    from grid.wire.foolscap.client.server import FoolscapServer

    def accept(server: type[StorageServer]) -> None:
        del server

    accept(FoolscapServer)
