"""The client's own part of the first page, over HTTP: only for a browser that `grid web` opened, on this machine."""

from __future__ import annotations

import json
import time
from pathlib import Path
from urllib.parse import quote

import pytest

from grid.caps import DirectoryCap, SdmfWriteCap
from grid.gateway.shared.home import KEY_HEADER
from grid.node.own_files import HANDED_OVER, ClientFiles, hand_over
from tests.gateway.rig import Reply, Rig, running_gateway

WORK = DirectoryCap(SdmfWriteCap(write_key=b"w" * 16, fingerprint=b"f" * 32)).to_string()
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


async def enter(rig: Rig, token: str, **more: str) -> Reply:
    return await rig.ask("POST", "/home", f"t=enter&token={quote(token)}".encode(), {**FORM, **more})


def secrets_of(reply: Reply) -> dict[str, str]:
    """The headers that a script of the page sends from then on."""
    return {"Cookie": reply.headers["set-cookie"].partition(";")[0], KEY_HEADER: json.loads(reply.body)["key"]}


async def test_browser_with_the_token_sees_aliases_and_its_uploads_until_it_leaves(tmp_path: Path) -> None:
    (tmp_path / "aliases").write_text(f"work: {WORK}\n")
    token = hand_over(tmp_path, time.time())
    async with running_gateway(tmp_path, own_files=ClientFiles(tmp_path)) as rig:
        assert (await enter(rig, "wrong")).status == 403
        reply = await enter(rig, token)
        name, _, attributes = reply.headers["set-cookie"].partition("=")
        assert name == f"grid-home-{rig.port}" and attributes.endswith("; Path=/; HttpOnly; SameSite=Lax")
        assert reply.headers["cache-control"] == "no-store"
        assert (await enter(rig, token)).status == 403 and not (tmp_path / HANDED_OVER).exists()

        browser = secrets_of(reply)
        await rig.ask("PUT", "/uri", b"a stranger's file, without the cookie")
        cap = (await rig.ask("PUT", "/uri?filename=my+%3Cb%3E.txt", b"my own file", browser)).body.decode()
        found = await rig.ask("GET", "/home", headers=browser)
        text = found.body.decode()
        assert found.status == 200 and found.headers["cache-control"] == "no-store"
        assert quote(WORK, safe="") in text and "my &lt;b&gt;.txt" in text and cap in text
        assert text.count("data-copy") == 1
        assert WORK not in (await rig.ask("GET", "/", headers=browser)).body.decode(), "the first page itself has none"

        left = await rig.ask("POST", "/home", b"t=leave", {**FORM, **browser})
        assert left.status == 200 and "Max-Age=0" in left.headers["set-cookie"]
        assert (await rig.ask("GET", "/home", headers=browser)).status == 403


async def test_part_is_refused_without_both_secrets_and_to_requests_from_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "aliases").write_text(f"work: {WORK}\n")
    async with running_gateway(tmp_path, own_files=ClientFiles(tmp_path), hosts=None) as rig:
        token = hand_over(tmp_path, time.time())
        for more in ({"X-Forwarded-For": "10.0.0.1"}, {"Host": "grid.example.com"}, {"Via": "1.1 proxy"}):
            assert (await enter(rig, token, **more)).status == 403, more
            assert (tmp_path / HANDED_OVER).exists(), "a refusal spends no token"
        browser = secrets_of(await enter(rig, token))
        assert (await rig.ask("GET", "/home", headers=browser)).status == 200
        for without in browser:
            headers = {name: value for name, value in browser.items() if name != without}
            refused = await rig.ask("GET", "/home", headers=headers)
            assert refused.status == 403 and WORK.encode() not in refused.body
        for more in ({"X-Forwarded-For": "10.0.0.1"}, {"Host": "grid.example.com"}):
            assert (await rig.ask("GET", "/home", headers={**browser, **more})).status == 403
        foreign = {**browser, "Origin": "http://evil.example.com", "Sec-Fetch-Site": "cross-site"}
        assert (await rig.ask("POST", "/home", b"t=leave", {**FORM, **foreign})).status == 403
        assert (await rig.ask("GET", "/home", headers=browser)).status == 200


@pytest.mark.parametrize("body", [b"", b"t=other", b"t=enter"])
async def test_gateway_without_a_client_directory_lets_nobody_in(tmp_path: Path, body: bytes) -> None:
    async with running_gateway(tmp_path) as rig:
        assert (await rig.ask("POST", "/home", body, FORM)).status in (400, 403)
        assert (await rig.ask("GET", "/home")).status == 403


async def test_operations_are_named_only_for_the_browser_that_grid_web_opened(tmp_path: Path) -> None:
    token = hand_over(tmp_path, time.time())
    async with running_gateway(tmp_path, own_files=ClientFiles(tmp_path)) as rig:
        root = (await rig.ask("PUT", "/uri?t=mkdir")).body.decode().strip()
        (tmp_path / "aliases").write_text(f"work: {root}\n")
        address = f"/uri/{quote(root, safe='')}"
        await rig.ask("PUT", f"{address}/secret%20name.txt", b"x" * 5000)
        browser = secrets_of(await enter(rig, token))
        await rig.ask("GET", "/home", headers=browser)

        stranger, own = [(await rig.ask("GET", "/status", headers=sent)).body.decode() for sent in ({}, browser)]
        assert "secret name" not in stranger and "work:" not in stranger and "a directory" in stranger
        assert "secret name.txt" in own and "work:" in own
        one = [(await rig.ask("GET", "/status/up-0", headers=sent)).body.decode() for sent in ({}, browser)]
        assert ["secret name.txt" in text for text in one] == [False, True]
        for address in ("/status?t=json", "/status/up-0?t=json", "/statistics?t=json", "/metrics"):
            assert b"secret name" not in (await rig.ask("GET", address, headers=browser)).body
