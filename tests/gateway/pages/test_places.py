"""Pages that belong to no object, in all their states."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest
from attrs import evolve

from grid.caps import DirectoryCap, LitCap, SdmfWriteCap
from grid.gateway.history.operation import Operation, Row, Timeline, Times
from grid.gateway.pages.home import render_own, render_welcome
from grid.gateway.pages.operation_list import render_operations
from grid.gateway.pages.operations import render_operation
from grid.gateway.pages.servers import render_servers
from grid.gateway.pages.statistics import render_statistics
from grid.gateway.pages.tree_operation import render_tree_operation
from grid.gateway.shared.home import RecentUpload
from grid.gateway.shared.node_view import DoorUser, DoorView, ServerView
from tests.gateway.pages.hostile import HOSTILE, require_harmless

WRITE = DirectoryCap(SdmfWriteCap(write_key=b"w" * 16, fingerprint=b"f" * 32))


def door(*users: str) -> DoorView:
    return DoorView(
        name="SFTP",
        address="sftp://127.0.0.1:8022",
        users=lambda: [DoorUser(user, "reads only") for user in users],
        active=lambda: 2,
    )


def server(name: str, connected: bool = True) -> ServerView:
    return ServerView(
        server_id=f"v0-{name}",
        nickname=name,
        is_connected=connected,
        status="Connected" if connected else name,
        version=name,
        available_space=5 * 10**9,
        last_received_at=1.7e9,
        latency_s=0.004,
    )


def operation(*rows: Row, ended_at: float | None = None, **more: object) -> Operation:
    timeline = Timeline(0.0)
    timeline.rows.extend(rows)
    times = Times(started_at=1.7e9, began_at=0.0, ended_at=ended_at)
    return Operation(kind="upload", number=3, times=times, timeline=timeline, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_that_servers_say_becomes_markup(text: str) -> None:
    rows = [server(text), server(text, connected=False)]
    row = Row(what=text, began_s=0.0, ended_s=1.0, server_id=f"x{text}", outcome="fail", detail=text)

    require_harmless(render_servers(rows, [text]))
    require_harmless(render_welcome(rows, [text], happy=3, nickname=text))
    require_harmless(render_operation(operation(row, outcome="failed", status=text), {f"x{text}": text}))
    require_harmless(render_operations([operation()], [operation(outcome="failed", status=text)], 5.0))
    require_harmless(render_operation(operation(row), {}, text))
    require_harmless(render_operations([operation()], [], 5.0, name_of=lambda operation: text))
    require_harmless(render_statistics({text: 1}, {text: None}, [door(text)]))
    upload = RecentUpload(name=text, cap=LitCap(data=b"abc"), size=3, time=1.7e9)
    require_harmless(render_own([(text, WRITE), (text, WRITE.read_cap())], [upload]))


def test_the_numbers_show_the_doors_and_who_may_use_them() -> None:
    document = require_harmless(render_statistics({}, {}, [door(*(f"user{number}" for number in range(130)))]))

    assert "sftp://127.0.0.1:8022" in document.text and "2 requests in progress" in document.text
    assert "user0" in document.text and "user99" in document.text and "and 30 more" in document.text


def test_the_first_page_has_the_forms_that_scripts_know() -> None:
    document = require_harmless(render_welcome([server("a")], [], happy=1))

    fields = {field["name"] for field in document.all("input")}
    assert {"uri", "filename", "save", "t", "file", "redirect_to_result"} <= fields
    assert {option["value"] for option in document.all("option")} == {"chk", "sdmf", "mdmf"}


def test_first_page_says_in_one_sentence_who_is_connected_and_how_much_fits() -> None:
    rows = [evolve(server(name), host="here") for name in "abc"] + [server("away", connected=False)]
    words = require_harmless(render_welcome(rows, [], happy=3, needed=2, total=5)).text
    assert (
        "3 of 4 servers connected. 5.00 GB free on their disks: room for about 2.00 GB of files with 2-of-5." in words
    )
    assert "room for" not in render_welcome(rows, [], happy=4, needed=2, total=5)


def test_own_part_of_the_first_page_lists_aliases_and_uploads_and_where_drops_can_go() -> None:
    upload = RecentUpload(name="a b.txt", cap=LitCap(data=b"abc"), size=3, time=1.7e9)
    document = require_harmless(render_own([("read", WRITE.read_cap()), ("work", WRITE)], [upload]))

    links = [each["href"] or "" for each in document.all("a")]
    assert f"/uri/{quote(WRITE.to_string(), safe='')}/" in links
    assert any(link.endswith("?t=info&filename=a+b.txt") for link in links)
    chosen = [each["value"] for each in document.all("option")]
    assert chosen == ["", f"/uri/{quote(WRITE.to_string(), safe='')}/"], "what is read only takes no files"
    assert [each["data-copy"] for each in document.all("button") if "data-copy" in each] == [upload.cap.to_string()]
    empty = require_harmless(render_own([], [])).text
    assert "grid create-alias work" in empty and "until the gateway stops" in empty


def test_too_few_servers_are_pointed_out_and_enough_are_not() -> None:
    assert "Storing a file needs 2 servers" in render_welcome([server("a")], [], happy=2)
    assert "Storing a file needs" not in render_welcome([server("a"), server("b")], [], happy=2)


def test_server_that_cannot_be_reached_is_shown_with_what_to_look_at_and_no_old_round_trip() -> None:
    html = render_servers([server("did not finish connecting within 15 s (tcp:192.0.2.1:1)", connected=False)], [])
    assert "Is the machine on, or does a firewall drop what you send?" in html and "4.0 ms" not in html
    assert "firewall" not in render_servers([server("a")], []) and "4.0 ms" in render_servers([server("a")], [])


def test_servers_that_need_attention_come_first() -> None:
    rows = [
        server("a"),
        server("z", connected=False),
        evolve(server("b"), available_space=0),
        evolve(server("c", connected=False), is_connecting=True),
        server("y", connected=False),
    ]
    assert re.findall("<bdi>(.)</bdi>", render_servers(rows, [])) == ["y", "z", "b", "c", "a"]


def test_server_without_room_is_amber_and_a_sentence_says_what_that_prevents() -> None:
    rows = [server("a"), evolve(server("full"), available_space=0), evolve(server("b"), available_space=None)]
    text = require_harmless(render_servers(rows, [], 2, 3, 3)).text
    assert "1 server has no space or is read-only, and takes no new files." in text
    assert "No space or read-only" in text
    assert "Nothing new can be stored: each file needs room on 3 servers, and 2 have it." in text
    assert render_servers(rows, []).count("state warn") == 1 and render_servers(rows, []).count("state good") == 2
    assert "Nothing new" not in render_servers(rows, [], 1, 3, 2)
    said = [
        evolve(row, available_space=0, is_read_only=is_read_only)
        for row, is_read_only in zip(rows, (False, True, True), strict=True)
    ]
    text = require_harmless(render_servers(said, [], 2, 3, 1)).text
    assert "1 server is full and 2 servers are read-only: they take no new files. Nothing new can be stored" in text
    assert text.count("Read-only") == 2 and text.count("Full") == 1


def test_too_few_connected_servers_are_the_reason_why_nothing_can_be_stored() -> None:
    rows = [server("a"), server("b"), server("c", connected=False)]
    text = require_harmless(render_servers(rows, [], 2, 3, 3)).text
    assert "Nothing new can be stored: each file needs 3 servers, and 2 are connected." in text
    assert "free on their disks" in text and "no room" not in text
    assert "Nothing new" not in render_servers(rows, [], 2, 3, 2)


def test_long_id_of_a_server_is_shown_by_its_beginning() -> None:
    long = evolve(server("a"), server_id=f"v0-{'26grevps' * 6}", status="Connected to tcp:h:1 via http")
    document = require_harmless(render_servers([long], []))
    assert "v0-26grevps" in document.text and long.server_id not in document.text
    assert [each.get("title") for each in document.all("code")] == [long.server_id]
    assert document.text.count("Connected") == 1 and "tcp:h:1 via http" in document.text


def test_home_of_a_node_without_a_nickname_has_a_name_all_the_same() -> None:
    for nickname in ("", "<unspecified>"):
        assert "<h1>Your grid</h1>" in render_welcome([server("a")], [], happy=1, nickname=nickname)


def test_server_that_was_just_announced_is_connecting_and_not_lost() -> None:
    html = render_servers(
        [evolve(server("new", connected=False), is_connecting=True, status="connecting (tcp:h:1)")], []
    )
    assert "state warn" in html and "state bad" not in html and "cannot be reached" not in html


def test_an_empty_list_says_what_will_be_there() -> None:
    assert "No server is known yet" in render_servers([], [])
    assert "Nothing is in progress" in render_operations([], [], 0.0)
    assert "Nothing counted yet" in render_statistics({}, {})
    assert "No requests yet" in render_operation(operation(), {})


def test_requests_that_overlap_are_stacked_and_those_that_do_not_share_a_line() -> None:
    rows = [
        Row(what="read", began_s=0.0, ended_s=1.0, server_id="a", outcome="answer"),
        Row(what="read", began_s=0.5, ended_s=2.0, server_id="a", outcome="cancel"),
        Row(what="read", began_s=1.5, ended_s=None, server_id="a", share_numbers=(1, 2), count=2000),
    ]
    document = require_harmless(render_operation(operation(*rows), {"a": "Ada"}))

    bars = [each for each in document.all("rect") if each.get("class") in ("ok", "late", "run")]
    assert [each["class"] for each in bars] == ["ok", "late", "run"]
    assert bars[0]["y"] == bars[2]["y"] != bars[1]["y"]
    assert "read, shares 1, 2, 2.00 kB, in progress" in document.text


def test_a_running_operation_follows_what_happens_and_one_that_is_over_does_not() -> None:
    assert 'data-live="/status/events"' in render_operation(operation(), {})
    assert "data-live" not in render_operation(operation(outcome="done", ended_at=2.0), {})


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_in_a_tree_becomes_markup_in_the_page_of_an_operation_over_it(text: str) -> None:
    found = {
        "stats": {"count-files": 3, text: 5},
        "list-unhealthy-files": [[["a", text], {"summary": text}], [], 5],
        "manifest": [[[text], text], [5]],
        text: 1,
    }

    require_harmless(render_tree_operation(text, found, finished=False, error=None))
    require_harmless(render_tree_operation("deep-check", found, finished=True, error=text))


def test_an_operation_over_a_tree_says_how_it_stands() -> None:
    running = render_tree_operation("deep-check", {}, finished=False, error=None)
    over = render_tree_operation("deep-check", {"count-objects-checked": 4}, finished=True, error=None)

    assert "data-poll" in running and ">Stop</button>" in running
    assert "data-poll" not in over and "count objects checked" in over


def test_space_of_a_disk_that_servers_share_counts_once_and_is_shown_as_files_too() -> None:
    def on(host: str, name: str, space: int) -> ServerView:
        return evolve(server(name), host=host, available_space=space)

    shared = [on("10.0.0.1", str(number), 10**12 - number * 10**6) for number in range(10)]
    others = [on("10.0.0.2", "x", 10**12), on("10.0.0.1", "y", 5 * 10**11)]

    html = render_servers([*shared, *others], [], 3, 10)

    assert "2.50 TB free on their disks: room for about 750 GB of files with 3-of-10" in html


def test_room_for_files_ends_where_too_few_servers_have_any_and_the_fullest_of_them_is_named() -> None:
    rows = [
        evolve(server(name), host=name, available_space=space)
        for name, space in zip("abc", (1000, 400, 300), strict=True)
    ]
    assert (
        "1.70 kB free on their disks: room for about 300 B of files with 1-of-3. Each file needs 3 servers, and c will be full first"
        in render_servers(rows, [], 1, 3, 3)
    )
    rows[1] = evolve(rows[1], available_space=0)
    assert "no room for new files. Each file needs room on 3 servers" in render_servers(rows, [], 1, 3, 3)
