"""Warnings when a gateway serves an older version than one it knows: a header, a JSON key, a line on the page."""

from __future__ import annotations

import json
from pathlib import Path

from grid.caps import StorageIndex, UnknownCap, parse_cap
from grid.mutable.read.newest import NewestSeen
from tests.gateway.trees import gateway_of_trees
from tests.support.web_gateway import WebGateway

HEADER = "x-grid-warning"


def make_outdated(web: WebGateway, text: str) -> None:
    """Have the gateway know of a newer version of the file than there is."""
    cap = parse_cap(text)
    assert not isinstance(cap, UnknownCap) and cap.storage_index is not None
    web.gateway.store.grid.remembered.of(NewestSeen).learn(StorageIndex(cap.storage_index), 77)


async def test_directory_when_a_newer_version_is_known_then_every_view_says_so(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        directory = (await web.request("POST", "/uri?t=mkdir")).text
        await web.put(f"/uri/{directory}/file", b"contents" * 20)
        calm = await web.get(f"/uri/{directory}?t=json")
        assert "warning" not in json.loads(calm.text)[1] and HEADER not in calm.headers
        make_outdated(web, directory)
        told = await web.get(f"/uri/{directory}?t=json")
        warning = json.loads(told.text)[1]["warning"]
        assert "seq77" in warning and told.headers[HEADER] == warning
        assert json.loads(told.text)[1]["children"].keys() == {"file"}
        page = await web.get(f"/uri/{directory}/")
        assert "a newer version of the file is known (seq77)" in page.text
        changed = await web.put(f"/uri/{directory}/another", b"contents" * 20)
        assert changed.status == 201
        after = await web.get(f"/uri/{directory}?t=json")
        assert "warning" not in json.loads(after.text)[1], "the new version has a higher number"


async def test_file_when_a_newer_version_is_known_then_every_view_says_so(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        for size in (2000, 3_000_000):
            cap = (await web.put("/uri?format=mdmf", bytes(size))).text
            make_outdated(web, cap)
            told = await web.get(f"/uri/{cap}")
            assert len(told.body) == size and "seq77" in told.headers[HEADER]
            described = await web.get(f"/uri/{cap}?t=json")
            assert "seq77" in json.loads(described.text)[1]["warning"]
            replaced = await web.put(f"/uri/{cap}", b"new")
            assert replaced.status == 200 and "seq77" in replaced.headers[HEADER]
            calm = await web.get(f"/uri/{cap}")
            assert calm.body == b"new" and HEADER not in calm.headers
