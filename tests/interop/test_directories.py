"""Directories of every kind: made by Grid, then listed, changed and checked by 1.20, and vice versa; both walk the same trees."""

from __future__ import annotations

import json
import random
import urllib.parse
import urllib.request
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import pytest_twisted
from attrs import evolve

from grid.caps import DirectoryCap, KnownCap, LitCap, UnknownCap, UnknownChild, parse_cap, settle_unknown_child
from grid.directory.deep_check import CheckCounters, deep_check
from grid.directory.edits import RemoveChild, SetChild
from grid.directory.file_store import FileStore
from grid.directory.moving import move
from grid.directory.pack import Child, Target, make_entry, parse_directory
from grid.directory.stats import Manifest
from grid.directory.store import Trail
from grid.directory.walk import walk
from grid.engine.grid import Encoding
from grid.mutable.share.geometry import FormatName
from grid.mutable.sources import MemorySource
from grid.node.client import Client
from grid.node.directory import open_directory
from grid.runtime import make_runtime
from perf.processes.clients import COMMAND_S, TahoeClient
from tests.interop.conftest import CONVERGENCE, Pair

pytestmark = [pytest.mark.interop, pytest.mark.background]

FORMATS: list[FormatName] = ["sdmf", "mdmf"]
NEW_WRITE = "x-tahoe-future-test-writeable:write"
NEW_READ = "x-tahoe-future-test-read:read"


class Theirs:
    """The running 1.20 client, through its gateway."""

    def __init__(self, client: TahoeClient) -> None:
        self._client = client

    def ask(self, method: str, cap: str, rest: str = "", body: object = None) -> bytes:
        """What the gateway answers about the object of the cap. rest: path and query."""
        path = f"uri/{urllib.parse.quote(cap, safe='')}{rest}" if cap else f"uri{rest}"
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._client.url + path, data=data, method=method)
        with urllib.request.urlopen(request, timeout=COMMAND_S) as answer:
            raw: bytes = answer.read()
        return raw

    def children(self, cap: str) -> dict[str, Any]:
        """Names to [type, properties]."""
        kind, properties = json.loads(self.ask("GET", cap, "?t=json"))
        assert kind == "dirnode"
        children: dict[str, Any] = properties["children"]
        return children

    def stream(self, cap: str, query: str) -> list[dict[str, Any]]:
        """The lines of a deep operation."""
        return [json.loads(line) for line in self.ask("POST", cap, f"?{query}").splitlines()]

    def require_all_healthy(self, cap: str) -> int:
        """How many objects with shares a deep check with verification found; every one of them is whole."""
        *units, last = self.stream(cap, "t=stream-deep-check&verify=true")
        assert last["type"] == "stats"
        checked = [unit for unit in units if unit["storage-index"]]
        for unit in checked:
            results = unit["check-results"]["results"]
            assert results["healthy"] and not results["list-corrupt-shares"], unit
            assert results["count-shares-good"] == 10
        return len(checked)

    def backup(self, source: Path, cap: str) -> None:
        """`tahoe backup`."""
        self._client.run("backup", str(source), cap)


@pytest_twisted.async_yield_fixture
async def ours(usual_pair: Pair) -> AsyncIterator[FileStore]:
    """This process with the node directory of our client."""
    from twisted.internet import reactor

    client = Client(open_directory(usual_pair.ours.directory), make_runtime(reactor), reactor)
    grid = client.grid(await client.servers())
    yield FileStore(grid=evolve(grid, encoding=Encoding(k=3, n=10, happy=7), convergence=CONVERGENCE))
    await client.close()


@pytest.fixture
def theirs(usual_pair: Pair) -> Theirs:
    """The 1.20 client at 3-of-10."""
    return Theirs(usual_pair.tahoe)


async def all_kinds(store: FileStore) -> dict[str, Target]:
    """A child of every kind."""
    chk = await store.put_immutable(MemorySource(random.Random(5).randbytes(1000)))
    sdmf = await store.put_mutable(b"changes", format="sdmf")
    mdmf = await store.put_mutable(b"changes too", format="mdmf")
    folder = await store.create_directory({"in it": Child(target=chk)}, format="mdmf")
    frozen = await store.create_immutable_directory({"chk": Child(target=chk)})
    small = await store.create_immutable_directory({})
    return {
        "chk": chk,
        "lit": LitCap(data=b"small"),
        "sdmf": sdmf,
        "sdmf-ro": sdmf.read_cap(),
        "mdmf": mdmf,
        "mdmf-ro": mdmf.read_cap(),
        "folder": folder,
        "folder-ro": folder.read_cap(),
        "frozen": frozen,
        "small": small,
        "ünknown": UnknownChild(write=NEW_WRITE.encode(), read=b"ro." + NEW_READ.encode()),
        "unknown-ro": UnknownChild(read=b"ro." + NEW_READ.encode()),
    }


