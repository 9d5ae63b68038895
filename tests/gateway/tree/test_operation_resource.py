"""Checks of everything below a directory that are started from its page. [spec webapi 10]"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from twisted.internet.defer import Deferred

from grid.caps import LitCap
from grid.directory.deep_check import Checked
from grid.directory.walk import Visited
from grid.gateway.tree import operations
from grid.gateway.tree.operations import Budget
from tests.gateway.pages.hostile import Document, require_harmless
from tests.gateway.tree.test_operations import planted
from tests.gateway.trees import lose
from tests.support.web_gateway import WebGateway

PAGE = {"Accept": "text/html"}


async def start(web: WebGateway, path: str, **fields: str) -> str:
    """Send the form of the page; the address of the check, which has ended."""
    reply = await web.post_form(path, {"t": "start-deep-check", "ask": "true", **fields})
    assert reply.status == 302, reply.text
    address = "/operations/" + reply.headers["location"].partition("/operations/")[2]
    while b'"finished": true' not in (await web.get(f"{address}?output=JSON")).body:
        pass
    return address


async def page(web: WebGateway, address: str) -> Document:
    reply = await web.get(address, **PAGE)
    assert reply.status == 200 and reply.headers["content-type"].startswith("text/html"), reply.text
    return require_harmless(reply.text)


def links(document: Document) -> list[str]:
    return [link["href"] or "" for link in document.all("a")]


async def test_check_from_a_page_lists_what_is_unhealthy_with_links_to_it_by_path(tmp_path: Path) -> None:
    async with planted(tmp_path) as (web, tree):
        lose(web, tree["sub/file"], 1)
        lose(web, tree["sub/mutable"], 3)
        home = f"/uri/{tree['']}/"
        address = await start(web, home)
        document = await page(web, address)
        assert "2 of 8 objects are not healthy, and 1 of these cannot be read now." in document.text
        assert [link.removeprefix(home.replace(":", "%3A")) for link in links(document) if "?t=info" in link] == [
            "sub/file?t=info",
            "sub/mutable?t=info",
        ]
        for link in links(document):
            if "?t=info" in link:
                assert (await web.get(link)).status == 200
        assert "data-poll" not in {key for _, attributes in document.elements for key in attributes}


async def test_repair_from_a_page_says_what_was_repaired(tmp_path: Path) -> None:
    async with planted(tmp_path) as (web, tree):
        lose(web, tree["sub/file"], 1)
        document = await page(web, await start(web, f"/uri/{tree['']}/", repair="true"))
        assert "Everything is healthy: 8 objects. 1 object was repaired." in document.text
        assert "1 of 1 tried" in document.text and "Repaired" in document.text


async def test_check_from_a_page_has_no_limit_on_the_tree_and_keeps_the_first_unhealthy_objects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operations, "MAX_KEPT", 1)
    async with planted(tmp_path) as (web, tree):
        web.gateway.operations.budget = Budget(left=1)
        for path in ("file", "sub/file"):
            lose(web, tree[path], 1)
        document = await page(web, await start(web, f"/uri/{tree['']}/"))
        assert "2 of 8 objects are not healthy, but all can be read." in document.text
        assert "And 1 other." in document.text
        assert web.gateway.operations.budget.left == 0


async def test_handles_that_the_gateway_chooses_differ_and_are_long(tmp_path: Path) -> None:
    async with planted(tmp_path) as (web, tree):
        handles = [await start(web, f"/uri/{tree['sub']}/") for _ in range(2)]
        assert handles[0] != handles[1]
        assert all(len(handle.removeprefix("/operations/")) == 26 for handle in handles)
        refused = await web.post_form(f"/uri/{tree['']}/", {"t": "start-deep-check"})
        assert refused.status == 400


async def test_page_of_a_directory_leads_to_its_last_check_and_that_of_another_capability_does_not(
    tmp_path: Path,
) -> None:
    async with planted(tmp_path) as (web, tree):
        home = f"/uri/{tree['']}/"
        assert not [link for link in links(await page(web, home)) if link.startswith("/operations/")]
        await start(web, home)
        address = await start(web, home)
        assert [link for link in links(await page(web, home)) if link.startswith("/operations/")] == [address]
        reader = (await web.get(f"/uri/{tree['']}?t=readonly-uri")).text
        assert not [link for link in links(await page(web, f"/uri/{reader}/")) if link.startswith("/operations/")]


async def test_check_stopped_from_its_page_keeps_what_it_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def endless(
        *arguments: object, on_start: Callable[[Visited], None], **named: object
    ) -> AsyncIterator[Checked]:
        """One object, and another that never answers."""
        for name in ("first", "second"):
            visited = Visited(path=(name,), target=LitCap(data=b"x"))
            on_start(visited)
            yield Checked(visited=visited)
            await Deferred()

    monkeypatch.setattr(operations, "deep_check", endless)
    async with planted(tmp_path) as (web, tree):
        reply = await web.post_form(f"/uri/{tree['']}/", {"t": "start-deep-check", "ask": "true"})
        address = "/operations/" + reply.headers["location"].partition("/operations/")[2]
        document = await page(web, address)
        assert "Checking: 1 of about 1 object done" in document.text and len(document.all("progress")) == 1
        told = await web.post_form(address, {"t": "cancel", "ask": "true"})
        assert (told.status, told.headers["location"]) == (302, address)
        assert "Stopped. These are the results so far." in (await page(web, address)).text


async def test_check_of_a_lost_directory_from_a_page_says_why_it_ended(tmp_path: Path) -> None:
    async with planted(tmp_path) as (web, tree):
        lose(web, tree[""], 3)
        state = await web.get(await start(web, f"/uri/{tree['']}/"), **PAGE)
        assert state.status == 410 and "Ended early: " in require_harmless(state.text).text
