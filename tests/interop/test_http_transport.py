"""HTTP with Tahoe-LAFS 1.20: our client fulfills the contract with its servers, and its client works with ours."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
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
from perf.processes.clients import TahoeClient
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
from tests.interop.conftest import HTTP_SHARES, Pair
from tests.wire.http.rig import make_identity, make_runtime

pytestmark = pytest.mark.interop


def nurl_of(directory: Path) -> Nurl:
    """Where the storage node in that directory serves HTTP. [spec wire 12]"""
    furl = parse_furl((directory / "private" / "storage.furl").read_text().strip())
    host, port = furl.hints[0].removeprefix("tcp:").rsplit(":", 1)
    spki = spki_hash_of_pem(node_certificate(directory / "private" / "node.pem"))
    return Nurl(spki_hash=spki, host=host, port=int(port), swissnum=furl.swissnum)


@pytest.fixture
def tahoe_storage(over_http: Pair) -> Path:
    """The directory of a running storage node of 1.20."""
    return over_http.grid.storage[0].directory


@pytest.mark.parametrize("over_http", ["tahoe-servers"], indirect=True)
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


OUR_SERVERS = pytest.mark.parametrize("over_http", ["grid-servers"], indirect=True)


@pytest.fixture
def tahoe(over_http: Pair) -> TahoeClient:
    """A client of 1.20 that reaches five storage nodes of ours, and them only over HTTP."""
    return over_http.tahoe


def shares_on_disk(client: TahoeClient) -> dict[str, int]:
    """How many shares of each storage index the nodes hold."""
    found: dict[str, int] = {}
    for path in client.directory.parent.glob("storage*/storage/shares/??/*/*"):
        found[path.parent.name] = found.get(path.parent.name, 0) + 1
    return found


@OUR_SERVERS
@pytest.mark.parametrize("size", [56, 200_000, 5_000_001])
def test_file_when_put_by_tahoe_over_http_verifies_and_reads_back(
    tahoe: TahoeClient, size: int, tmp_path: Path
) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(os.urandom(size))
    before = shares_on_disk(tahoe)
    cap = tahoe.put(source)
    added = {index: count for index, count in shares_on_disk(tahoe).items() if index not in before}
    assert list(added.values()) == [HTTP_SHARES]
    tahoe.get(cap, target)
    assert target.read_bytes() == source.read_bytes()
    results = tahoe.check(cap)
    assert results["healthy"] and results["count-shares-good"] == HTTP_SHARES


@OUR_SERVERS
@pytest.mark.parametrize("kind", ["SDMF", "MDMF"])
def test_mutable_file_when_put_by_tahoe_over_http_is_changed_and_verified(
    tahoe: TahoeClient, kind: str, tmp_path: Path
) -> None:
    first, second, target = tmp_path / "first", tmp_path / "second", tmp_path / "target"
    first.write_bytes(os.urandom(300_000))
    second.write_bytes(os.urandom(400_001))
    cap = tahoe.run("put", "--mutable", f"--format={kind}", str(first)).decode().strip()
    tahoe.run("put", str(second), cap)
    tahoe.cli_get(cap, target)
    assert target.read_bytes() == second.read_bytes()
    results = tahoe.cli_check(cap)
    assert results["healthy"] and results["count-shares-good"] == HTTP_SHARES


@OUR_SERVERS
def test_leases_when_added_by_tahoe_over_http_are_accepted(tahoe: TahoeClient, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(os.urandom(10_000))
    cap = tahoe.put(source)
    tahoe.run("check", "--add-lease", cap)


@OUR_SERVERS
def test_shares_when_damaged_are_detected_and_avoided_by_tahoe_over_http(tahoe: TahoeClient, tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(os.urandom(100_000))
    before = shares_on_disk(tahoe)
    cap = tahoe.put(source)
    (index,) = shares_on_disk(tahoe).keys() - before.keys()
    nodes = tahoe.directory.parent
    for share in sorted(nodes.glob(f"storage*/storage/shares/??/{index}/*"))[:5]:
        content = bytearray(share.read_bytes())
        content[2000] ^= 1
        share.write_bytes(content)
    tahoe.get(cap, target)
    assert target.read_bytes() == source.read_bytes()
    results = tahoe.check(cap)
    assert not results["healthy"] and results["count-corrupt-shares"] == 5