def told(properties: Mapping[str, Any]) -> Target:
    """The target that 1.20 tells of in its JSON."""
    write, read = properties.get("rw_uri"), properties.get("ro_uri")
    cap = parse_cap(write or read or "")
    if not isinstance(cap, UnknownCap):
        return cap
    return settle_unknown_child(write and write.encode(), read and read.encode())


def as_json(target: Target) -> list[object]:
    """A child in the form that 1.20 accepts."""
    if isinstance(target, UnknownChild):
        slots = {"rw_uri": target.write, "ro_uri": target.read}
        return ["unknown", {name: value.decode() for name, value in slots.items() if value}]
    kind = "dirnode" if isinstance(target, DirectoryCap) else "filenode"
    slot = "rw_uri" if target.authority == "write" else "ro_uri"
    return [kind, {slot: target.to_string(), "metadata": {"kept": "ü"}}]


def as_text(target: Target) -> str:
    """The text of a known cap."""
    assert not isinstance(target, UnknownChild)
    return target.to_string()


def readable(target: Target) -> Target:
    """What a holder of the directory's read cap sees."""
    return UnknownChild(read=target.read) if isinstance(target, UnknownChild) else target.read_cap()


async def targets(store: FileStore, cap: KnownCap) -> dict[str, Target]:
    """What we see in a directory."""
    assert isinstance(cap, DirectoryCap)
    return {name: child.target for name, child in (await store.directory(cap).list()).items()}


def parsed(cap: str | bytes) -> DirectoryCap:
    """A directory's cap."""
    found = parse_cap(cap)
    assert isinstance(found, DirectoryCap)
    return found


@pytest.mark.each_value
@pytest.mark.parametrize("format", FORMATS)
async def test_directory_made_by_grid_when_used_by_tahoe_has_every_child_and_changes_come_back(
    ours: FileStore, theirs: Theirs, format: FormatName
) -> None:
    kinds = await all_kinds(ours)
    cap = await ours.create_directory({"lit": Child(target=kinds["lit"], metadata={"user": "ü"})}, format=format)
    directory = ours.directory(cap)
    await directory.edit([SetChild(name, target) for name, target in kinds.items()])
    seen = theirs.children(cap.to_string())
    assert {name: told(properties) for name, (_, properties) in seen.items()} == kinds
    assert seen["lit"][1]["metadata"]["user"] == "ü" and "linkmotime" in seen["lit"][1]["metadata"]["tahoe"]
    reader = theirs.children(cap.read_cap().to_string())
    assert {name: told(properties) for name, (_, properties) in reader.items()} == {
        name: readable(target) for name, target in kinds.items()
    }
    theirs.ask("DELETE", cap.to_string(), "/chk")
    theirs.ask("POST", cap.to_string(), "?t=rename&from_name=mdmf&to_name=moved", b"")
    theirs.ask("PUT", cap.to_string(), "/new?t=uri", as_text(kinds["chk"]).encode())
    await directory.edit([SetChild("ours", kinds["lit"]), RemoveChild("small")])
    expected = {name: target for name, target in kinds.items() if name not in ("chk", "mdmf", "small")}
    expected |= {"moved": kinds["mdmf"], "new": kinds["chk"], "ours": kinds["lit"]}
    assert await targets(ours, cap) == expected
    assert {name: told(properties) for name, (_, properties) in theirs.children(cap.to_string()).items()} == expected
    assert theirs.require_all_healthy(cap.to_string()) == 6


@pytest.mark.each_value
@pytest.mark.parametrize("format", FORMATS)
async def test_directory_made_by_tahoe_when_used_by_grid_is_the_same_to_the_byte_and_changes_come_back(
    ours: FileStore, theirs: Theirs, format: FormatName
) -> None:
    kinds = await all_kinds(ours)
    body = {name: as_json(target) for name, target in kinds.items()}
    cap = parsed(theirs.ask("POST", "", f"?t=mkdir-with-children&format={format}", body))
    assert await targets(ours, cap) == kinds
    assert await targets(ours, cap.read_cap()) == {name: readable(target) for name, target in kinds.items()}
    raw = await ours.open_mutable(cap).read_all()
    write_key = cap.body.write_key  # type: ignore[union-attr]
    for name, entry in parse_directory(raw, mutable=True, write_key=write_key).items():
        assert entry.child is not None
        assert make_entry(name, entry.child, mutable=True, write_key=write_key).data == entry.data
    directory, other = ours.directory(cap), await ours.directory(cap).make_directory("made")
    await directory.edit([SetChild("lit", kinds["chk"]), RemoveChild("sdmf", must_be="file")])
    await move(ours, Trail.of(cap), "mdmf", Trail.of(other.cap), "there")
    seen = theirs.children(cap.to_string())
    assert told(seen["lit"][1]) == kinds["chk"] and seen["lit"][1]["metadata"]["kept"] == "ü"
    assert "sdmf" not in seen and "mdmf" not in seen
    moved = theirs.children(other.cap.to_string())["there"][1]
    assert told(moved) == kinds["mdmf"] and moved["metadata"]["kept"] == "ü"
    theirs.require_all_healthy(cap.to_string())


