"""The page of a directory offers to undo what was removed or replaced there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from grid.caps import LitCap
from grid.directory.edits import SetChild
from grid.directory.pack import Child
from grid.errors import NoSpaceError
from grid.gateway.history.undo_journal import PastChange, PastEntry
from grid.gateway.tree.replacing import reverting_edits
from tests.gateway.tree.test_replacing import children_of, directory_with_files, forms_of
from tests.gateway.trees import gateway_of_trees
from tests.support.web_gateway import WebGateway

NEW = b"newer contents of a file " * 20


async def undo_forms(web: WebGateway, cap: str) -> list[tuple[str, dict[str, str]]]:
    return [form for form in forms_of(await web.get(f"/uri/{cap}/")) if form[1].get("t") == "undo"]


async def test_entries_removed_and_replaced_are_put_back_from_the_page(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        directory, old = await directory_with_files(web)
        before = await children_of(web, directory)
        assert await undo_forms(web, directory) == []
        await web.request("DELETE", f"/uri/{directory}/b.txt")
        await web.put(f"/uri/{directory}/a.txt", NEW)
        forms = await undo_forms(web, directory)
        assert [form[1]["name"] for form in forms] == ["a.txt", "b.txt"]
        assert old not in json.dumps(forms)
        for form in forms:
            assert (await web.post_form(*form)).status == 302
        assert await children_of(web, directory) == before
        assert [form[1]["name"] for form in await undo_forms(web, directory)] == ["a.txt"]  # The undo of the undo.
        again = await web.post_form(*forms[0])
        assert again.status == 404 and "no longer remembered" in again.text


async def test_page_of_the_read_capability_shows_and_undoes_nothing(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        directory, _ = await directory_with_files(web)
        await web.request("DELETE", f"/uri/{directory}/b.txt")
        (form,) = await undo_forms(web, directory)
        reader = json.loads((await web.get(f"/uri/{directory}?t=json")).text)[1]["ro_uri"]
        assert await undo_forms(web, reader) == []
        assert "b.txt" not in (await web.get(f"/uri/{reader}/")).text
        refused = await web.post_form(f"/uri/{reader}/", form[1])
        assert refused.status >= 400
        assert "b.txt" not in await children_of(web, directory)


async def test_change_that_too_few_servers_take_is_said_to_hold_and_is_undone_from_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*arguments: object) -> None:
        raise NoSpaceError("no room")

    async with gateway_of_trees(tmp_path, count=3) as web:
        directory, _ = await directory_with_files(web)
        before = await children_of(web, directory)
        with monkeypatch.context() as patch:
            patch.setattr(web.services[0], "test_and_write", refuse)
            for refused in (
                await web.request("DELETE", f"/uri/{directory}/b.txt"),
                await web.put(f"/uri/{directory}/a.txt", NEW),
                await web.put(f"/uri/{directory}/added.txt", NEW),
            ):
                assert refused.status == 503, refused.text
                assert refused.text.startswith("MayHoldError: only 2 servers took the new version, and 3 are needed")
                assert "the change is in force all the same" in refused.text
        after = await children_of(web, directory)
        assert "b.txt" not in after and "added.txt" in after and after["a.txt"] != before["a.txt"]
        forms = await undo_forms(web, directory)
        assert [form[1]["name"] for form in forms] == ["a.txt", "b.txt"]
        for form in forms:
            assert (await web.post_form(*form)).status == 302
        assert await children_of(web, directory) == {**before, "added.txt": after["added.txt"]}


async def test_moved_entry_is_no_removal(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        directory, _ = await directory_with_files(web)
        other = (await web.request("POST", "/uri?t=mkdir")).text
        await web.post_form(f"/uri/{directory}/", {"t": "relink", "from_name": "a.txt", "to_dir": other})
        await web.post_form(f"/uri/{directory}/", {"t": "rename", "from_name": "b.txt", "to_name": "c.txt"})
        assert await undo_forms(web, directory) == []


def test_entry_whose_name_is_used_by_now_returns_beside_it() -> None:
    old, left, later = (Child(target=LitCap(data=data)) for data in (b"old", b"left", b"later"))

    def edits(there: Mapping[str, Child], new: Child | None, names: tuple[str, ...] = ("a.txt",)) -> list[SetChild]:
        entries = tuple(
            PastEntry(name=name, old=old, new=None if new is None else new.target)
            for name in names
        )  # fmt: skip
        change = PastChange(number=1, index=b"", time=0.0, entries=entries, size=0)
        return [edit for edit in reverting_edits(change, there.get) if isinstance(edit, SetChild)]

    assert [(edit.name, edit.overwrite) for edit in edits({}, None)] == [("a.txt", False)]
    assert [(edit.name, edit.overwrite) for edit in edits({"a.txt": left}, left)] == [("a.txt", True)]
    for new in (left, None):
        assert [(edit.name, edit.overwrite) for edit in edits({"a.txt": later}, new)] == [("a (2).txt", False)]
    assert edits({"a.txt": old}, left) == []
    both = edits({"a.txt": later}, None, ("a (2).txt", "a.txt"))
    assert [edit.name for edit in both] == ["a (2).txt", "a (3).txt"]
