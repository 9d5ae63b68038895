"""A directory as a ZIP archive: its contents, omissions and cost. [spec webapi 5.2]"""

from __future__ import annotations

import io
import json
import random
import stat
import zipfile
from contextlib import AsyncExitStack
from pathlib import Path
from urllib.parse import quote

import pytest

from grid.gateway.shared.store_turns import LISTINGS
from grid.gateway.tree import archive
from grid.wire.budget.server_memory import ByteBudget
from tests.gateway.trees import gateway_of_trees, lose
from tests.support.web_gateway import WebGateway

DATA = random.Random(1).randbytes(300_000)


def opened(body: bytes) -> zipfile.ZipFile:
    found = zipfile.ZipFile(io.BytesIO(body))
    assert found.testzip() is None
    return found


async def make(web: WebGateway, children: dict[str, object]) -> str:
    """A directory with these children, as JSON says them."""
    reply = await web.request("POST", "/uri?t=mkdir-with-children", json.dumps(children).encode())
    assert reply.status == 200, reply.text
    return reply.text


def file(cap: str, **metadata: object) -> list[object]:
    return ["filenode", {"ro_uri": cap, "metadata": metadata}]


async def test_archive_has_every_file_below_with_its_path_and_time(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        root = (await web.put("/uri?t=mkdir")).text
        files = {"a.txt": b"x", "sub/deep/\u00fc.bin": DATA, "sub/empty": b"", "sub/mutable": DATA[:5000]}
        for path, body in files.items():
            query = "?format=sdmf" if path.endswith("mutable") else ""
            assert (await web.put(f"/uri/{root}/{quote(path)}{query}", body)).status in (200, 201)
        await web.put(f"/uri/{root}/none?t=mkdir")
        reply = await web.get(f"/uri/{root}/?t=zip&filename=photos")
        assert (reply.status, reply.headers["content-type"]) == (200, "application/zip")
        assert reply.headers["content-disposition"] == 'attachment; filename="photos.zip"'
        assert reply.headers["cache-control"] == "no-store" and "etag" not in reply.headers
        found = opened(reply.body)
        assert {info.filename: found.read(info) for info in found.infolist() if not info.is_dir()} == files
        assert {info.filename for info in found.infolist() if info.is_dir()} == {"none/", "sub/", "sub/deep/"}
        assert all(info.date_time[0] >= 2020 for info in found.infolist())
        below = await web.get(f"/uri/{root}/sub?t=zip")
        assert below.headers["content-disposition"] == 'attachment; filename="sub.zip"'
        assert set(opened(below.body).namelist()) == {"deep/", "deep/\u00fc.bin", "empty", "mutable"}


async def test_archive_leaves_out_lost_entries_and_those_that_lead_out_and_says_so(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        lost = (await web.put("/uri", DATA)).text
        gone = (await web.put("/uri?t=mkdir")).text
        await web.put(f"/uri/{gone}/in", DATA[1:])
        literal = "URI:LIT:mfrgg"
        names = ("..", "a/b", "c:d*", "Same", "same", "good")
        root = await make(
            web,
            {
                **{name: file(literal) for name in names},
                "lost": file(lost),
                "gone": ["dirnode", {"rw_uri": gone, "ro_uri": gone, "metadata": {}}],
                "old": file(literal, mtime=-5.0),
                "late": file(literal, mtime=1e18),
            },
        )
        await web.request("POST", f"/uri/{root}?t=uri&name=itself&uri={root}")
        lose(web, lost, 3)
        lose(web, gone, 3)
        found = opened((await web.get(f"/uri/{root}?t=zip")).body)
        assert set(found.namelist()) == {"Same", "c_d_", "good", "gone/", "late", "old", archive.MISSING}
        assert found.read("good") == b"abc"
        assert found.getinfo("old").date_time == (1980, 1, 1, 0, 0, 0)
        assert stat.S_ISREG(found.getinfo("good").external_attr >> 16)
        lines = found.read(archive.MISSING).decode().splitlines()
        assert {line.partition(":")[0] for line in lines[2:]} == {"..", "a/b", "same", "lost", "gone/", "itself"}
        assert "URI:" not in "".join(lines)


async def test_archive_of_too_much_is_refused_before_it_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_ENTRIES", 3)
    async with gateway_of_trees(tmp_path) as web:
        root = await make(web, {f"{number}": file("URI:LIT:mfrgg") for number in range(4)})
        reply = await web.get(f"/uri/{root}?t=zip")
        assert reply.status == 413 and "cp -r" in reply.text
        assert (await web.request("HEAD", f"/uri/{root}?t=zip")).headers["content-type"] == "application/zip"


async def test_archives_that_find_no_room_beside_others_are_refused_until_one_has_ended(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        root = await make(web, {f"{number}": file("URI:LIT:mfrgg") for number in range(4)})
        budget = web.gateway.stores.archives = ByteBudget(10 * archive.ENTRY_COST)
        others = 7 * archive.ENTRY_COST
        assert budget.try_acquire(others)
        reply = await web.get(f"/uri/{root}?t=zip")
        assert (reply.status, reply.headers["retry-after"]) == (503, "60") and "large archives" in reply.text
        assert budget.free == budget.total - others, "what the refused one had taken is free again"
        budget.release(others)
        assert len(opened((await web.get(f"/uri/{root}?t=zip")).body).namelist()) == 4
        assert budget.free == budget.total


async def test_listing_that_takes_too_long_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with gateway_of_trees(tmp_path) as web:
        root = await make(web, {"a": file("URI:LIT:mfrgg")})
        async with AsyncExitStack() as others:
            for _ in range(LISTINGS):
                await others.enter_async_context(web.gateway.stores.listings.one())
            monkeypatch.setattr(archive, "LISTING_S", 0.01)
            reply = await web.get(f"/uri/{root}?t=zip")
            assert reply.status == 503 and "took more than" in reply.text and "cp -r" in reply.text
        monkeypatch.undo()
        assert opened((await web.get(f"/uri/{root}?t=zip")).body).namelist() == ["a"], "it waited for no turn any more"


async def test_archive_counts_the_entries_left_out_that_it_has_no_room_to_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "MAX_ENTRIES", 3)
    async with gateway_of_trees(tmp_path) as web:
        names = ("good", "a/b", "a/c", "a/d", "a/e", "a/f")
        root = await make(web, {name: file("URI:LIT:mfrgg") for name in names})
        found = opened((await web.get(f"/uri/{root}?t=zip")).body)
        lines = found.read(archive.MISSING).decode().splitlines()
        assert [line.partition(":")[0] for line in lines[2:]] == ["a/b", "a/c", "a/d", "and 2 more"]


async def test_directory_page_offers_the_archive_unless_it_is_empty(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        root = (await web.put("/uri?t=mkdir")).text
        assert "t=zip" not in (await web.get(f"/uri/{root}/")).text
        await web.put(f"/uri/{root}/a", b"x")
        assert "t=zip" in (await web.get(f"/uri/{root}/")).text
