"""Mutable files of both formats: made by one program, read, changed and verified by the other; on every mixture of servers."""

from __future__ import annotations

import json
import random
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_twisted
from attrs import define, evolve

from grid.caps import MdmfWriteCap, SdmfWriteCap, parse_cap
from grid.engine.grid import Encoding, Grid
from grid.errors import ConflictError
from grid.mutable import publish
from grid.mutable.create import create_mutable
from grid.mutable.node import MutableFile
from grid.mutable.session import Session
from grid.mutable.share.geometry import FormatName
from grid.mutable.share.keys import WriteCap
from grid.mutable.write.goal import Goal
from grid.mutable.write.write_job import WriteJob, Written
from grid.node.client import Client
from grid.node.directory import open_directory
from grid.runtime import make_runtime
from perf.processes.clients import COMMAND_S, TahoeClient
from tests.interop.conftest import Pair, Topology

pytestmark = [pytest.mark.interop, pytest.mark.background]

SEGMENT = 131073
SIZES = [0, 1, 1000, SEGMENT, SEGMENT + 1, 1_000_000]
FORMATS: list[FormatName] = ["sdmf", "mdmf"]


@define
class Ours:
    """This process as a client of mutable files."""

    grid: Grid

    async def create(self, contents: bytes, format: FormatName) -> WriteCap:
        return await create_mutable(contents, self.grid, format=format)

    def open(self, cap: str) -> MutableFile:
        parsed = parse_cap(cap)
        return MutableFile(parsed, self.grid)  # type: ignore[arg-type]

    async def require_healthy(self, cap: str) -> None:
        result = await self.open(cap).check(verify=True)
        assert result.healthy and not result.corrupt, result.summary


class Theirs:
    """The running 1.20 client, through its gateway."""

    def __init__(self, client: TahoeClient) -> None:
        self._url = client.url

    def create(self, contents: bytes, format: FormatName) -> str:
        return self._ask("PUT", f"uri?format={format}", contents).decode()

    def read(self, cap: str) -> bytes:
        return self._ask("GET", f"uri/{urllib.parse.quote(cap, safe='')}")

    def overwrite(self, cap: str, contents: bytes) -> None:
        self._ask("PUT", f"uri/{urllib.parse.quote(cap, safe='')}", contents)

    def update(self, cap: str, offset: int, data: bytes) -> None:
        self._ask("PUT", f"uri/{urllib.parse.quote(cap, safe='')}?offset={offset}", data)

    def require_healthy(self, cap: str, shares: int = 10) -> None:
        query = f"uri/{urllib.parse.quote(cap, safe='')}?t=check&verify=true&output=json"
        results: dict[str, Any] = json.loads(self._ask("POST", query))["results"]
        assert results["healthy"], results
        assert results["count-shares-good"] == shares and not results["list-corrupt-shares"]

    def repair(self, cap: str) -> None:
        query = f"uri/{urllib.parse.quote(cap, safe='')}?t=check&verify=true&repair=true&output=json"
        assert json.loads(self._ask("POST", query))["post-repair-results"]["results"]["healthy"]

    def _ask(self, method: str, path: str, body: bytes | None = None) -> bytes:
        request = urllib.request.Request(self._url + path, data=body, method=method)
        try:
            with urllib.request.urlopen(request, timeout=COMMAND_S) as answer:
                answered: bytes = answer.read()
        except urllib.error.HTTPError as error:
            raise AssertionError(f"1.20 answers {error.code}: {error.read()[-2000:].decode()}") from None
        return answered


@pytest_twisted.async_yield_fixture
async def ours(usual_pair: Pair) -> AsyncIterator[Ours]:
    """This process with the node directory of our client."""
    from twisted.internet import reactor

    client = Client(open_directory(usual_pair.ours.directory), make_runtime(reactor), reactor)
    yield Ours(evolve(client.grid(await client.servers()), encoding=Encoding(k=3, n=10, happy=7)))
    await client.close()


@pytest.fixture
def theirs(usual_pair: Pair) -> Theirs:
    """The 1.20 client at 3-of-10."""
    return Theirs(usual_pair.tahoe)


def sample_bytes(size: int, seed: int = 0) -> bytes:
    return random.Random(seed).randbytes(size)


@pytest.mark.each_pair
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("format", FORMATS)
async def test_file_made_by_grid_when_used_by_tahoe_is_the_same_and_changes_come_back(
    ours: Ours, theirs: Theirs, format: FormatName, size: int
) -> None:
    made = await ours.create(sample_bytes(size), format)
    assert isinstance(made, MdmfWriteCap if format == "mdmf" else SdmfWriteCap)
    cap = made.to_string()
    assert theirs.read(cap) == theirs.read(made.read_cap().to_string()) == sample_bytes(size)
    theirs.require_healthy(cap)
    theirs.overwrite(cap, sample_bytes(size + 100, 1))
    assert await ours.open(cap).read_all() == sample_bytes(size + 100, 1)
    await ours.require_healthy(cap)
    await ours.open(cap).modify(lambda old, _: old[50:])
    assert theirs.read(cap) == sample_bytes(size + 100, 1)[50:]
    theirs.require_healthy(cap)
    await ours.require_healthy(cap)


@pytest.mark.each_pair
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("format", FORMATS)
async def test_file_made_by_tahoe_when_used_by_grid_is_the_same_and_changes_come_back(
    ours: Ours, theirs: Theirs, format: FormatName, size: int
) -> None:
    cap = theirs.create(sample_bytes(size), format)
    await ours.require_healthy(cap)
    assert await ours.open(cap).read_all() == sample_bytes(size)
    await ours.open(cap).overwrite(sample_bytes(size + 7, 1))
    assert theirs.read(cap) == sample_bytes(size + 7, 1)
    theirs.require_healthy(cap)


