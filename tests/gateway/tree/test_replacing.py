"""Forms on pages: nothing is replaced before the sender agrees, and removed entries can be linked again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.gateway.pages.hostile import Document, require_harmless
from tests.gateway.trees import gateway_of_trees
from tests.support.web_gateway import Reply, WebGateway

OLD, NEW = b"the old contents of a file " * 20, b"the new contents of a file " * 20
Fields = Mapping[str, str | tuple[str | None, bytes]]


async def children_of(web: WebGateway, directory: str) -> dict[str, str]:
    """Names and capabilities."""
    found = json.loads((await web.get(f"/uri/{directory}?t=json")).text)[1]["children"]
    return {name: facts.get("rw_uri", facts.get("ro_uri")) for name, (_, facts) in found.items()}


def forms_of(reply: Reply) -> list[tuple[str, dict[str, str]]]:
    """Where each form of a page goes, and its fields as they are."""
    found: list[tuple[str, dict[str, str]]] = []
    for element, attributes in require_harmless(reply.text).elements:
        if element == "form":
            found.append((attributes["action"] or "", {}))
        elif element == "input" and found and "name" in attributes:
            found[-1][1][attributes["name"] or ""] = attributes.get("value") or ""
    return found


async def send(web: WebGateway, form: tuple[str, Fields]) -> Reply:
    """A form as a browser sends it."""
    return await web.post_form(*form)


async def directory_with_files(web: WebGateway) -> tuple[str, str]:
    directory = (await web.request("POST", "/uri?t=mkdir")).text
    old = (await web.put(f"/uri/{directory}/a.txt", OLD)).text
    await web.put(f"/uri/{directory}/b.txt", NEW)
    return directory, old


def asking(**fields: str | tuple[str | None, bytes]) -> Fields:
    return {"ask": "true", **fields}


CHANGES: dict[str, Fields] = {
    "upload": asking(t="upload", file=("a.txt", NEW)),
    "link": asking(t="uri", name="a.txt", uri="URI:LIT:krugkidfnzsa"),
    "rename": asking(t="rename", from_name="b.txt", to_name="a.txt"),
    "move": asking(t="relink", from_name="b.txt", to_name="a.txt"),
}


@pytest.mark.parametrize("kind", CHANGES)
async def test_entry_when_uploaded_with_other_contents_is_kept_until_the_user_agrees(tmp_path: Path, kind: str) -> None:
    async with gateway_of_trees(tmp_path) as web:
        directory, old = await directory_with_files(web)
        before = await children_of(web, directory)

        question = await send(web, (f"/uri/{directory}/", CHANGES[kind]))

        assert question.status == 409
        assert "a.txt already exists" in Document(question.text).text.replace("“", "").replace("”", "")
        assert await children_of(web, directory) == before
        keep, replace = forms_of(question)
        replaced = await send(web, replace)
        after = await children_of(web, directory)
        assert replaced.status == 200 and old in replaced.text
        assert after["a.txt"] != old
        (undo,) = forms_of(replaced)
        assert (await send(web, undo)).status in (200, 302)
        assert old in (await children_of(web, directory)).values()
        assert keep[1].keys() - {"name", "to_name"} <= replace[1].keys()


@pytest.mark.parametrize("kind", CHANGES)
async def test_both_are_kept_when_that_is_chosen(tmp_path: Path, kind: str) -> None:
    async with gateway_of_trees(tmp_path) as web:
        directory, old = await directory_with_files(web)
        keep, _ = forms_of(await send(web, (f"/uri/{directory}/", CHANGES[kind])))

        kept = await send(web, keep)

        found = await children_of(web, directory)
        assert kept.status == 302
        assert found["a.txt"] == old and "a (2).txt" in found


async def test_uploaded_file_is_not_sent_again_when_its_sender_is_asked(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        directory, _ = await directory_with_files(web)
        _, replace = forms_of(await send(web, (f"/uri/{directory}/", CHANGES["upload"])))
        await send(web, replace)
        assert (await web.get(f"/uri/{directory}/a.txt")).body == NEW


async def test_equal_contents_when_uploaded_again_then_nobody_is_asked(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        directory, _ = await directory_with_files(web)
        again = await send(web, (f"/uri/{directory}/", asking(t="upload", file=("a.txt", OLD))))
        assert again.status == 302


async def test_directory_when_in_the_way_cannot_be_replaced(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        directory, _ = await directory_with_files(web)
        await web.put(f"/uri/{directory}/sub?t=mkdir")
        before = await children_of(web, directory)
        fields = asking(t="upload", name="sub", file=("x", NEW))
        question = await send(web, (f"/uri/{directory}/", fields))
        assert len(forms_of(question)) == 1  # It can only be kept beside.
        forced = await send(web, (f"/uri/{directory}/", {**fields, "replace": "true"}))
        assert forced.status == 409
        assert await children_of(web, directory) == before


async def test_entry_that_is_deleted_is_shown_and_can_be_linked_again(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        directory, old = await directory_with_files(web)
        fields = asking(t="unlink", name="a.txt", when_done=f"/uri/{directory}/")
        deleted = await send(web, (f"/uri/{directory}/", fields))
        assert deleted.status == 200 and old in deleted.text
        assert "a.txt" not in await children_of(web, directory)
        (undo,) = forms_of(deleted)
        assert (await send(web, undo)).status == 302
        assert (await children_of(web, directory))["a.txt"] == old


async def test_entry_that_is_moved_onto_another_is_asked_about_in_the_other_directory(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        directory, old = await directory_with_files(web)
        other = (await web.request("POST", "/uri?t=mkdir")).text
        await web.put(f"/uri/{other}/a.txt", NEW)
        fields = asking(t="relink", from_name="a.txt", to_dir=other)
        question = await send(web, (f"/uri/{directory}/", fields))
        assert question.status == 409
        _, replace = forms_of(question)
        replaced = await send(web, replace)
        assert replaced.status == 200
        assert (await children_of(web, other))["a.txt"] == old
        (undo,) = forms_of(replaced)
        await send(web, undo)
        assert len(await children_of(web, other)) == 2


async def test_program_that_does_not_ask_replaces_as_before(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        directory, old = await directory_with_files(web)
        reply = await send(web, (f"/uri/{directory}/", {"t": "upload", "file": ("a.txt", NEW)}))
        assert reply.status == 200
        assert (await children_of(web, directory))["a.txt"] == reply.text != old


async def test_new_directory_of_a_page_never_replaces_what_is_there(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        directory, old = await directory_with_files(web)
        page = await web.get(f"/uri/{directory}/")
        (mkdir,) = [form for form in forms_of(page) if form[1].get("t") == "mkdir"]
        reply = await send(web, (mkdir[0], {**mkdir[1], "name": "a.txt"}))
        assert reply.status == 409
        assert (await children_of(web, directory))["a.txt"] == old
