"""Operations over trees: their results, and how many handles are kept and for how long. [spec webapi 7, 7.1]"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from attrs import define

from grid.gateway.faults import NotFound, TooManyRequests
from grid.gateway.tree.operations import COLLECTED_S, UNCOLLECTED_S, Budget, OperationTable
from grid.limits import MAX_OPERATIONS, MAX_RUNNING_OPERATIONS
from tests.gateway.tree.test_streams import plant
from tests.gateway.trees import gateway_of_trees, lose
from tests.support.virtual_time import VirtualClock
from tests.support.web_gateway import Reply, WebGateway

DAY = 86400.0


@define(eq=False)
class Walk:
    """Something that runs as long as a test wants."""

    finished: bool = False
    is_cancelled: bool = False
    is_forgotten: bool = False

    def cancel(self) -> None:
        """Note it."""
        self.is_cancelled = True

    def forget(self) -> None:
        """Note it."""
        self.is_forgotten = True


class Handles:
    """A table in virtual time."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.table: OperationTable[Walk] = OperationTable(self.clock)

    def start(self, handle: str = "h", retain_s: float | None = None) -> Walk:
        """A new operation."""
        self.table.make_room(handle)
        walk = Walk()
        self.table.add(handle, walk, retain_s)
        return walk

    def end(self, walk: Walk) -> None:
        """It ends."""
        walk.finished = True
        self.table.ended(walk)

    def later(self, seconds: float) -> None:
        """Time passes."""
        self.clock.task_clock.advance(seconds)

    def is_there(self, handle: str = "h") -> bool:
        """Whether it is remembered; asking for its state would count as collecting it."""
        return len(self.table) > 0


def test_operation_while_it_runs_then_is_kept_however_long() -> None:
    handles = Handles()
    walk = handles.start()
    handles.later(100 * DAY)
    assert handles.table.look_at("h", None) is walk


def test_operation_when_nobody_asks_then_expires_after_four_days_or_as_long_as_it_ran() -> None:
    handles = Handles()
    handles.end(handles.start())
    handles.later(UNCOLLECTED_S - 1)
    assert handles.is_there()
    handles.later(2)
    assert not handles.is_there()
    walk = handles.start()
    handles.later(10 * DAY)
    handles.end(walk)
    handles.later(9 * DAY)
    assert handles.is_there()
    handles.later(2 * DAY)
    assert not handles.is_there() and walk.is_forgotten


def test_operation_when_seen_finished_then_expires_a_day_after_the_first_look() -> None:
    handles = Handles()
    walk = handles.start()
    handles.table.look_at("h", None)
    handles.end(walk)
    handles.later(3 * DAY)
    handles.table.look_at("h", None)
    handles.later(COLLECTED_S - 10)
    handles.table.look_at("h", None)
    handles.later(11)
    with pytest.raises(NotFound, match="unknown/expired handle"):
        handles.table.look_at("h", None)


def test_operation_when_given_a_lifetime_then_stays_that_long() -> None:
    handles = Handles()
    handles.end(handles.start(retain_s=60))
    handles.later(59)
    handles.table.look_at("h", 10 * DAY)
    handles.later(9 * DAY)
    assert handles.is_there()
    handles.table.look_at("h", 0)
    handles.later(0.1)
    assert not handles.is_there()


def test_handle_when_used_again_then_the_older_operation_is_cancelled() -> None:
    handles = Handles()
    old = handles.start()
    new = handles.start()
    assert old.is_cancelled and not new.is_cancelled and len(handles.table) == 1


def test_operations_when_the_most_run_then_another_is_refused() -> None:
    handles = Handles()
    walks = [handles.start(str(number)) for number in range(MAX_RUNNING_OPERATIONS)]
    with pytest.raises(TooManyRequests):
        handles.start("more")
    handles.end(walks[0])
    handles.start("more")
    assert len(handles.table) == MAX_RUNNING_OPERATIONS + 1


def test_operations_when_the_most_are_remembered_then_the_oldest_finished_one_goes() -> None:
    handles = Handles()
    running = handles.start("running")
    for number in range(MAX_OPERATIONS + 5):
        handles.end(handles.start(str(number)))
    assert len(handles.table) == MAX_OPERATIONS
    assert handles.table.look_at("running", None) is running
    with pytest.raises(NotFound):
        handles.table.look_at("0", None)


def test_table_when_closed_then_all_are_cancelled_and_no_timer_is_left() -> None:
    handles = Handles()
    walk = handles.start("a")
    handles.end(handles.start("b"))
    handles.table.close()
    assert walk.is_cancelled and not handles.clock.task_clock.getDelayedCalls()


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
async def test_deep_check_when_a_file_is_lost_then_counts_it_and_reports_each_object(
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


async def test_operation_when_its_root_is_lost_then_has_its_status_and_partial_results(tmp_path: Path) -> None:
    async with planted(tmp_path) as (web, tree):
        lose(web, tree[""], 3)
        path = await start(web, tree[""], "start-deep-check&ophandle=h&output=JSON")
        reply = await web.get(path)
        document = json.loads(reply.text)
        assert reply.status == 410 and document["finished"] and document["count-objects-checked"] == 1
        assert document["error"].startswith("UnrecoverableFileError: ")


async def test_operation_when_cancelled_or_released_then_is_forgotten(tmp_path: Path) -> None:
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
