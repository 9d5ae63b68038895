"""Operations with handles: started, asked for their state, cancelled. [spec webapi 7.1, 7.2]"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from grid.gateway.tree.operations import Budget
from tests.gateway.tree.test_streams import plant
from tests.gateway.trees import gateway_of_trees, lose
from tests.support.web_gateway import Reply, WebGateway


@asynccontextmanager
async def planted(folder: Path, count: int = 3) -> AsyncIterator[tuple[WebGateway, dict[str, str]]]:
    """A gateway with a tree; its operations end with it."""
    async with gateway_of_trees(folder, count=count) as web:
        try:
            yield web, await plant(web)
        finally:
            web.gateway.operations.close()


async def start(web: WebGateway, cap: str, query: str) -> str:
    """The path of a new operation, which has ended."""
    reply = await web.request("POST", f"/uri/{cap}?t={query}")
    assert reply.status == 302, reply.text
    origin, _, path = reply.headers["location"].partition("/operations/")
    assert origin == f"http://127.0.0.1:{web.port}"
    path = f"/operations/{path}"
    while True:
        state = await web.get(path.partition("?")[0] + "?output=JSON")
        if b'"finished": true' in state.body or state.status != 200:
            return path


async def state(web: WebGateway, path: str) -> tuple[Any, Reply]:
    reply = await web.get(path)
    assert (reply.status, reply.headers["content-type"]) == (200, "text/plain"), reply.text
    return json.loads(reply.text), reply


async def test_stats_when_asked_for_then_are_json_whatever_the_output(tmp_path: Path) -> None:
    async with planted(tmp_path) as (web, tree):
        path = await start(web, tree[""], "start-deep-stats&ophandle=my%20h")
        assert path == "/operations/my%20h"
        document, reply = await state(web, path)
        assert document["finished"] and document["count-directories"] == 3
        assert reply.text.startswith('{\n "') and reply.text.endswith("}")


async def test_size_when_asked_for_then_is_a_line_of_json_or_two_of_text(tmp_path: Path) -> None:
    async with planted(tmp_path) as (web, tree):
        path = await start(web, tree[""], "start-deep-size&ophandle=h&output=JSON")
        document, reply = await state(web, path)
        assert set(document) == {"finished", "size"} and reply.text.count("\n") == 1
        text = await web.get("/operations/h")
        total = document["size"]["size-immutable-files"] + document["size"]["size-directories"]
        assert (text.headers["content-type"], text.text) == ("text/html", f"finished: yes\nsize: {total}\n")


async def test_manifest_when_asked_for_then_is_json_text_or_a_page(tmp_path: Path) -> None:
    async with planted(tmp_path) as (web, tree):
        path = await start(web, tree[""], "start-manifest&ophandle=h&output=JSON")
        document, _ = await state(web, path)
        assert set(document) == {"stats", "finished", "origin", "manifest", "verifycaps", "storage-index"}
        assert document["manifest"][0] == [[], tree[""]] and len(document["manifest"]) == 8
        text = (await web.get("/operations/h?output=text")).text.splitlines()
        assert text[:2] == ["finished: yes", f" {tree['']}"] and f"sub/file {tree['sub/file']}" in text
        page = await web.get("/operations/h")
        assert (page.status, page.headers["content-type"]) == (200, "text/html; charset=utf-8")


@pytest.mark.parametrize("repair", [False, True])
async def test_deep_check_when_a_file_is_lost_then_counts_it_and_tells_of_each_object(
    tmp_path: Path, repair: bool
) -> None:
    async with planted(tmp_path) as (web, tree):
        lose(web, tree["file"], 3)
        query = f"start-deep-check&ophandle=h&output=JSON&repair={repair}"
        document, reply = await state(web, await start(web, tree[""], query))
        suffixes = ["-pre-repair", "-post-repair"] if repair else [""]
        for suffix in suffixes:
            assert document[f"count-objects-healthy{suffix}"] == 5
            assert document[f"count-objects-unhealthy{suffix}"] == 1
        assert document["count-objects-checked"] == 6
        assert document["list-unhealthy-files"][0][0] == ["file"]
        assert document["stats"]["count-files"] == 4 and reply.text.endswith("}\n")
        assert ("list-remaining-corrupt-shares" in document) == repair
        index = document["list-unhealthy-files"][0][1]["storage-index"]
        one, _ = await state(web, f"/operations/h/{index}?output=JSON")
        assert one["storage-index"] == index and ("repair-attempted" in one) == repair
        assert (await web.get("/operations/h/aaaa?output=JSON")).status == 404
        assert (await web.get("/operations/h/?output=JSON")).status == 200


async def test_operation_when_its_root_is_lost_then_has_its_status_and_what_there_is(tmp_path: Path) -> None:
    async with planted(tmp_path) as (web, tree):
        lose(web, tree[""], 3)
        path = await start(web, tree[""], "start-deep-check&ophandle=h&output=JSON")
        reply = await web.get(path)
        document = json.loads(reply.text)
        assert reply.status == 410 and document["finished"] and document["count-objects-checked"] == 1
        assert document["error"].startswith("UnrecoverableFileError: ")


async def test_operation_when_cancelled_or_released_then_is_not_known_any_more(tmp_path: Path) -> None:
    async with planted(tmp_path) as (web, tree):
        await web.request("POST", f"/uri/{tree['']}?t=start-manifest&ophandle=h")
        told = await web.request("POST", "/operations/h?t=cancel&output=JSON")
        assert told.status == 200 and json.loads(told.text)["finished"] is True
        assert (await web.get("/operations/h")).status == 404
        path = await start(web, tree[""], "start-manifest&ophandle=h&output=JSON")
        assert (await web.get(f"{path}&release-after-complete=true")).status == 200
        gone = await web.get(path)
        assert gone.status == 404 and "unknown/expired handle" in gone.text


async def test_operations_when_asked_wrongly_then_say_so(tmp_path: Path) -> None:
    async with planted(tmp_path) as (web, tree):
        await start(web, tree[""], "start-manifest&ophandle=h")
        for method, path, status in [
            ("GET", "/operations", 405), ("GET", "/operations/", 404), ("GET", "/operations/other", 404),
            ("GET", "/operations/h?t=bogus", 400), ("POST", "/operations/h?t=bogus", 400),
            ("GET", "/operations/h?output=bogus", 400), ("GET", "/operations/h?retain-for=x", 400),
            ("GET", "/operations/h/", 404), ("PUT", "/operations/h", 405),
            ("POST", f"/uri/{tree['file']}?t=start-manifest&ophandle=h", 400),
            ("POST", f"/uri/{tree['']}?t=start-manifest", 400),
            ("POST", f"/uri/{tree['']}?t=start-manifest&ophandle={'x' * 2000}", 400),
        ]:  # fmt: skip
            assert (await web.request(method, path)).status == status, (method, path)


async def test_operation_when_the_tree_is_larger_than_is_remembered_then_ends_and_says_so(
    tmp_path: Path,
) -> None:
    async with planted(tmp_path) as (web, tree):
        web.gateway.operations.budget = Budget(left=3)
        path = await start(web, tree[""], "start-manifest&ophandle=h&output=JSON")
        reply = await web.get(path)
        assert reply.status == 413 and len(json.loads(reply.text)["manifest"]) == 3
        web.gateway.operations.table.release("h")
        assert web.gateway.operations.budget.left == 3
