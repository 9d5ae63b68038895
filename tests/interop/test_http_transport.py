"""HTTP with Tahoe-LAFS 1.20: our client keeps the contract with its servers, its client works with our servers."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import pytest
import pytest_twisted
from twisted.internet import reactor

from grid.errors import BadWriteEnablerError, PeerError
from grid.ports import ShareNumber, StorageServer
from grid.wire.foolscap.tub import node_certificate
from grid.wire.http.client.pool import Pool
from grid.wire.http.client.server import HttpServer
from grid.wire.http.format.tls import spki_hash_of_pem
from grid.wire.locators import Nurl, parse_furl
from perf.processes.clients import TahoeClient, run_command
from perf.processes.node_directory import tahoe_executable
from perf.processes.process_grid import ClientSettings, ProcessGrid
from tests.contract.storage_server import (
    begin,
    fresh_index,
    plain,
    put,
    share_numbers,
    slot,
    slot_secrets,
    vector,
)
from tests.contract.whole_shares import WholeSharesContract
from tests.wire.http.rig import make_identity, make_runtime

pytestmark = pytest.mark.interop


def nurl_of(directory: Path) -> Nurl:
    """Where the storage node in that directory serves HTTP. [spec wire 12]"""
    furl = parse_furl((directory / "private" / "storage.furl").read_text().strip())
    host, port = furl.hints[0].removeprefix("tcp:").rsplit(":", 1)
    spki = spki_hash_of_pem(node_certificate(directory / "private" / "node.pem"))
    return Nurl(spki_hash=spki, host=host, port=int(port), swissnum=furl.swissnum)


@pytest.fixture(scope="module")
def tahoe_storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The directory of a running storage node of 1.20."""
    root = tmp_path_factory.mktemp("http") / "grid"
    with ProcessGrid(root, introducer="tahoe", storage=["tahoe"], force_foolscap=False) as grid:
        (node,) = grid.storage
        furl = node.directory / "private" / "storage.furl"
        node.wait_for(lambda: furl.exists() and bool(furl.read_text().strip()), "its FURL")
        yield node.directory


class TestTahoeServer(WholeSharesContract):
    @pytest_twisted.async_yield_fixture
    async def server(self, tahoe_storage: Path) -> AsyncGenerator[StorageServer, None]:
        runtime = make_runtime()
        pool = Pool(reactor, runtime.clock)
        client = HttpServer(make_identity(), [nurl_of(tahoe_storage)], pool, runtime)
        try:
            yield client
        finally:
            client.close()

    async def test_upload_when_of_empty_shares_stores_empty_shares(self, server: StorageServer) -> None:
        """The protocol of 1.20 has no way to say that they are complete. [spec wire 17]"""
        upload = await begin(server, fresh_index(), [5], 0)
        with pytest.raises(PeerError):
            await upload.close(share_numbers(5))
        await upload.abort()

    async def test_slot_when_the_write_enabler_is_wrong_stays_as_it_is(self, server: StorageServer) -> None:
        """Over HTTP a server of 1.20 says no more than that it is wrong."""
        index = fresh_index()
        await server.test_and_write(index, slot_secrets(b"w"), {ShareNumber(0): vector((0, b"mine"))})
        for attempt in ({ShareNumber(0): vector((0, b"theirs"))}, {ShareNumber(1): vector((0, b"theirs"))}):
            with pytest.raises(BadWriteEnablerError):
                await server.test_and_write(index, slot_secrets(b"x"), attempt, [(0, 9)])
        assert await slot(server, index) == {0: b"mine"}

    async def test_read_when_longer_than_the_share_is_cut_short(self, server: StorageServer) -> None:
        index = fresh_index()
        data = os.urandom(3_000_000)
        await put(server, index, {1: data})
        found = plain(await server.read_shares(index, {ShareNumber(1): [(1_000_000, 2**24), (5, 10)]}))
        assert found == {1: [data[1_000_000:], data[5:15]]}


@pytest.fixture(scope="module")
def over_http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TahoeClient]:
    """A client of 1.20 that reaches five storage nodes of ours, and them only over HTTP."""
    root = tmp_path_factory.mktemp("http") / "grid"
    with ProcessGrid(root, introducer="tahoe", storage=["grid"] * 5, force_foolscap=False) as grid:
        client = grid.add_client(ClientSettings(kind="tahoe", needed=3, happy=5, total=8))
        assert isinstance(client, TahoeClient)
        yield client


def shares_on_disk(client: TahoeClient) -> dict[str, int]:
    """How many shares of each storage index the nodes hold."""
    found: dict[str, int] = {}
    for path in client.directory.parent.glob("storage*/storage/shares/??/*/*"):
        found[path.parent.name] = found.get(path.parent.name, 0) + 1
    return found


@pytest.mark.parametrize("size", [56, 200_000, 5_000_001])
def test_file_when_put_by_tahoe_over_http_is_there_to_verify_and_get(
    over_http: TahoeClient, size: int, tmp_path: Path
) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(os.urandom(size))
    before = shares_on_disk(over_http)
    cap = over_http.put(source)
    added = {index: count for index, count in shares_on_disk(over_http).items() if index not in before}
    assert list(added.values()) == [8]
    over_http.get(cap, target)
    assert target.read_bytes() == source.read_bytes()
    results = over_http.check(cap)
    assert results["healthy"] and results["count-shares-good"] == 8


@pytest.mark.parametrize("kind", ["SDMF", "MDMF"])
def test_mutable_file_when_put_by_tahoe_over_http_is_changed_and_verified(
    over_http: TahoeClient, kind: str, tmp_path: Path
) -> None:
    first, second, target = tmp_path / "first", tmp_path / "second", tmp_path / "target"
    first.write_bytes(os.urandom(300_000))
    second.write_bytes(os.urandom(400_001))
    tahoe = [tahoe_executable(), "-d", str(over_http.directory)]
    cap = run_command([*tahoe, "put", "--mutable", f"--format={kind}", str(first)]).decode().strip()
    run_command([*tahoe, "put", str(second), cap])
    run_command([*tahoe, "get", cap, str(target)])
    assert target.read_bytes() == second.read_bytes()
    results = over_http.cli_check(cap)
    assert results["healthy"] and results["count-shares-good"] == 8


def test_leases_when_added_by_tahoe_over_http_are_taken(over_http: TahoeClient, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(os.urandom(10_000))
    cap = over_http.put(source)
    run_command([tahoe_executable(), "-d", str(over_http.directory), "check", "--add-lease", cap])


def test_shares_when_damaged_are_found_and_got_round_by_tahoe_over_http(over_http: TahoeClient, tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(os.urandom(100_000))
    before = shares_on_disk(over_http)
    cap = over_http.put(source)
    (index,) = shares_on_disk(over_http).keys() - before.keys()
    nodes = over_http.directory.parent
    for share in sorted(nodes.glob(f"storage*/storage/shares/??/{index}/*"))[:5]:
        content = bytearray(share.read_bytes())
        content[2000] ^= 1
        share.write_bytes(content)
    over_http.get(cap, target)
    assert target.read_bytes() == source.read_bytes()
    results = over_http.check(cap)
    assert not results["healthy"] and results["count-corrupt-shares"] == 5