async def test_immutable_directory_when_made_by_both_is_the_same_cap(ours: FileStore, theirs: Theirs) -> None:
    kinds = await all_kinds(ours)
    imm = UnknownChild(read=b"imm." + NEW_READ.encode())
    full: dict[str, Target] = {n: kinds[n] for n in ("chk", "lit", "frozen", "small")} | {"ünknown": imm}
    one: dict[str, Target] = {"a": LitCap(data=b"small")}
    for children in ({}, one, full):
        body = {name: as_json(target) for name, target in children.items()}
        made = await ours.create_immutable_directory(
            {
                name: Child(target=target, metadata={} if isinstance(target, UnknownChild) else {"kept": "ü"})
                for name, target in children.items()
            }
        )
        assert theirs.ask("POST", "", "?t=mkdir-immutable", body).decode() == made.to_string()
        seen = theirs.children(made.to_string())
        assert {name: told(properties) for name, (_, properties) in seen.items()} == children
        assert await targets(ours, made) == children
        theirs.require_all_healthy(made.to_string())


async def test_child_marked_no_write_when_added_by_either_is_stored_alike(ours: FileStore, theirs: Theirs) -> None:
    target = await ours.put_mutable(b"mine")
    child = ["filenode", {"rw_uri": target.to_string(), "metadata": {"no-write": True}}]
    initial = parsed(theirs.ask("POST", "", "?t=mkdir-with-children", {"a": child}))
    theirs.ask("POST", initial.to_string(), "?t=set_children", {"b": child})
    seen = await targets(ours, initial)
    mine = await ours.create_directory({"a": Child(target=target, metadata={"no-write": True})})
    await ours.directory(mine).edit([SetChild("b", target, {"no-write": True})])
    assert await targets(ours, mine) == seen
    assert seen["b"] == target.read_cap()


async def test_tree_with_loops_when_walked_by_both_gives_the_same_manifest_and_stats(
    ours: FileStore, theirs: Theirs
) -> None:
    kinds = await all_kinds(ours)
    root = ours.directory(await ours.create_directory({name: Child(target=kinds[name]) for name in sorted(kinds)}))
    left = await root.make_directories(["left", "deep"])
    right = await root.make_directory("right", format="mdmf")
    await left.edit(
        [SetChild("loop", root.cap), SetChild("chk again", kinds["chk"]), SetChild("lit again", kinds["lit"])]
    )
    await right.edit([SetChild("left", left.cap), SetChild("to root", root.cap.read_cap())])
    big = await ours.put_immutable(MemorySource(random.Random(6).randbytes(40_000)))
    await right.edit([SetChild("big", big), SetChild("empty", LitCap(data=b""))])
    await same_walk(ours, theirs, root.cap)
    counters = CheckCounters()
    async for checked in deep_check(ours, root.cap, verify=True, repair=True):
        counters.add(checked)
    assert counters.objects_checked == theirs.require_all_healthy(root.cap.to_string())
    assert counters.before.healthy == counters.objects_checked and counters.repairs_attempted == 0


async def same_walk(ours: FileStore, theirs: Theirs, root: DirectoryCap) -> Manifest:
    """Our manifest of a tree, which is the same as theirs."""
    *units, last = theirs.stream(root.to_string(), "t=stream-manifest")
    manifest = Manifest()
    async for visited in walk(ours, root):
        manifest.add(visited)
    assert [(list(path), cap) for path, cap in manifest.entries] == [(unit["path"], unit["cap"]) for unit in units]
    assert manifest.verify_caps == {unit["verifycap"] for unit in units} - {""}
    assert manifest.storage_indexes == {unit["storage-index"] for unit in units} - {""}
    assert manifest.stats.to_json() == last["stats"]
    return manifest


async def test_tree_made_by_tahoe_backup_when_walked_by_grid_is_the_same(
    ours: FileStore, theirs: Theirs, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    for name, size in {"a/b/small": 20, "a/b/large": 5000, "a/empty": 0, "ünder/ö": 300}.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes(bytes(size))
    root = await ours.create_directory()
    theirs.backup(source, root.to_string())
    manifest = await same_walk(ours, theirs, root)
    # The snapshot is linked twice, and the root's own link to it is seen before the one in Archives.
    assert ("Latest", "a", "b", "large") in {path for path, _ in manifest.entries}
    assert manifest.stats.count_files == 4
    latest = await ours.directory(root).get(["Latest", "ünder"])
    assert isinstance(latest.target, DirectoryCap) and not latest.target.is_mutable
    again = await ours.create_immutable_directory(await ours.directory(latest.target).list())
    assert again == latest.target
