"""Markdown files as pages, within bounds of size and time; and the page that helps to share something."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from grid.gateway.faults import PayloadTooLarge
from grid.gateway.files.file_pages import MAX_TEXT, format_markdown
from tests.gateway.pages.hostile import require_harmless
from tests.gateway.trees import gateway_of_trees


@pytest.mark.parametrize("format", ["chk", "sdmf"])
async def test_markdown_file_is_shown_formatted_and_harmless(tmp_path: Path, format: str) -> None:
    text = b"# Title\n\n*some* words <script>alert(1)</script> " + b"and more " * 20
    async with gateway_of_trees(tmp_path) as web:
        root = (await web.put("/uri?t=mkdir")).text
        cap = (await web.put(f"/uri/{root}/a.md?format={format}", text)).text
        for path in (f"/file/{cap}/@@named=/a.md?t=preview", f"/uri/{root}/a.md?t=preview"):
            reply = await web.get(path)
            assert reply.status == 200 and reply.headers["content-type"].startswith("text/html")
            assert "<h3>Title</h3>" in reply.text and "<em>some</em>" in reply.text
            assert "<script>alert(1)</script> " in require_harmless(reply.text).text


async def test_text_in_its_capability_is_shown_formatted(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        cap = (await web.put("/uri", b"*tiny*")).text
        assert "<em>tiny</em>" in (await web.get(f"/uri/{cap}?t=preview&filename=a.md")).text


async def test_text_that_is_too_long_or_of_another_kind_is_refused(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        cap = (await web.put("/uri", b"a" * (MAX_TEXT + 1))).text
        too_long = await web.get(f"/file/{cap}/@@named=/a.md?t=preview")
        assert too_long.status == 413 and "256 KiB" in too_long.text
        assert (await web.get(f"/file/{cap}/@@named=/a.txt?t=preview")).status == 400


def test_text_that_takes_too_long_to_parse_is_given_up() -> None:
    with pytest.raises(PayloadTooLarge, match="takes too long"):
        format_markdown(b"[a](" * (MAX_TEXT // 4), cpu_s=1)


async def test_directories_and_files_are_shared_by_links_that_work(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        root = (await web.put("/uri?t=mkdir")).text
        cap = (await web.put(f"/uri/{root}/a%20b.txt", b"the contents " * 30)).text
        origin = f"http://127.0.0.1:{web.port}"
        for path in (f"/uri/{root}?t=share", f"/uri/{root}/a%20b.txt?t=share", f"/uri/{cap}?t=share&filename=a.txt"):
            document = require_harmless((await web.get(path)).text)
            link, reader = (field["value"] or "" for field in document.all("input"))
            assert link.startswith(f"{origin}/") and reader.startswith(("URI:DIR2-RO:", "URI:CHK:"))
            assert (await web.get(link.removeprefix(origin))).status == 200
            (back,) = [each["href"] for each in document.all("a") if "data-close" in each]
            assert (await web.get(back or "")).status == 200


async def test_verify_capability_is_not_shared_to_be_read(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        root = (await web.put("/uri?t=mkdir")).text
        await web.put(f"/uri/{root}/a", b"the contents " * 30)
        listing = json.loads((await web.get(f"/uri/{root}?t=json")).text)[1]
        verifiers = [listing["verify_uri"], listing["children"]["a"][1]["verify_uri"]]
        for verifier in verifiers:
            assert (await web.get(f"/uri/{verifier}?t=share")).status == 400