async def test_update_in_place_when_done_by_both_in_turn_leaves_one_sound_file(ours: Ours, theirs: Theirs) -> None:
    model = bytearray(sample_bytes(5 * SEGMENT + 17))
    cap = theirs.create(bytes(model), "mdmf")
    file = ours.open(cap)
    changes = [
        (5, 100),
        (SEGMENT - 5, 10),
        (2 * SEGMENT, SEGMENT),
        (5 * SEGMENT + 17, 1000),
        (5 * SEGMENT, SEGMENT + 9),
    ]
    for seed, (offset, length) in enumerate(changes):
        data = sample_bytes(length, seed + 1)
        await file.update(offset, data)
        model[offset : offset + length] = data
        assert theirs.read(cap) == model
        theirs.require_healthy(cap)
        data = sample_bytes(300, seed + 100)
        theirs.update(cap, offset + 50, data)
        model[offset + 50 : offset + 350] = data
        assert await ours.open(cap).read_all() == model
        await ours.require_healthy(cap)


async def test_large_file_when_written_in_pieces_by_grid_is_sound_for_tahoe(
    ours: Ours, theirs: Theirs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publish, "WHOLE_BYTES", 500_000)
    cap = (await ours.create(sample_bytes(3_000_000), "mdmf")).to_string()
    assert theirs.read(cap) == sample_bytes(3_000_000)
    theirs.require_healthy(cap)
    await ours.open(cap).overwrite(sample_bytes(3_500_000, 1))
    assert theirs.read(cap) == sample_bytes(3_500_000, 1)
    theirs.require_healthy(cap)
    theirs.update(cap, 1_000_000, b"written in place by the other program")
    assert (await ours.open(cap).read_all())[1_000_000:1_000_007] == b"written"
    await ours.require_healthy(cap)


@pytest.mark.each_value
@pytest.mark.parametrize("format", FORMATS)
async def test_file_that_lost_shares_when_repaired_by_either_is_sound_for_both(
    ours: Ours, theirs: Theirs, topology: Topology, format: FormatName
) -> None:
    made = await ours.create(sample_bytes(200_000), format)
    cap = made.to_string()
    for repairing in ("ours", "theirs"):
        removed = 0
        for node in topology.grid.storage:
            name = made.verify_cap().to_string().split(":")[2]
            for path in (node.directory / "storage" / "shares").glob(f"*/{name}/*"):
                if removed < 4:
                    path.unlink()
                    removed += 1
        assert removed == 4
        assert not (await ours.open(cap).check()).healthy
        if repairing == "ours":
            assert (await ours.open(cap).repair()).successful
        else:
            theirs.repair(cap)
        theirs.require_healthy(cap)
        await ours.require_healthy(cap)
        assert theirs.read(cap) == await ours.open(cap).read_all() == sample_bytes(200_000)


async def test_file_changed_by_tahoe_after_grid_mapped_it_is_not_silently_overwritten(
    ours: Ours, theirs: Theirs
) -> None:
    cap = theirs.create(b"first", "sdmf")
    file = ours.open(cap)
    assert await file.read_all() == b"first"
    theirs.overwrite(cap, b"second")
    await file.modify(lambda old, _: old + b", third")
    assert theirs.read(cap) == b"second, third"
    theirs.require_healthy(cap)
    key = (await ours.open(cap)._session.find(_write_mode())).private_key
    with pytest.raises(ConflictError):
        # A file that is there already is not made again with its key.
        await create_mutable(b"again", ours.grid, format="sdmf", key=key)
    assert theirs.read(cap) == b"second, third"


def _write_mode() -> Any:
    from grid.mutable.read.map_plan import MapMode

    return MapMode.WRITE


@pytest.mark.each_pair
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("finish", ["beside", "all"])
async def test_file_of_many_needed_shares_when_written_by_grid_in_waves_is_sound_for_tahoe(
    ours: Ours, theirs: Theirs, format: FormatName, finish: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also after the first wave only, when both versions have all of their shares."""
    ours = Ours(evolve(ours.grid, encoding=Encoding(k=7, n=10, happy=1)))
    cap = (await ours.create(sample_bytes(5000), format)).to_string()
    if finish == "beside":
        sent = 0
        write = Session.write

        async def write_once(session: Session, job: WriteJob, goal: Goal) -> Written:
            nonlocal sent
            sent += 1
            if sent > 1:
                raise ConflictError("the client has died")
            return await write(session, job, goal)

        monkeypatch.setattr(Session, "write", write_once)
        with pytest.raises(ConflictError):
            await ours.open(cap).overwrite(sample_bytes(6000, 1))
        monkeypatch.undo()
    else:
        await ours.open(cap).overwrite(sample_bytes(6000, 1))
        theirs.require_healthy(cap)
    assert theirs.read(cap) == sample_bytes(6000, 1)
    theirs.overwrite(cap, sample_bytes(7000, 2))
    assert await ours.open(cap).read_all() == sample_bytes(7000, 2)
    await ours.open(cap).overwrite(sample_bytes(8000, 3))
    assert theirs.read(cap) == sample_bytes(8000, 3)
    assert (await ours.open(cap).repair(force=True)).after.healthy
    theirs.require_healthy(cap)
