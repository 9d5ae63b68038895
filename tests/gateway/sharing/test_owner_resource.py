"""`/shares`: only a browser that `grid web` opened makes share links, sees them and takes them back."""

from __future__ import annotations

import json
import time
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest

from grid.gateway.shared.home import KEY_HEADER
from grid.gateway.shared.services import AllowedHosts
from grid.node.own_files import ClientFiles, hand_over
from grid.node.share_file import ShareFile
from tests.gateway.rig import Reply, Rig, running_gateway

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


async def enter(rig: Rig, folder: Path) -> dict[str, str]:
    """The headers of a browser that `grid web` opened."""
    body = urlencode({"t": "enter", "token": hand_over(folder, time.time())}).encode()
    reply = await rig.ask("POST", "/home", body, FORM)
    return {"Cookie": reply.headers["set-cookie"].partition(";")[0], KEY_HEADER: json.loads(reply.body)["key"]}


async def post(rig: Rig, browser: dict[str, str], **fields: str) -> Reply:
    return await rig.ask("POST", "/shares", urlencode(fields).encode(), {**FORM, **browser})


async def test_link_is_made_listed_and_taken_back(tmp_path: Path) -> None:
    file = ShareFile(tmp_path)
    async with running_gateway(tmp_path, own_files=ClientFiles(tmp_path), share_links=file) as rig:
        browser = await enter(rig, tmp_path)
        cap = (await rig.ask("PUT", "/uri?t=mkdir")).body.decode()
        made = await post(rig, browser, t="create", uri=cap, name="photos", expires="30d")
        said = json.loads(made.body)
        assert made.headers["cache-control"] == "no-store"
        assert said["link"].startswith(f"http://127.0.0.1:{rig.port}/s/") and len(said["link"].rpartition("/")[2]) == 32
        (kept,) = file.read()
        assert kept.identifier == said["id"] and kept.expires == kept.created + 30 * 86400
        assert (
            kept.cap.authority == "read"
            and (await rig.ask("GET", f"{said['link'].partition(rig.host)[2]}/")).status == 200
        )

        listed = await rig.ask("GET", "/shares", headers=browser)
        assert [(each["name"], each["uses"], each["state"]) for each in json.loads(listed.body)["links"]] == [
            ("photos", 1, "open")
        ]
        token = said["link"].rpartition("/")[2]
        page = await rig.ask("GET", "/shares", headers={**browser, "Accept": "text/html"})
        for reply in (listed, page):
            assert token.encode() not in reply.body and b"URI:" not in reply.body, "never again"
        assert b"photos" in page.body and f'data-take-back="{kept.identifier}"'.encode() in page.body

        gone = await post(rig, browser, t="revoke", id=kept.identifier)
        assert json.loads(gone.body) == {"links": []} and list(file.read()) == []
        assert (await post(rig, browser, t="revoke", id=kept.identifier)).status == 404


async def test_page_of_a_new_link_shows_it_with_a_code(tmp_path: Path) -> None:
    hosts = AllowedHosts(frozenset({"127.0.0.1", "files.example"}), public="files.example")
    async with running_gateway(
        tmp_path, own_files=ClientFiles(tmp_path), share_links=ShareFile(tmp_path), hosts=hosts
    ) as rig:
        browser = {**await enter(rig, tmp_path), "Accept": "text/html"}
        cap = (await rig.ask("PUT", "/uri", b"x" * 100)).body.decode()
        made = await post(
            rig, browser, t="create", uri=cap, name="<b>", expires="never", downloads="3", password="12345678"
        )
        text = made.body.decode()
        assert f'value="http://files.example:{rig.port}/s/' in text and 'aria-label="QR code' in text
        assert "&lt;b&gt;" in text and "with a password" in text and "0 of 3 downloads" in text


async def test_form_with_all_options_makes_the_link_that_the_command_makes(tmp_path: Path) -> None:
    file = ShareFile(tmp_path)
    async with running_gateway(tmp_path, own_files=ClientFiles(tmp_path), share_links=file) as rig:
        browser = await enter(rig, tmp_path)
        cap = (await rig.ask("PUT", "/uri", b"x" * 100)).body.decode()
        empty = {"until": "", "downloads": "", "password": ""}
        assert (await post(rig, browser, t="create", uri=cap, name="a", expires="1d", **empty)).status == 200
        day = time.strftime("%Y-%m-%d", time.gmtime(time.time() + 86400))
        full = {"until": day, "downloads": "3", "password": "correct horse"}
        assert (await post(rig, browser, t="create", uri=cap, name="b", expires="1d", **full)).status == 200
        assert (await post(rig, browser, t="create", uri=cap, name="c", expires=day)).status == 200
        links = {link.name: link for link in file.read()}
        first, second, third = (links[name] for name in "abc")
        assert first.expires == first.created + 86400
        assert (first.most_downloads, first.password) == (None, None)
        assert second.expires is not None and second.expires % 86400 == 0 and second.expires > second.created + 86400
        assert third.expires == second.expires
        assert second.most_downloads == 3
        assert second.password is not None and second.password.matches("correct horse")


