"""Servers that a connected introducer lists no more, or not yet: recalled from the cache if it lists too few. (decision 479)"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from grid.discovery.announcement import parse_announcement
from grid.discovery.introducer_client import RECALL_S, IntroducerClient, IntroducerSettings
from grid.discovery.introducer_server import Introducer
from grid.discovery.server_files import KeptAnnouncements, pack_cache, parse_cache
from grid.wire.foolscap.tub import start_tub, stop_tub
from grid.wire.locators import Furl
from tests.discovery.samples import IDS, signed
from tests.discovery.test_introducer import WAIT_S, Heard, client, clock, offered


@asynccontextmanager
async def recalling(furl: Furl, file: Path, enough: int) -> AsyncIterator[tuple[Heard, Heard]]:
    """What a client hears, and what it recalls from its cache."""
    heard, recalled, tub = Heard(), Heard(), start_tub()
    settings = IntroducerSettings(furl=furl, cache_file=file, enough=enough)
    made = IntroducerClient(settings, tub, clock(), heard.take, on_recalled=recalled.take)
    made.start()
    try:
        assert await made.settled(WAIT_S)
        yield heard, recalled
    finally:
        made.close()
        await stop_tub(tub)


@pytest.mark.parametrize(
    ("listed", "enough", "is_short"),
    [(0, 0, True), (1, 0, True), (2, 0, False), (2, 3, True), (3, 3, False), (3, 9, True), (4, 9, False)],
)
async def test_introducer_that_lists_too_few_servers_is_completed_from_the_cache_and_does_not_replace_it(
    tmp_path: Path, listed: int, enough: int, is_short: bool
) -> None:
    file = tmp_path / "cache.yaml"
    kept = KeptAnnouncements()
    for index in range(4):
        kept.offer(parse_announcement(signed(index).to_tuple()))
    file.write_bytes(pack_cache(kept))
    news = [signed(index, 2) for index in range(listed)]
    async with offered(Introducer("grid/1")) as furl, client(furl, *news) as (_, own):
        await own.wait_for(listed)
        async with recalling(furl, file, enough) as (heard, recalled):
            assert heard.seqnums == sorted((IDS[index], 2) for index in range(listed))
            missing = [(IDS[index], 1) for index in range(listed, 4)]
            assert recalled.seqnums == (sorted(missing) if is_short else [])
            assert all(one.signed is None for one in recalled.announcements)
    left = {one.server_id: one.seqnum for one in parse_cache(file.read_bytes())}
    assert left == (dict.fromkeys(IDS, 1) if is_short else dict.fromkeys(IDS[:listed], 2))


async def test_old_cache_does_not_complete_what_an_introducer_lists(tmp_path: Path) -> None:
    file = tmp_path / "cache.yaml"
    kept = KeptAnnouncements()
    for index in range(4):
        kept.offer(parse_announcement(signed(index).to_tuple()))
    file.write_bytes(pack_cache(kept))
    before = file.stat().st_mtime - RECALL_S - 60
    os.utime(file, (before, before))
    async with offered(Introducer("grid/1")) as furl, client(furl, signed(0)) as (_, own):
        await own.wait_for(1)
        async with recalling(furl, file, 4) as (heard, recalled):
            assert heard.seqnums == [(IDS[0], 1)] and recalled.seqnums == []
    assert [one.server_id for one in parse_cache(file.read_bytes())] == [IDS[0]]
