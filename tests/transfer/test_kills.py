"""kill -9 at each step of the journal, with every kind of end on either side: nothing is lost, and nothing arrives twice.

With each change, one step of each kind runs; a deep run tries them all.
"""

from __future__ import annotations

import os
import sqlite3
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from attrs import field, frozen

from grid.node.local_grid import LocalGrid
from tests.cli.command import new_directory
from tests.transfer.conftest import BUCKET
from tests.transfer.killed_transfer import Killable, killable_transfers
from tests.transfer.test_engine import contents

SIZES = {"file-0": 1000, "file-1": 1001, "deep/large": 11 * 2**20 + 3}
"""The last one is sent in three parts, of five MiB as object stores want them."""

STEPS = {"local": 10, "sftp": 12, "s3": 14, "grid": 14, "packs": 10}
"""Steps of a journal whose target is of this kind: before and after each change of it."""


@frozen(kw_only=True)
class _End:
    """A target of one kind. url: of a new directory there; path: where its files lie, if this machine can see them."""

    url: str
    path: Path | None = None
    environment: Mapping[str, str] = field(factory=dict)
    client: Path | None = None
    packs: bool = False


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Two small files and a large one, which lies deeper."""
    folder = tmp_path / "source"
    (folder / "deep").mkdir(parents=True)
    for name, size in SIZES.items():
        (folder / name).write_bytes(os.urandom(size))
    return folder


@pytest.fixture
def end(request: pytest.FixtureRequest, kind: str, tmp_path: Path) -> _End:
    """A directory of the kind."""
    if kind == "s3":
        folder = str(uuid.uuid4())
        return _End(url=f"s3://{BUCKET}/{folder}", environment=request.getfixturevalue("s3"))
    if kind == "sftp":
        url, home = request.getfixturevalue("sftp")
        (tmp_path / "there").mkdir()
        return _End(url=f"{url}{tmp_path}/there", path=tmp_path / "there", environment={"HOME": str(home)})
    if kind == "local":
        return _End(url=f"{tmp_path}/there", path=tmp_path / "there")
    local: LocalGrid = request.getfixturevalue("local_grid")
    return _End(url=f"{new_directory(local.client)}:new", client=local.client, packs=kind == "packs")


@pytest.fixture
def transfers(end: _End) -> Iterator[Killable]:
    """A process that runs transfers, in parts of five MiB."""
    with killable_transfers(end.environment) as running:
        yield running


def noted(journal: Path) -> int:
    """How many files the journal has as stored or done."""
    rows = sqlite3.connect(journal)
    try:
        return int(rows.execute("SELECT COUNT(*) FROM files WHERE state IN ('stored', 'done')").fetchone()[0])
    finally:
        rows.close()


def kills() -> Iterator[Any]:
    """Each step of each kind; all but the middle one of a kind are deep."""
    for kind, count in STEPS.items():
        for step in range(1, count + 1):
            yield pytest.param(kind, step, marks=[] if step == count // 2 else pytest.mark.deep)


@pytest.mark.parametrize(("kind", "step"), list(kills()))
def test_transfer_when_killed_at_a_step_goes_on_and_comes_back_as_it_was(
    kind: str, step: int, end: _End, transfers: Killable, source: Path, tmp_path: Path
) -> None:
    def send(source: str | Path, target: str | Path, name: str, fatal: int = 0) -> dict[str, Any]:
        journal = tmp_path / "state" / f"{name}.sqlite"
        return transfers.transfer(
            source, target, journal, client=end.client, fatal=fatal, packs=end.packs, part_size=5 * 2**20
        )

    assert send(source, end.url, "there", step)["killed"]
    arrived = noted(tmp_path / "state" / "there.sqlite")
    second = send(source, end.url, "there")
    assert not second["failures"] and second["copied"] <= len(SIZES) - arrived
    third = send(source, end.url, "there")
    assert (third["copied"], third["unchanged"], third["failures"]) == (0, len(SIZES), [])
    assert send(end.url, tmp_path / "back", "back", (step + 1) // 2)["killed"], "on the way back, too"
    came = noted(tmp_path / "state" / "back.sqlite")
    assert send(end.url, tmp_path / "back", "back")["copied"] <= len(SIZES) - came
    assert contents(tmp_path / "back") == contents(source)
    assert end.path is None or contents(end.path) == contents(source), "no incomplete file is left"


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[] if kind == "local" else pytest.mark.deep) for kind in STEPS]
)
def test_transfer_takes_as_many_steps_as_are_tried(
    kind: str, end: _End, transfers: Killable, source: Path, tmp_path: Path
) -> None:
    journal = tmp_path / "state" / "there.sqlite"
    done = transfers.transfer(
        source, end.url, journal, client=end.client, fatal=10**6, packs=end.packs, part_size=5 * 2**20
    )
    assert done["steps"] == STEPS[kind]
