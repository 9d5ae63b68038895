"""Streams over a tree: a line for each object, even a lost one. [spec webapi 7.3]"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.trees import gateway_of_trees, lose
from tests.support.web_gateway import WebGateway

DATA = random.Random(1).randbytes(5000)


async def plant(web: WebGateway) -> dict[str, str]:
    """A small tree: capabilities by path; the root is ""."""
    root = (await web.put("/uri?t=mkdir")).text
    made = {"": root}
    for path, body in (("file", DATA), ("sub/deep/small", b"x"), ("sub/file", DATA[1:])):
        made[path] = (await web.put(f"/uri/{root}/{path}", body)).text
    made["sub/mutable"] = (await web.put(f"/uri/{root}/sub/mutable?format=sdmf", DATA)).text
    for path in ("sub", "sub/deep"):
        made[path] = (await web.get(f"/uri/{root}/{path}?t=uri")).text
    linked = await web.request("POST", f"/uri/{root}?t=uri&name=future&uri=ro.lafs:future")
    assert linked.status == 200
    return made


async def stream(web: WebGateway, cap: str, query: str) -> list[Any]:
    """The lines, those of an error as they are."""
    reply = await web.request("POST", f"/uri/{cap}?t={query}")
    assert (reply.status, reply.headers["content-type"]) == (200, "text/html"), reply.text
    assert reply.text.endswith("\n") and not reply.is_short
    return [json.loads(line) if line.startswith("{") else line for line in reply.text.splitlines()]


async def test_manifest_when_streamed_then_has_all_objects_in_order_and_the_statistics(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        tree = await plant(web)
        *units, last = await stream(web, tree[""], "stream-manifest")
        paths = ["/".join(unit["path"]) for unit in units]
        assert paths == ["", "future", "file", "sub", "sub/file", "sub/mutable", "sub/deep", "sub/deep/small"]
        for unit in units:
            assert set(unit) == {"path", "cap", "type", "verifycap", "repaircap", "storage-index"}
            if unit["type"] != "unknown":
                assert unit["cap"] == tree["/".join(unit["path"])]
        assert units[1] == {
            "path": ["future"], "cap": "ro.lafs:future", "type": "unknown", "verifycap": "", "repaircap": "",
            "storage-index": "",
        }  # fmt: skip
        assert last["type"] == "stats"
        assert (last["stats"]["count-files"], last["stats"]["count-directories"]) == (4, 3)


async def test_stream_when_a_directory_is_lost_then_the_rest_follows(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        tree = await plant(web)
        lose(web, tree["sub/deep"], 3)
        *units, _ = await stream(web, tree[""], "stream-manifest")
        lost = next(unit for unit in units if unit["path"] == ["sub", "deep"])
        assert lost["error"].startswith("UnrecoverableFileError: ")
        assert len(units) == 7 and not any("error" in unit for unit in units if unit is not lost)
        *checks, last = await stream(web, tree[""], "stream-deep-check")
        assert len(checks) == 7 and last["stats"]["count-directories"] == 3
        unread = next(unit for unit in checks if unit["path"] == ["sub", "deep"])
        assert unread["check-results"]["results"]["healthy"] is False


@pytest.mark.parametrize("query", ["stream-manifest", "stream-deep-check", "stream-deep-check&repair=true"])
async def test_stream_when_the_root_is_lost_then_has_its_line_and_an_error(tmp_path: Path, query: str) -> None:
    async with gateway_of_trees(tmp_path) as web:
        tree = await plant(web)
        lose(web, tree[""], 3)
        root, error, *rest = await stream(web, tree[""], query)
        assert (root["path"], root["cap"], root["type"]) == ([], tree[""], "directory")
        assert error.startswith("ERROR: UnrecoverableFileError(") and error.endswith(")")
        assert not any(isinstance(line, dict) for line in rest)
        if "check" in query:
            found = root.get("check-results") or root["check-and-repair-results"]["pre-repair-results"]
            assert found["results"]["recoverable"] is False


async def test_deep_check_when_streamed_with_repair_then_one_lost_file_does_not_end_it(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path, count=4) as web:
        tree = await plant(web)
        lose(web, tree["file"], 4)
        lose(web, tree["sub/mutable"], 1)
        *units, _ = await stream(web, tree[""], "stream-deep-check&repair=true")
        results = {"/".join(unit["path"]): unit["check-and-repair-results"] for unit in units}
        assert results["file"]["repair-attempted"] and not results["file"]["repair-successful"]
        assert results["sub/mutable"]["repair-successful"]
        assert results["sub/deep/small"] == results["future"] == {"storage-index": "", "repair-attempted": False}
        *again, _ = await stream(web, tree[""], "stream-deep-check&verify=true&add-lease=true")
        health = {"/".join(unit["path"]): unit["check-results"] for unit in again}
        assert health["sub/mutable"]["summary"] == "Healthy"
        assert health["file"]["results"]["recoverable"] is False


async def test_stream_when_of_a_file_or_with_a_bad_argument_then_400(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        tree = await plant(web)
        for path in (f"{tree['file']}?t=stream-manifest", f"{tree['']}?t=stream-deep-check&verify=2"):
            assert (await web.request("POST", f"/uri/{path}")).status == 400