async def test_everybody_else_is_refused(tmp_path: Path) -> None:
    file = ShareFile(tmp_path)
    async with running_gateway(tmp_path, own_files=ClientFiles(tmp_path), share_links=file, hosts=None) as rig:
        browser = await enter(rig, tmp_path)
        cap = (await rig.ask("PUT", "/uri", b"x" * 100)).body.decode()
        fields = {"t": "create", "uri": cap}
        elsewhere = ({"X-Forwarded-For": "10.0.0.1"}, {"Host": "grid.example.com"}, {"Via": "1.1 proxy"})
        foreign = {"Origin": "http://evil.example.com", "Sec-Fetch-Site": "cross-site"}
        others = [
            {},
            *({name: browser[name]} for name in browser),
            *({**browser, **more} for more in (*elsewhere, foreign)),
        ]
        for headers in others:
            assert (await post(rig, headers, **fields)).status == 403, headers
            if headers != {**browser, **foreign}:
                assert (await rig.ask("GET", "/shares", headers=headers)).status == 403, headers
        assert list(file.read()) == []
        assert (await post(rig, browser, **fields)).status == 200


async def test_owner_shares_through_a_read_only_gateway_and_sees_the_card_there(tmp_path: Path) -> None:
    own = ClientFiles(tmp_path)
    async with running_gateway(tmp_path, own_files=own, share_links=ShareFile(tmp_path), is_read_only=True) as rig:
        browser = await enter(rig, tmp_path)
        cap = (await rig.ask("PUT", "/uri?t=mkdir", headers=browser)).body.decode()
        page = f"/uri/{quote(cap)}/?t=share"
        assert b"data-ending" in (await rig.ask("GET", page, headers=browser)).body
        assert b"data-ending" not in (await rig.ask("GET", page)).body
        assert (await post(rig, browser, t="create", uri=cap)).status == 200
        assert (await post(rig, {}, t="create", uri=cap)).status == 403


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"t": "other"},
        {"t": "create"},
        {"t": "create", "uri": "no"},
        {"t": "create", "uri": "$", "expires": "soon"},
        {"t": "create", "uri": "$", "expires": "0d"},
        {"t": "create", "uri": "$", "downloads": "0"},
        {"t": "create", "uri": "$", "downloads": "-1"},
        {"t": "create", "uri": "$", "password": "x" * 1001},
        {"t": "create", "uri": "$", "password": "short"},
        {"t": "create", "uri": "$", "until": "2020-01-01"},
        {"t": "create", "uri": "$", "until": "2030-02-30"},
        {"t": "create", "uri": "$", "until": "tomorrow"},
        {"t": "revoke"},
    ],
)
async def test_request_that_makes_no_sense_is_refused(tmp_path: Path, fields: dict[str, str]) -> None:
    file = ShareFile(tmp_path)
    async with running_gateway(tmp_path, own_files=ClientFiles(tmp_path), share_links=file) as rig:
        browser = await enter(rig, tmp_path)
        cap = (await rig.ask("PUT", "/uri", b"x" * 100)).body.decode()
        reply = await post(rig, browser, **{name: value.replace("$", cap) for name, value in fields.items()})
        assert reply.status == 400 and list(file.read()) == []
        assert b"URI:" not in reply.body


async def test_gateway_without_a_place_for_links_says_so(tmp_path: Path) -> None:
    async with running_gateway(tmp_path, own_files=ClientFiles(tmp_path)) as rig:
        browser = await enter(rig, tmp_path)
        cap = (await rig.ask("PUT", "/uri", b"x" * 100)).body.decode()
        reply = await post(rig, browser, t="create", uri=cap)
        assert reply.status == 503 and b"no client directory" in reply.body
        assert b"data-ending" not in (await rig.ask("GET", f"/uri/{quote(cap)}?t=share", headers=browser)).body
