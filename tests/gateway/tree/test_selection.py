"""Several entries of a directory at once: removed, moved and downloaded by the form of its page."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote, urlencode

from tests.gateway.pages.hostile import require_harmless
from tests.gateway.tree.test_replacing import children_of
from tests.gateway.trees import gateway_of_trees
from tests.support.web_gateway import Reply, WebGateway

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
NAMES = ("a.txt", "b & <i>.txt", "c.txt")


async def tree(web: WebGateway) -> str:
    directory = (await web.request("POST", "/uri?t=mkdir")).text
    for name in NAMES:
        await web.put(f"/uri/{directory}/{quote(name)}", name.encode())
    await web.put(f"/uri/{directory}/sub/inner?t=mkdir")
    return directory


async def send(web: WebGateway, directory: str, names: Sequence[str], **fields: str) -> Reply:
    body = urlencode([*fields.items(), *(("name", name) for name in names)]).encode()
    return await web.request("POST", f"/uri/{directory}/", body, FORM)


async def test_entries_are_removed_together_once_the_person_is_sure(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        directory = await tree(web)
        question = await send(web, directory, NAMES[:2], t="unlink-many")
        assert question.status == 200 and "Delete 2 entries?" in require_harmless(question.text).text
        assert set(NAMES) <= set(await children_of(web, directory))
        removed = await send(web, directory, [*NAMES[:2], "gone"], t="unlink-many", sure="true")
        assert removed.status == 302
        assert set(await children_of(web, directory)) == {"c.txt", "sub"}
        assert "a.txt and 1 other" in (await web.get(f"/uri/{directory}/")).text
        assert (await send(web, directory, [], t="unlink-many")).status == 400


async def test_entries_are_moved_to_the_directory_that_was_picked(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        directory = await tree(web)
        first = require_harmless((await send(web, directory, NAMES[:2], t="move-many")).text)
        places = [each["value"] for name, each in first.elements if name == "button" and each.get("name") == "at"]
        assert places == [directory, f"{directory}/sub", ""]
        assert not [each for name, each in first.elements if each.get("name") == "to_dir" and "disabled" not in each]
        second = await send(web, directory, NAMES[:2], t="move-many", at=f"{directory}/sub")
        assert "inner" in second.text and f'value="{directory}/sub"' in second.text
        moved = await send(web, directory, NAMES[:2], t="move-many", to_dir=f"{directory}/sub")
        assert moved.status == 302
        assert set(await children_of(web, directory)) == {"c.txt", "sub"}
        assert set(await children_of(web, f"{directory}/sub")) == {*NAMES[:2], "inner"}
        assert "t=undo" not in (await web.get(f"/uri/{directory}/")).text


async def test_move_that_cannot_be_is_explained_in_the_picker_and_moves_nothing(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        directory = await tree(web)
        await web.put(f"/uri/{directory}/sub/a.txt", b"another")
        before = await children_of(web, directory)
        taken = await send(web, directory, NAMES[:2], t="move-many", to_dir=f"{directory}/sub")
        assert taken.status == 409 and "“a.txt” already exists there" in taken.text
        below = await send(web, directory, ["sub"], t="move-many", to_dir=f"{directory}/sub/inner")
        assert below.status == 400 and "below it" in below.text and "Move 1 entry" in below.text
        typed = await send(web, directory, NAMES[:1], t="move-many", other="no capability")
        assert typed.status == 400 and "Move 1 entry" in typed.text
        missing = await send(web, directory, ["nothing"], t="move-many", to_dir=f"{directory}/sub/inner")
        assert missing.status == 404
        assert await children_of(web, directory) == before


async def test_reader_downloads_the_selected_entries_and_changes_nothing(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        directory = await tree(web)
        reader = json.loads((await web.get(f"/uri/{directory}?t=json")).text)[1]["ro_uri"]
        page = await web.get(f"/uri/{reader}/")
        assert 'value="zip"' in page.text and 'value="unlink-many"' not in page.text
        archive = await send(web, reader, ["a.txt", "sub"], t="zip")
        with zipfile.ZipFile(io.BytesIO(archive.body)) as found:
            assert set(found.namelist()) == {"a.txt", "sub/", "sub/inner/"}
        for t in ("unlink-many", "move-many"):
            to_dir = {"to_dir": directory, "sure": "true"}
            assert (await send(web, reader, NAMES[:1], t=t, **to_dir)).status >= 400
