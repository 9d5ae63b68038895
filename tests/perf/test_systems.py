"""The whole harness over Grid's processes."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, cast

import pytest

from grid.node.client import Client
from grid.ports import Event
from perf.campaigns.campaign import Encoding
from perf.network.contract import Placement
from perf.sampling.timeline import EventLog
from perf.systems import library
from perf.systems.contract import Fetch
from perf.systems.grid import GridSystem
from tests.perf.everything import EVERYTHING, everything, expect_all


@pytest.mark.parametrize("system", [pytest.param("grid@foolscap", marks=pytest.mark.deep), "grid@http+zfec+undurable"])
def test_grid_does_all_that_campaigns_ask(tmp_path: Path, system: str) -> None:
    record = everything(tmp_path, system)
    expect_all(record, "zfec" if "zfec" in system else "isal")
    puts = [sample for sample in record.samples if sample.scenario == "put"]
    assert all(sample.requests and sample.requests >= EVERYTHING.servers for sample in puts)


def test_gateway_of_grid_when_asked_puts_and_gets_what_the_library_sees_too(tmp_path: Path) -> None:
    encoding = Encoding(needed=2, happy=2, total=3)
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(bytes(range(256)) * 1000)
    system = GridSystem("grid")
    try:
        system.start(tmp_path / "work", 3, [encoding], Placement())
        (cap,), usage = system.put("gateway", encoding, [source], 1)
        assert usage.client_peak_rss and usage.client_peak_rss > 0
        for client in ("gateway", "warm"):
            system.get(client, encoding, [Fetch(cap=cap, target=target)], 1)
            assert target.read_bytes() == source.read_bytes()
            target.unlink()
    finally:
        system.stop()


def test_library_keeps_the_events_of_the_slowest_of_the_requests_that_run_beside_each_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = [0.0]

    async def put(client: object, log: EventLog, name: str, seconds: float) -> str:
        clock[0] += seconds
        log(Event(at=clock[0], what="send", detail=name))
        return name

    monkeypatch.setattr(library, "ANSWERS", {"put": put})
    monkeypatch.setattr("perf.systems.library.time.perf_counter", lambda: clock[0])
    server = library.Server(cast(Client, None), EventLog())

    def ask(what: str, *items: object, **more: int) -> list[Any]:
        return asyncio.run(server.answer({"what": what, "items": items, "concurrency": 1, **more}))

    def kept() -> list[str]:
        return [event[2] for event in json.loads(ask("trace", number=0)[1])["events"]]

    assert kept() == []
    for number, (name, seconds) in enumerate([("a", 1.0), ("b", 3.0), ("c", 2.0)]):
        assert ask("put", [name, seconds], number=number) == [name]
    assert kept() == kept() == ["b"]
    ask("forget", number=9)
    assert kept() == []
    ask("put", ["d", 0.5], number=10)
    assert kept() == ["d"]
    # One at a time, it is always the last.
    ask("put", ["e", 0.25])
    assert kept() == ["e"]
