"""Directories in the history of operations, as /status shows it after real requests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from attrs import fields

from grid.caps import DirectoryCap, KnownCap, SdmfWriteCap, UnknownCap, parse_cap
from grid.codec import base32
from grid.directory.file_store import FileStore
from grid.engine.grid import Grid
from grid.gateway.history.history import History
from grid.gateway.history.recorded_store import RecordedStore
from tests.gateway.rig import running_gateway
from tests.gateway.trees import gateway_of_trees, lose
from tests.support.grids import grid_of
from tests.support.virtual_time import VirtualClock, VirtualRuntime
from tests.support.web_gateway import WebGateway, form

DATA = bytes(range(256)) * 40


def index_of(text: str) -> str:
    cap = parse_cap(text)
    assert not isinstance(cap, UnknownCap) and cap.storage_index is not None
    return base32.encode(cap.storage_index)


def done(web: WebGateway, kind: str) -> list[dict[str, Any]]:
    """The operations of that kind that are over, oldest first, as /status?t=json has them."""
    recent = [each.to_json() for each in web.gateway.history.recent if each.kind == kind]
    return recent[::-1]


async def test_directory_when_made_listed_and_changed_then_each_is_an_operation(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        directory = (await web.request("POST", "/uri?t=mkdir")).text
        [made] = done(web, "publish")
        assert (made["storage-index-string"], made["outcome"]) == (index_of(directory), "done")
        assert json.loads((await web.get(f"/uri/{directory}?t=json")).text)[1]["children"] == {}
        [listed] = done(web, "retrieve")
        assert (listed["storage-index-string"], listed["total-size"]) == (index_of(directory), 0)
        assert (await web.put(f"/uri/{directory}/file", DATA)).status == 201
        assert [each["total-size"] for each in done(web, "upload")] == [len(DATA)]
        changed = done(web, "publish")[-1]
        assert (changed["storage-index-string"], changed["outcome"]) == (index_of(directory), "done")
        assert changed["total-size"] > 0
        assert (await web.get(f"/uri/{directory}/file")).body == DATA
        assert done(web, "retrieve")[-1]["total-size"] == changed["total-size"]
        counters = web.gateway.history.counters.values
        assert counters["mutable.files_published"] == 2
        assert counters["mutable.files_retrieved"] == len(done(web, "retrieve"))
        assert counters["mutable.bytes_published"] >= changed["total-size"]


async def test_directory_when_changed_then_its_operation_has_an_event_for_each_server(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path, count=3) as web:
        directory = (await web.request("POST", "/uri?t=mkdir")).text
        kind, body = form({"file": ("a", DATA)})
        reply = await web.request("POST", f"/uri/{directory}?t=upload&name=a", body, {"Content-Type": kind})
        assert reply.status in (200, 201)
        operation = next(each for each in web.gateway.history.recent if each.kind == "publish")
        events = operation.to_whole_json()["events"]
        assert isinstance(events, list)
        writes = [event for event in events if event["outcome"] == "answer" and event["shares"]]
        assert {event["server"] for event in writes} == {"s0", "s1", "s2"}
        assert sorted({share for event in writes for share in event["shares"]}) == [0, 1, 2]
        assert all(event["ended"] >= event["began"] for event in writes)


async def test_tree_when_walked_then_every_directory_is_an_operation(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        root = (await web.request("POST", "/uri?t=mkdir")).text
        inner = (await web.put(f"/uri/{root}/a/b/c?t=mkdir")).text
        before = len(done(web, "retrieve"))
        written = done(web, "publish")
        assert len(written) == 6  # Four directories; the root gets a link to the first, b one to the last.
        await web.request("POST", f"/uri/{root}?t=stream-manifest")
        read = done(web, "retrieve")[before:]
        assert len(read) == 4
        sizes = {each["storage-index-string"]: each["total-size"] for each in read}
        assert sizes.keys() >= {index_of(root), index_of(inner)}
        assert sizes == {each["storage-index-string"]: each["total-size"] for each in written}


async def test_directory_when_it_never_changes_then_is_uploaded_and_downloaded(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        file = (await web.put("/uri", DATA)).text
        children = {"one": ["filenode", {"ro_uri": file}]}
        cap = (await web.request("POST", "/uri?t=mkdir-immutable", json.dumps(children).encode())).text
        assert isinstance(parse_cap(cap), DirectoryCap)
        assert done(web, "upload")[-1]["storage-index-string"] == index_of(cap)
        assert (await web.get(f"/uri/{cap}?t=json")).status == 200
        [read] = done(web, "download")
        assert (read["storage-index-string"], read["total-size"]) == (
            index_of(cap),
            done(web, "upload")[-1]["total-size"],
        )


async def test_literal_directory_when_read_is_not_an_operation(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        cap = (await web.request("POST", "/uri?t=mkdir-immutable", b"{}")).text
        assert cap.startswith("URI:DIR2-LIT:")
        assert (await web.get(f"/uri/{cap}?t=json")).status == 200
        assert web.gateway.history.recent == []


async def test_directory_when_nothing_changes_then_nothing_is_counted(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        directory = (await web.request("POST", "/uri?t=mkdir")).text
        before = web.gateway.history.counters.values["mutable.files_published"]
        assert (await web.request("POST", f"/uri/{directory}?t=set_children", b"{}")).status == 200
        assert web.gateway.history.counters.values["mutable.files_published"] == before


async def test_directory_when_it_is_lost_then_its_operation_has_failed(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        directory = (await web.request("POST", "/uri?t=mkdir")).text
        lose(web, directory, 3)
        assert (await web.get(f"/uri/{directory}?t=json")).status == 410
        [failed] = done(web, "retrieve")
        assert failed["outcome"] == "failed"
        assert "URI:" not in failed["status"]


async def test_events_when_a_directory_is_changed_then_tell_of_it_live(tmp_path: Path) -> None:
    async with running_gateway(tmp_path) as rig:
        wire = await rig.connect()
        wire.send(f"GET /status/events HTTP/1.1\r\nHost: {rig.host}\r\n\r\n".encode())
        while b"retry:" not in wire.received:
            await wire.more()
        directory = (await rig.ask("POST", "/uri?t=mkdir")).body.decode()
        assert (await rig.ask("PUT", f"/uri/{directory}/file", DATA)).status == 201
        await rig.ask("GET", f"/uri/{directory}?t=json")
        wanted = {"publish", "upload", "retrieve"}
        while True:
            lines = bytes(wire.received).split(b"\n")[:-1]
            told = [json.loads(line[6:]) for line in lines if line.startswith(b"data: {")]
            if {each["type"] for each in told if each["outcome"] == "done"} >= wanted:
                break
            await wire.more()
        assert index_of(directory) in {each["storage-index-string"] for each in told}
        assert b"URI:" not in wire.received


def test_store_when_it_is_recorded_then_its_grid_is_the_same_but_for_its_observer() -> None:
    grid = grid_of((), VirtualRuntime())
    history = History(VirtualClock())
    recorded = RecordedStore(FileStore(grid=grid), history)
    assert recorded.grid.observer == history.observe
    kept = [each.name for each in fields(Grid) if each.name != "observer"]
    assert all(getattr(recorded.grid, name) is getattr(grid, name) for name in kept)


def test_store_when_it_is_recorded_opens_a_directory_once() -> None:
    asked: list[KnownCap] = []
    recorded = RecordedStore(
        FileStore(grid=grid_of((), VirtualRuntime()), permit=asked.append), History(VirtualClock())
    )
    cap = DirectoryCap(SdmfWriteCap(write_key=bytes(16), fingerprint=bytes(32)))
    assert recorded.directory(cap).recall() is None
    assert len(asked) == 2, "for the directory, and for its file"
