"""Refused requests: people get a page with what they typed, programs the line that they know."""

from __future__ import annotations

import html
from pathlib import Path
from urllib.parse import quote

import pytest

from grid.gateway.pages.assets import styles
from grid.gateway.pages.mistakes import render_mistake, sentence
from grid.gateway.shared.node_view import ServerView
from tests.gateway.pages.hostile import HOSTILE, Document, require_harmless
from tests.gateway.rig import running_gateway
from tests.gateway.trees import gateway_of_trees, lose
from tests.support.web_gateway import WebGateway, form

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


def typed_into(page: Document) -> dict[str, str | None]:
    """The visible fields, with their values."""
    return {each["name"] or "": each.get("value") for each in page.all("input") if each.get("type") == "text"}


async def post(web: WebGateway, path: str, **fields: str) -> tuple[int, Document, str]:
    kind, body = form(fields)
    reply = await web.request("POST", path, body, {"Content-Type": kind, **BROWSER})
    return reply.status, require_harmless(reply.text), reply.text


@pytest.mark.parametrize(
    ("fields", "status", "kept"),
    [
        ({"t": "uri", "name": "x", "uri": "URI:CHK:half"}, 400, {"name": "x", "uri": "URI:CHK:half"}),
        ({"t": "rename", "from_name": "a", "to_name": "b/c"}, 400, {"to_name": "b/c"}),
        ({"t": "relink", "from_name": "a", "to_dir": "no capability"}, 400, {"to_dir": "no capability"}),
        ({"t": "mkdir", "name": "a", "replace": "false"}, 409, {"name": "a"}),
    ],
)
async def test_form_when_refused_keeps_what_was_typed_and_has_a_way_back(
    tmp_path: Path, fields: dict[str, str], status: int, kept: dict[str, str]
) -> None:
    async with gateway_of_trees(tmp_path) as web:
        directory = (await web.request("POST", "/uri?t=mkdir")).text
        await web.put(f"/uri/{directory}/a", b"a file")
        back = f"/uri/{quote(directory, safe='')}/"

        found, page, text = await post(web, back, **fields, when_done=back)

        assert found == status
        assert typed_into(page).items() >= kept.items()
        assert back in [link["href"] for link in page.all("a")]
        assert "/servers" in [link["href"] for link in page.all("a")]
        assert "Error" not in page.text and text.startswith("<!DOCTYPE html>")


