"""Discovery with the real 1.20 at one end: its introducer and our client, its nodes and our introducer."""

from __future__ import annotations

from pathlib import Path

import pytest
from twisted.internet.endpoints import TCP4ServerEndpoint

from grid.discovery.announcement import identify, storage_furl
from grid.discovery.introducer_server import Introducer
from grid.discovery.server_files import read_cache
from grid.wire.foolscap.tub import listen, register, set_location, start_tub, stop_tub
from grid.wire.locators import parse_furl
from perf.processes.node_directory import NodeSettings, make_node
from perf.processes.node_process import free_ports
from perf.processes.process_grid import ProcessGrid
from tests.discovery.samples import IDS, signed
from tests.discovery.test_introducer import client, clock

pytestmark = pytest.mark.interop


async def test_client_when_the_introducer_is_1_20s_then_hears_publishes_and_caches(tmp_path: Path) -> None:
    cache = tmp_path / "cache.yaml"
    with ProcessGrid(tmp_path / "grid", introducer="tahoe", storage=["tahoe"]) as grid:
        furl = parse_furl(grid.introducer_furl)
        async with client(furl, signed(0), cache_file=cache) as (_, heard):
            await heard.wait_for(2)
            (theirs,) = [one for one in heard.announcements if one.server_id != IDS[0]]
            assert theirs.nickname == "storage0"
            assert theirs.fields["my-version"] == "tahoe-lafs/1.20.0"
            node_file = grid.storage[0].directory / "private" / "storage.furl"
            assert storage_furl(theirs).to_string() == node_file.read_text().strip()
            seed_file = grid.storage[0].directory / "permutation-seed"
            assert theirs.fields["permutation-seed-base32"] == seed_file.read_text().strip()
            assert identify(theirs, 0.0).lease_seed == storage_furl(theirs).node_id
            async with client(furl) as (_, other):
                await other.wait_for(2)
                assert other.seqnums == heard.seqnums
    assert {one.server_id for one in read_cache(cache)} == {one.server_id for one in heard.announcements}


async def test_introducer_when_a_node_is_1_20s_then_takes_and_relays_its_announcement(tmp_path: Path) -> None:
    from twisted.internet import reactor

    introducer, tub = Introducer("grid/1"), start_tub()
    port = await listen(tub, TCP4ServerEndpoint(reactor, 0, interface="127.0.0.1"))
    set_location(tub, (f"tcp:127.0.0.1:{port}",))
    furl = register(tub, introducer, tmp_path / "introducer.furl")
    settings = NodeSettings(kind="tahoe", role="storage", introducer_furl=furl.to_string(), port=free_ports(1)[0])
    node = make_node(tmp_path / "storage", settings)
    node.start()
    try:
        async with client(furl) as (_, heard):
            await heard.wait_for(1)
            assert heard.announcements[0].nickname == "storage"
            while introducer.subscriber_count < 2:
                node.expect_running()
                await clock().sleep(0.05)
    finally:
        # A node that ends waits for its peers to let go, and this reactor stands still while the test waits for it.
        await stop_tub(tub)
        node.stop()
