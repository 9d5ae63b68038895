"""Check, verify and repair of one object. [spec webapi 6]"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.trees import gateway_of_trees, lose
from tests.support.web_gateway import WebGateway

DATA = random.Random(1).randbytes(5000)

RESULT_KEYS = {
    "healthy", "recoverable", "count-happiness", "count-shares-good", "count-shares-needed", "count-shares-expected",
    "count-good-share-hosts", "count-wrong-shares", "count-corrupt-shares", "list-corrupt-shares", "servers-responding",
    "sharemap", "count-recoverable-versions", "count-unrecoverable-versions",
}  # fmt: skip


async def check(web: WebGateway, cap: str, query: str = "") -> Any:
    reply = await web.request("POST", f"/uri/{cap}?t=check&output=JSON{query}")
    assert (reply.status, reply.headers["content-type"]) == (200, "text/plain"), reply.text
    assert reply.text.endswith("}\n")
    return json.loads(reply.text)


async def store(web: WebGateway, kind: str) -> str:
    """The capability of a new object."""
    if kind == "directory":
        return (await web.put("/uri?t=mkdir")).text
    return (await web.put(f"/uri?format={kind}", DATA)).text


@pytest.mark.parametrize("kind", ["chk", "sdmf", "mdmf", "directory"])
async def test_object_when_healthy_or_short_of_a_share_or_repaired_then_is_reported_so(
    tmp_path: Path, kind: str
) -> None:
    async with gateway_of_trees(tmp_path, count=4) as web:
        cap = await store(web, kind)
        whole = await check(web, cap, "&verify=true&add-lease=true")
        assert set(whole) == {"storage-index", "summary", "results"}
        assert set(whole["results"]) == RESULT_KEYS
        assert (whole["summary"], whole["results"]["healthy"]) == ("Healthy", True)
        left_alone = await check(web, cap, "&repair=true")
        assert (left_alone["repair-attempted"], left_alone["repair-successful"]) == (False, False)
        assert left_alone["pre-repair-results"] == left_alone["post-repair-results"]
        lose(web, cap, 1)
        short = await check(web, cap)
        assert (short["results"]["healthy"], short["results"]["recoverable"]) == (False, True)
        assert "3 shares (enc 2-of-4)" in short["summary"]
        mended = await check(web, cap, "&repair=true")
        assert (mended["repair-attempted"], mended["repair-successful"]) == (True, True)
        assert mended["pre-repair-results"]["results"]["count-shares-good"] == 3
        assert (await check(web, cap))["results"]["healthy"]


async def test_file_when_it_cannot_be_repaired_then_immutable_is_gone_and_mutable_says_so(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path, count=4) as web:
        fixed, mutable = await store(web, "chk"), await store(web, "sdmf")
        lose(web, fixed, 3)
        lose(web, mutable, 3)
        found = await check(web, fixed, "&verify=true")
        assert (found["results"]["recoverable"], found["results"]["count-unrecoverable-versions"]) == (False, 1)
        reply = await web.request("POST", f"/uri/{fixed}?t=check&output=json&repair=true")
        assert reply.status == 410 and reply.text.startswith("NotEnoughSharesError: ")
        tried = await check(web, mutable, "&repair=true")
        assert (tried["repair-attempted"], tried["repair-successful"]) == (True, False)
        assert not tried["post-repair-results"]["results"]["recoverable"]


@pytest.mark.parametrize("cap", ["URI:LIT:onxw2zi", "URI:DIR2-LIT:", "imm.lafs:future"])
async def test_object_without_shares_when_checked_or_repaired_then_is_healthy(tmp_path: Path, cap: str) -> None:
    async with gateway_of_trees(tmp_path) as web:
        for query in ("", "&verify=t", "&repair=1"):
            assert await check(web, cap, query) == {"storage-index": "", "results": {"healthy": True}}


async def test_check_when_for_people_or_by_a_path_then_is_a_page_or_redirects(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        folder = (await web.put("/uri?t=mkdir")).text
        await web.put(f"/uri/{folder}/a", DATA)
        page = await web.post_form(f"/uri/{folder}/a", {"t": "check", "return_to": "/back"})
        assert (page.status, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert b"/back" in page.body
        assert (await web.request("POST", f"/uri/{folder}/a?t=check&output=xml")).status == 400
        assert (await web.request("POST", f"/uri/{folder}/a?t=check&verify=maybe")).status == 400
        assert (await web.request("POST", f"/uri/{folder}/a?t=check&return_to=javascript:x")).status == 400
        sent = await web.request("POST", f"/uri/{folder}/a?t=check&when_done=/there")
        assert (sent.status, sent.headers["location"]) == (302, "/there")
        read_only = (await web.get(f"/uri/{folder}?t=readonly-uri")).text
        lose(web, folder, 1)
        seen = await check(web, read_only, "&repair=true")
        assert (seen["repair-attempted"], seen["pre-repair-results"]["results"]["healthy"]) == (False, False)