async def test_capability_when_mistyped_on_the_first_page_is_kept_in_the_form(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        reply = await web.request("GET", "/uri?uri=URX%3Afoo", headers=BROWSER)
        page = require_harmless(reply.text)
        assert reply.status == 400
        assert typed_into(page) == {"uri": "URX:foo"}
        saved = await web.request("GET", "/uri?uri=URX%3Afoo&filename=a.pdf&save=true", headers=BROWSER)
        assert typed_into(require_harmless(saved.text)) == {"uri": "URX:foo", "filename": "a.pdf"}


@pytest.mark.parametrize(
    ("path", "named", "kept"),
    [
        ("gone.txt", "gone.txt", ""),
        ("sub/gone.txt?t=info", "gone.txt", "sub/"),
        ("sub/gone/deep/a.txt", "gone", "sub/"),
        ("sub/?t=save&name=gone.txt", "gone.txt", "sub/"),
        ("%3Cb%3E%22", '<b>"', ""),
    ],
)
async def test_missing_name_is_said_in_plain_words_with_the_way_to_the_last_directory_that_is_there(
    tmp_path: Path, path: str, named: str, kept: str
) -> None:
    async with gateway_of_trees(tmp_path) as web:
        directory = (await web.request("POST", "/uri?t=mkdir")).text
        await web.request("PUT", f"/uri/{directory}/sub?t=mkdir")
        program = await web.get(f"/uri/{directory}/{path}")
        person = await web.request("GET", f"/uri/{directory}/{path}", headers=BROWSER)
        page = require_harmless(person.text)

        assert program.status == person.status == 404
        assert f"No such child: {html.escape(named, quote=False)}" in program.text.replace("&quot;", '"')
        assert "No such child" not in page.text
        assert f"There is nothing named “{named}” in this directory." in page.text
        assert "Look for it in the directory, or check the address." in page.text
        assert f"/uri/{quote(directory, safe='')}/{kept}" in [link["href"] for link in page.all("a")]


async def test_missing_name_of_a_form_is_said_in_plain_words(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        directory = (await web.request("POST", "/uri?t=mkdir")).text
        status, page, _ = await post(web, f"/uri/{directory}/", t="rename", from_name="gone", to_name="b")
        assert status == 404
        assert "There is nothing named “gone” in this directory." in page.text


async def test_file_that_is_lost_is_reported_in_a_page_without_class_names(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        cap = (await web.put("/uri", bytes(50_000))).text
        lose(web, cap, 3)
        program = await web.get(f"/uri/{cap}")
        person = await web.request("GET", f"/uri/{cap}", headers=BROWSER)
        assert program.status == person.status == 410
        assert program.text.startswith("NoSharesError: ")
        assert program.headers["content-type"].startswith("text/plain")
        assert "Error" not in require_harmless(person.text).text


async def test_directory_that_is_lost_is_reported_without_a_guess_about_servers_that_answered(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        cap = (await web.request("POST", "/uri?t=mkdir")).text
        lose(web, cap, 3)
        reply = await web.request("GET", f"/uri/{cap}/", headers=BROWSER)
        page = require_harmless(reply.text)
        assert "This directory cannot be read." in page.text
        assert "Error" not in page.text and "may be away" not in page.text


async def test_page_that_is_not_there_says_so_in_its_title_and_heading(tmp_path: Path) -> None:
    async with running_gateway(tmp_path) as rig:
        person = await rig.ask("GET", "/nothing", headers=BROWSER)
        program = await rig.ask("GET", "/nothing")
    assert (person.status, program.status) == (404, 404)
    assert b"<title>Not found" in person.body and b"<h1>Not found</h1>" in person.body
    assert b"<title>404 - Error" in program.body and b"<h1>Error</h1>" in program.body


@pytest.mark.parametrize("text", HOSTILE)
def test_no_message_becomes_markup(text: str) -> None:
    require_harmless(render_mistake(409, text, servers=()))


def test_commands_in_a_message_are_set_as_such() -> None:
    page = render_mistake(403, "run `grid web` here, or ask for “a`b`”", servers=())
    assert "<p>Run <code>grid web</code> here, or ask for “a`b`”.</p>" in page


def test_state_of_the_servers_is_shown_as_it_is() -> None:
    def server(name: str, connected: bool) -> ServerView:
        return ServerView(server_id=name, nickname=name, is_connected=connected, status="")

    some = render_mistake(410, "gone", servers=[server("a", True), server("b", False)])
    every = render_mistake(410, "gone", servers=[server("a", True), server("b", True)])
    assert "1 of 2 servers cannot be reached" in some
    assert "All 2 known servers are connected" in every and "back" not in every


@pytest.mark.parametrize(
    ("connected", "words"),
    [
        ((True, False), "Some servers cannot be reached; try again later."),
        ((True, True), "If you pasted a capability, check that it is complete."),
        ((), "Some servers cannot be reached; try again later."),
    ],
)
def test_visitors_learn_no_number_of_servers(connected: tuple[bool, ...], words: str) -> None:
    servers = [ServerView(server_id="s", nickname="n", is_connected=each, status="") for each in connected]
    page = render_mistake(410, "gone", servers=servers, is_visit=True)
    assert f"<p>{words}</p>" in page and "/servers" not in page and "2" not in words


@pytest.mark.parametrize(
    ("message", "shown"), [("no such child", "No such child."), ("Is it whole?", "Is it whole?"), ("a= is", "a= is.")]
)
def test_message_is_shown_as_a_sentence(message: str, shown: str) -> None:
    assert sentence(message) == shown


async def test_page_for_an_unknown_sender_has_no_navigation_and_no_way_to_what_would_be_refused(tmp_path: Path) -> None:
    async with running_gateway(tmp_path) as rig:
        refused = (await rig.ask("GET", "/", headers={**BROWSER, "Host": "grid.example"})).body.decode()
        assert f"<style>{styles()}</style>" in refused and "/assets/" not in refused.replace(styles(), "")
        name = require_harmless(refused.replace(f"<style>{styles()}</style>", ""))
        lost = require_harmless((await rig.ask("GET", "/nothing")).body.decode())
    assert "`grid config set node.web.allowed_hosts grid.example`" in name.text and "IP address" in name.text
    assert [link["href"] for link in name.all("a") if link.get("class") == "button"] == []
    for page in (name, lost):
        assert "/servers" not in [link["href"] for link in page.all("a")]


async def test_first_page_of_visitors_speaks_of_what_others_share_only(tmp_path: Path) -> None:
    async with running_gateway(tmp_path, is_read_only=True) as rig:
        visitors = (await rig.ask("GET", "/", headers=BROWSER)).body.decode()
    async with running_gateway(tmp_path) as rig:
        owners = (await rig.ask("GET", "/", headers=BROWSER)).body.decode()
    assert "that somebody shares with you" in visitors and "you or somebody else stored" not in visitors
    assert "you or somebody else stored" in owners
