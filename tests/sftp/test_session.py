"""Open files of a session whose path is removed or renamed: stored where they belong, or with an error, never lost silently."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from attrs import define, field
from twisted.internet.defer import Deferred

from grid.caps import DirectoryCap, LitCap, SdmfWriteCap
from grid.directory.pack import Child
from grid.gateway.shared.spool import SpoolFolder
from grid.sftp.door import Load
from grid.sftp.drafts import MAX_FILE, Draft
from grid.sftp.faults import FAILURE, SftpFault
from grid.sftp.handles import APPEND, READ, WRITE, DraftHandle
from grid.sftp.read_ahead import AheadRoom
from grid.sftp.scratch import PieceRoom
from grid.sftp.session import Session
from tests.support.virtual_time import VirtualRuntime

DIRECTORY = DirectoryCap(SdmfWriteCap(write_key=bytes(16), fingerprint=bytes(32)))


@define
class FakeTree:
    """A tree that notes where metadata is stored; it refuses to remove files, and renames when `renamed` fires."""

    stored: list[tuple[str, ...]] = field(factory=list)
    storing: Deferred[None] | None = None
    renamed: Deferred[None] = field(factory=Deferred)
    rename_count: int = 0

    async def find(self, path: tuple[str, ...]) -> Child:
        return Child(target=DIRECTORY if path == ("directory",) else LitCap(data=b""))

    async def describe(self, path: tuple[str, ...], describe: object) -> None:
        self.stored.append(path)
        if self.storing is not None:
            await self.storing

    async def remove_file(self, path: tuple[str, ...]) -> None:
        raise SftpFault(FAILURE, "too few servers")

    async def rename(self, old: object, new: object, *, overwrite: bool) -> None:
        self.rename_count += 1
        await self.renamed


class Scene:
    """A session with open files."""

    def __init__(self, folder: Path) -> None:
        runtime = VirtualRuntime()
        services = SimpleNamespace(
            settings=SimpleNamespace(spools=SpoolFolder(folder)),
            store=SimpleNamespace(runtime=runtime, grid=SimpleNamespace(convergence=None)),
        )
        self.door = cast(
            Any,
            SimpleNamespace(
                services=services, directories=None, removals=None, room=AheadRoom(), pieces=PieceRoom(), load=Load()
            ),
        )
        self.session = Session(self.door, cast(Any, SimpleNamespace(name="alice", root=None)))
        self.tree = FakeTree()
        self.session.tree = cast(Any, self.tree)

    def open(self, *path: str) -> Draft:
        draft = Draft(
            door=self.door, tree=cast(Any, self.tree), path=path, target=LitCap(data=b""), metadata={}, old_size=0,
            is_changed=False, handles=1,
        )  # fmt: skip
        self.session.drafts[path] = draft
        done(draft.set_attributes({"mtime": 1}))
        return draft


def begun(work: Any) -> Deferred[None]:
    return Deferred.fromCoroutine(work)


def done(work: Any) -> None:
    outcome: list[object] = []
    begun(work).addBoth(outcome.append)
    assert outcome == [None]


def test_file_when_removing_it_failed_is_stored_at_its_close(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    draft = scene.open("file")
    refused: list[object] = []
    begun(scene.session.remove(b"/file")).addErrback(refused.append)
    assert len(refused) == 1 and scene.session.drafts == {("file",): draft}
    done(draft.store())
    assert scene.tree.stored == [("file",)]


def test_file_when_it_is_closed_while_it_is_renamed_is_stored_under_the_new_name(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    draft = scene.open("old")
    renaming = begun(scene.session.rename(b"/old", b"/new", overwrite=True))
    done_before = list(scene.tree.stored)
    setting = begun(draft.set_attributes({"mtime": 2}))
    closing = begun(draft.store())
    scene.tree.renamed.callback(None)
    assert renaming.called and setting.called and closing.called
    assert (done_before, scene.tree.stored) == ([("old",)], [("old",), ("new",)])
    assert scene.session.drafts == {("new",): draft}


@pytest.mark.parametrize("closed", ["a", "b"])
def test_directory_when_a_file_in_it_is_closed_during_a_rename_keeps_the_others(tmp_path: Path, closed: str) -> None:
    scene = Scene(tmp_path)
    drafts = {name: scene.open("old", name) for name in ("a", "b", "c")}
    scene.tree.storing = Deferred()
    storing = begun(drafts["a"].store())
    renaming = begun(scene.session.rename(b"/old", b"/new", overwrite=True))
    scene.tree.renamed.callback(None)
    scene.session.drop(drafts.pop(closed))
    scene.tree.storing.callback(None)
    assert storing.called and renaming.called
    renaming.addErrback(lambda failure: failure.raiseException())
    assert scene.session.drafts == {("new", name): draft for name, draft in drafts.items()}
    done(drafts["c"].store())
    assert scene.tree.stored[-1] == ("new", "c")


def test_write_when_an_earlier_request_has_not_ended_does_not_overtake_it(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    draft = scene.open("file")
    writing, appending, reading = (
        DraftHandle(draft=draft, flags=flags, closed=scene.session.closed, drop=scene.session.drop)
        for flags in (WRITE, APPEND, READ)
    )
    scene.tree.storing = Deferred()
    storing = begun(draft.store())
    assert not writing.write_now(0, b"early") and not draft.is_changed
    waiting = begun(writing.write(0, b"first"))
    scene.tree.storing.callback(None)
    assert storing.called and waiting.called
    assert writing.write_now(1, b"I") and appending.write_now(0, b"!") and draft.is_changed
    assert not reading.write_now(0, b"x") and not writing.write_now(MAX_FILE, b"x")
    found: list[object] = []
    Deferred.fromCoroutine(draft.read(0, 100)).addCallback(lambda data: found.append(bytes(data)))
    assert found == [b"fIrst!"]
    draft.discard()


def test_directory_when_renamed_while_a_file_in_it_is_stored_waits_for_that(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    draft = scene.open("old", "a")
    scene.tree.storing = Deferred()
    storing = begun(draft.store())
    scene.tree.renamed.callback(None)
    renaming = begun(scene.session.rename(b"/old", b"/new", overwrite=True))
    assert not renaming.called and draft.path == ("old", "a")
    scene.tree.storing.callback(None)
    assert storing.called and renaming.called and draft.path == ("new", "a")


def test_file_when_renamed_over_one_that_is_being_stored_waits_for_that_and_replaces_it(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    draft = scene.open("new")
    scene.tree.storing = Deferred()
    storing = begun(draft.store())
    scene.tree.renamed.callback(None)
    renaming = begun(scene.session.rename(b"/old", b"/new", overwrite=True))
    assert scene.tree.rename_count == 0 and draft.path == ("new",)
    scene.tree.storing.callback(None)
    assert storing.called and renaming.called and draft.path is None and scene.session.drafts == {}


@pytest.mark.parametrize(
    ("old", "new", "overwrite"), [("old", "f/g", False), ("directory", "f/g", True), ("directory", "f", True)]
)
def test_rename_when_it_must_not_replace_a_file_being_written_is_refused(
    tmp_path: Path, old: str, new: str, overwrite: bool
) -> None:
    scene = Scene(tmp_path)
    draft = scene.open("f", "g")
    scene.tree.renamed.callback(None)
    refused: list[object] = []
    rename = scene.session.rename(f"/{old}".encode(), f"/{new}".encode(), overwrite=overwrite)
    begun(rename).addErrback(refused.append)
    assert len(refused) == 1 and scene.session.drafts == {("f", "g"): draft}
    done(draft.store())
    assert scene.tree.stored == [("f", "g")]
