"""What a transfer takes for the same source, the same target, and the same stored file."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import evolve

from grid.caps import DirectoryCap
from grid.directory.pack import Child
from grid.engine.grid import Encoding
from grid.mutable.sources import MemorySource
from grid.transfer.ends import EndError, Entry, SourceEnd, TargetEnd
from grid.transfer.engine import Transfer
from grid.transfer.grid_end import GridEnd
from grid.transfer.http_end import HttpEnd
from grid.transfer.journal import STORED, Journal, Row, journal_path
from grid.transfer.local_end import LocalEnd
from grid.transfer.object_end import open_object_end
from grid.transfer.opening import require_apart
from grid.transfer.outcome import Outcome, Plan
from grid.transfer.sftp_end import open_sftp_end
from grid.transfer.traits import identity_of
from tests.support.tree_grid import TreeGrid
from tests.transfer.conftest import require
from tests.transfer.scripted_web import WebRequest, scripted_web
from tests.transfer.test_changes_in_doubt import NEW, OLD, Session
from tests.transfer.test_engine import FAST, contents


@pytest.fixture(scope="module")
def grids() -> tuple[TreeGrid, TreeGrid]:
    """Two grids."""
    return TreeGrid(1, Encoding(k=1, n=1, happy=1)), TreeGrid(1, Encoding(k=1, n=1, happy=1))


def on(grid: TreeGrid, cap: DirectoryCap, *path: str, label: str = "URI:...") -> GridEnd:
    return GridEnd(Session(grid), cap, path, label)  # type: ignore[arg-type]


def send(sources: list[SourceEnd], target: TargetEnd, state: Path, plan: Plan = FAST) -> Outcome:
    async def case() -> Outcome:
        journal = Journal(state / "journal.sqlite")
        try:
            return await Transfer(sources, target, journal, plan).run()
        finally:
            journal.close()

    return asyncio.run(case())


def test_capabilities_that_are_shown_alike_are_two_sources(grids: tuple[TreeGrid, TreeGrid], tmp_path: Path) -> None:
    ends: list[SourceEnd] = [
        on(grids[0], grids[0].make(children={"f": Child(target=cap, metadata={})}).cap) for cap in (OLD, NEW)
    ]
    outcome = send(ends, LocalEnd(str(tmp_path / "target")), tmp_path, evolve(FAST, dry_run=True))
    assert [str(error) for _, error in outcome.failures] == ["f: URI:... has a file of this name too"]
    assert outcome.to_send == 1


def test_urls_that_differ_only_in_their_queries_are_two_sources(tmp_path: Path) -> None:
    def serve(request: WebRequest) -> None:
        request.answer(200, request.path.partition("=")[2].encode(), ETag='"one"')

    with scripted_web(serve) as url:
        ends: list[SourceEnd] = [HttpEnd(f"{url}/file?token={name}") for name in ("first", "other")]
        outcome = send(ends, LocalEnd(str(tmp_path / "target")), tmp_path)
    assert len(outcome.failures) == 1
    assert contents(tmp_path / "target") == {"file": b"first"}
    assert not any("first" in identity_of(end) for end in ends)


def test_identity_is_that_of_the_directory_whatever_its_capability_permits(grids: tuple[TreeGrid, TreeGrid]) -> None:
    first, second = grids[0].make().cap, grids[0].make().cap
    read = first.read_cap()
    assert isinstance(read, DirectoryCap)
    assert identity_of(on(grids[0], first, "a")) == identity_of(on(grids[0], read, "a", label="work:a"))
    others = {identity_of(on(grids[0], cap, *path)) for cap, path in ((first, "a"), (first, "b"), (second, "a"))}
    assert len(others) == 3
    assert not any(first.to_string() in each for each in others)


def test_identity_of_urls_has_users_ports_and_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    require("obstore")
    urls = ("sftp://host/a", "sftp://me@host/a", "sftp://host:23/a", "sftp://me@host:23/a")
    assert tuple(identity_of(open_sftp_end(url)) for url in urls) == urls
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    assert identity_of(open_object_end("S3://bucket/a")) == "s3://bucket/a"
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://one.example")
    one = identity_of(open_object_end("s3://bucket/a"))
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://two.example")
    assert len({one, identity_of(open_object_end("s3://bucket/a")), "s3://bucket/a"}) == 3


def test_relative_path_is_another_source_in_another_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = set()
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        monkeypatch.chdir(tmp_path / folder)
        names.add(journal_path([identity_of(LocalEnd("data"))], "target"))
    assert len(names) == 2


def test_source_that_is_given_twice_is_refused(tmp_path: Path) -> None:
    ends = [LocalEnd(f"{tmp_path}/a"), LocalEnd(f"{tmp_path}/b"), LocalEnd(f"{tmp_path}/x/../a")]
    with pytest.raises(EndError, match=r"x/\.\./a is given twice"):
        require_apart(ends, LocalEnd(f"{tmp_path}/target"), Plan())
    require_apart(ends[:2], LocalEnd(f"{tmp_path}/target"), Plan())


@pytest.mark.parametrize("is_there", [True, False])
def test_file_that_an_earlier_run_stored_is_linked_only_if_this_grid_has_it(
    grids: tuple[TreeGrid, TreeGrid], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_there: bool
) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "f").write_bytes(b"x")
    here, other = grids
    stored_at = here if is_there else other
    cap = stored_at.run(stored_at.store.put_immutable(MemorySource(os.urandom(1000))))
    source, directory = LocalEnd(str(tmp_path / "source")), here.make()
    facts = (tmp_path / "source" / "f").stat()
    entry = Entry(name="f", size=facts.st_size, mtime_ns=facts.st_mtime_ns)
    journal = Journal(tmp_path / "journal.sqlite")
    journal.note([Row(source=identity_of(source), entry=entry, state=STORED, token=cap.to_string())])
    journal.close()

    asked: list[object] = []
    end = on(here, directory.cap)
    monkeypatch.setattr(end, "store", _noted(asked))
    outcome = send([source], end, tmp_path)

    assert not outcome.failures
    assert len(asked) == (not is_there)
    assert (outcome.linked, outcome.copied) == ((1, 0) if is_there else (0, 1))
    assert here.names(directory.cap) == ["f"]


def _noted(asked: list[object]) -> Callable[..., object]:
    """A `store` that notes what is sent."""

    async def store(entry: Entry, body: object) -> str:
        asked.append(entry)
        return NEW.to_string()

    return store
