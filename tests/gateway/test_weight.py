"""The weight of pages: what a browser transfers for the first page and for a directory of 500 files."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from urllib.parse import quote

from grid.caps import ChkCap
from grid.gateway.pages.shell import with_styles
from tests.gateway.rig import Reply, Rig, running_gateway

BUDGET = 300_000
"""Bytes that a page may transfer, with everything it loads."""

GZIP = {"Accept-Encoding": "gzip, deflate, br"}


def photos(count: int, size: int = 2_345_678) -> bytes:
    """Children as a camera names them, each with a capability of its own. size: of the first, in bytes."""
    children = {}
    for number in range(count):
        cap = ChkCap(key=b"%016d" % number, ueb_hash=b"%032d" % (number * 7919), needed=3, total=10, size=size + number)
        facts = {"ro_uri": cap.to_string(), "metadata": {"tahoe": {"linkmotime": 1.7e9 + number}}}
        children[f"holiday photo {number:04}.jpg"] = ["filenode", facts]
    return json.dumps(children).encode()


async def load(rig: Rig, path: str) -> tuple[Reply, dict[str, int]]:
    """The page, and the bytes of all bodies that its address and everything it names transfer."""
    page = await rig.ask("GET", path, headers=GZIP)
    weights = {path: len(page.body)}
    text = gzip.decompress(page.body) if page.headers.get("content-encoding") == "gzip" else page.body
    for address in re.findall(r'(?:src|href)="(/assets/[^"]+)"', text.decode()):
        weights[address.rpartition("/")[2]] = len((await rig.ask("GET", address, headers=GZIP)).body)
    return page, weights


async def test_first_page_and_500_rows_stay_within_the_budget_with_all_that_they_load(tmp_path: Path) -> None:
    async with running_gateway(tmp_path) as rig:
        made = await rig.ask("POST", "/uri?t=mkdir-with-children", photos(500), {"Content-Type": "application/json"})
        path = f"/uri/{quote(made.body.decode().strip(), safe='')}/"
        page, listing = await load(rig, path)
        _, home = await load(rig, "/")
        plain = await rig.ask("GET", path)
        fetched = await rig.ask("GET", path, headers={**GZIP, "Sec-Fetch-Dest": "empty"})

    assert gzip.decompress(page.body).decode() == with_styles(plain.body.decode())
    assert gzip.decompress(fetched.body) == plain.body and plain.body.count(b'<tr><th scope="row"') == 500
    assert set(listing) == {path, "grid.svg", "app.js"}, "a directory's page has its styles in it"
    assert set(home) == {"/", "grid.svg", "app.js"}, "the first page has its styles in it, too"
    assert sum(listing.values()) < BUDGET / 3, listing
    assert sum(home.values()) < BUDGET / 6, home
    assert len(plain.body) < BUDGET, "rows are lean before they are compressed"
