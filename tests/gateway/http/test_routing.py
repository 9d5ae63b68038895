"""A read-only gateway: visitors open what their capabilities lead to and nothing else; `grid web` opens it whole."""

from __future__ import annotations

import json
import time
from pathlib import Path
from urllib.parse import quote

import pytest
from attrs import evolve

from grid.gateway.http.answers import Answer, AnyAnswer
from grid.gateway.http.exchange import Exchange
from grid.gateway.shared.home import KEY_HEADER
from grid.node.own_files import ClientFiles, hand_over
from tests.gateway.rig import TOKEN, Rig, running_gateway

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
BROWSER = {"Accept": "text/html"}


async def opened(rig: Rig, folder: Path) -> dict[str, str]:
    """The headers of a browser that `grid web` opened."""
    reply = await rig.ask("POST", "/home", f"t=enter&token={hand_over(folder, time.time())}".encode(), FORM)
    assert reply.status == 200
    return {"Cookie": reply.headers["set-cookie"].partition(";")[0], KEY_HEADER: json.loads(reply.body)["key"]}


async def make_album(rig: Rig, owner: dict[str, str]) -> str:
    """The address of a new directory with a file, by its write capability."""
    cap = (await rig.ask("POST", "/uri?t=mkdir", b"", owner)).body.decode()
    address = f"/uri/{quote(cap, safe='')}"
    assert (await rig.ask("PUT", f"{address}/a.jpg", b"x" * 1000, owner)).status == 201
    return address


@pytest.fixture
def own(tmp_path: Path) -> ClientFiles:
    return ClientFiles(tmp_path)


async def test_visitors_read_and_change_nothing_even_with_a_write_capability(tmp_path: Path, own: ClientFiles) -> None:
    async with running_gateway(tmp_path, own_files=own, is_read_only=True) as rig:
        owner = await opened(rig, tmp_path)
        album = await make_album(rig, owner)

        assert (await rig.ask("GET", f"{album}/a.jpg")).body == b"x" * 1000
        assert json.loads((await rig.ask("GET", f"{album}?t=json")).body)[0] == "dirnode"
        changes = [
            ("PUT", "/uri", b"spam"),
            ("POST", "/uri?t=mkdir", b""),
            ("PUT", f"{album}/b.jpg", b"spam"),
            ("DELETE", f"{album}/a.jpg", b""),
            ("POST", f"{album}/?t=unlink&name=a.jpg", b""),
            ("POST", f"{album}/?t=check", b""),
            ("POST", f"{album}/?t=start-deep-check&ophandle=1", b""),
            ("POST", f"{album}/", b"t=zip"),
            ("POST", f"{album}/?t=rename&from_name=a.jpg&to_name=b.jpg", b""),
            ("POST", "/uploads", b""),
            ("PATCH", "/uploads/1", b"spam"),
            ("PUT", "/%75ri", b"spam"),
            ("PUT", "//uri", b"spam"),
            ("GET", f"{album}/?t=rename-form&name=a.jpg", b""),
            ("HEAD", f"{album}/?t=rename-form&name=a.jpg", b""),
        ]
        for method, address, body in changes:
            assert (await rig.ask(method, address, body, FORM if method == "POST" else {})).status == 403, address
        assert (await rig.ask("GET", f"{album}/?t=rename-form&name=a.jpg", headers=owner)).status == 200
        assert (await rig.ask("HEAD", f"{album}/")).status == 200
        assert (await rig.ask("HEAD", f"{album}/a.jpg")).status == 200
        assert (await rig.ask("GET", f"{album}/b.jpg")).status == 404


async def test_form_field_cannot_turn_an_archive_into_a_change(tmp_path: Path, own: ClientFiles) -> None:
    async with running_gateway(tmp_path, own_files=own, is_read_only=True) as rig:
        album = await make_album(rig, await opened(rig, tmp_path))
        reply = await rig.ask("POST", f"{album}/?t=zip", b"t=unlink&name=a.jpg", FORM)
        assert reply.status == 200 and reply.headers["content-type"] == "application/zip"
        multipart = {"Content-Type": "multipart/form-data; boundary=b"}
        assert (await rig.ask("POST", f"{album}/?t=zip", b"--b--\r\n", multipart)).status == 403
        assert (await rig.ask("GET", f"{album}/a.jpg")).status == 200


async def test_visitors_learn_nothing_of_the_node(tmp_path: Path, own: ClientFiles) -> None:
    async with running_gateway(tmp_path, own_files=own, is_read_only=True) as rig:
        owner = await opened(rig, tmp_path)
        shown = dict.fromkeys(
            ("/servers", "/status", "/statistics", "/metrics", "/?t=json", "/openapi.json", "/%73ervers", "//status"),
            200,
        )
        for address, status in {**shown, "/operations/1": 404, "/static/x": 404, "/storage": 200}.items():
            assert (await rig.ask("GET", address)).status == 403, address
            assert (await rig.ask("HEAD", address)).status == 403, address
            assert (await rig.ask("GET", address, headers=owner)).status == status, address
        assert (await rig.ask("GET", "/healthz")).status == 200
        assert json.loads((await rig.ask("GET", "/readyz")).body) == {"ready": False}
        assert json.loads((await rig.ask("GET", "/readyz", headers=owner)).body)["known"] == 0
        page = (await rig.ask("GET", "/servers", headers=BROWSER)).body.decode()
        assert "shows visitors files and directories only" in page and 'href="/status"' not in page
        assert "run <code>grid web</code> on its machine" in page
        assert "run `grid web` on its machine" in (await rig.ask("PUT", "/uri", b"x")).body.decode()


async def test_cookie_opens_a_read_only_gateway_on_its_machine_only(tmp_path: Path, own: ClientFiles) -> None:
    seen: list[Exchange] = []

    async def see(exchange: Exchange) -> AnyAnswer:
        seen.append(exchange)
        return Answer(200, "")

    async with running_gateway(tmp_path, {"seen": see}, own_files=own, is_read_only=True, hosts=None) as rig:
        owner = await opened(rig, tmp_path)
        assert (await rig.ask("PUT", "/uri", b"mine", owner)).status == 200
        for more in ({"X-Forwarded-For": "127.0.0.1"}, {"Via": "1.1 proxy"}, {"Host": f"grid.example.com:{rig.port}"}):
            assert (await rig.ask("PUT", "/uri", b"spam", {**owner, **more})).status == 403, more
        assert (await rig.ask("GET", "/seen", headers=owner)).status == 200
    (exchange,) = seen
    assert not exchange.is_visit
    assert evolve(exchange, peer="192.0.2.7").is_visit and evolve(exchange, peer="").is_visit


async def test_log_of_a_read_only_gateway_needs_its_token_and_nothing_else(tmp_path: Path, own: ClientFiles) -> None:
    async with running_gateway(tmp_path, own_files=own, is_read_only=True) as rig:
        token = {"Authorization": f"tahoe-lafs {TOKEN.decode()}"}
        assert (await rig.ask("GET", "/private/logs/v1")).status == 401
        assert (await rig.ask("POST", "/private/logs/v1")).status == 401
        assert (await rig.ask("GET", "/private/logs/v1", headers=token)).status == 400, "it is no WebSocket"


async def test_page_held_from_before_a_browser_was_known_is_not_shown_on(tmp_path: Path, own: ClientFiles) -> None:
    async with running_gateway(tmp_path, own_files=own, is_read_only=True) as rig:
        owner = await opened(rig, tmp_path)
        file = (await rig.ask("PUT", "/uri", b"x" * 1000, owner)).body.decode()
        children = json.dumps({"a.jpg": ["filenode", {"ro_uri": file, "metadata": {}}]}).encode()
        cap = (await rig.ask("POST", "/uri?t=mkdir-immutable", children, owner)).body.decode()
        assert cap.startswith("URI:DIR2-CHK:")
        address = f"/uri/{quote(cap, safe='')}"
        whole, visit = [(await rig.ask("GET", f"{address}/", headers=more)).headers["etag"] for more in (owner, {})]
        assert whole != visit
        for more, held, status in ((owner, whole, 304), (owner, visit, 200), ({}, visit, 304), ({}, whole, 200)):
            assert (await rig.ask("GET", f"{address}/", headers={**more, "If-None-Match": held})).status == status
        listed = [(await rig.ask("GET", f"{address}?t=json", headers=more)).headers["etag"] for more in (owner, {})]
        assert listed[0] == listed[1]


async def test_visitors_name_nothing_on_the_owners_pages(tmp_path: Path, own: ClientFiles) -> None:
    async with running_gateway(tmp_path, own_files=own, is_read_only=True) as rig:
        owner = await opened(rig, tmp_path)
        file = quote((await rig.ask("PUT", "/uri", b"x" * 1000, owner)).body.decode(), safe="")
        for view in ("", "&t=info", "&t=json"):
            assert (await rig.ask("GET", f"/uri/{file}?filename=planted.txt{view}")).status == 200
        assert "planted.txt" not in (await rig.ask("GET", "/status", headers=owner)).body.decode()
        assert (await rig.ask("GET", f"/uri/{file}?filename=chosen.txt", headers=owner)).status == 200
        assert "chosen.txt" in (await rig.ask("GET", "/status", headers=owner)).body.decode()


async def test_pages_offer_visitors_only_what_they_may_do(tmp_path: Path, own: ClientFiles) -> None:
    async with running_gateway(tmp_path, own_files=own, is_read_only=True) as rig:
        owner = await opened(rig, tmp_path)
        album = await make_album(rig, owner)
        for address in ("/", f"{album}/", f"{album}/a.jpg?t=info", f"{album}/?t=info"):
            visit = (await rig.ask("GET", address, headers=BROWSER)).body.decode()
            whole = (await rig.ask("GET", address, headers={**BROWSER, **owner})).body.decode()
            for part in ('href="/status"', 'value="check"', 'type="file"', "start-deep-check", 'value="mkdir"'):
                assert part not in visit, (address, part)
            assert 'href="/status"' in whole
        assert "Read only" in (await rig.ask("GET", f"{album}/", headers=BROWSER)).body.decode()


async def test_other_gateways_let_everybody_store(tmp_path: Path) -> None:
    async with running_gateway(tmp_path) as rig:
        assert (await rig.ask("PUT", "/uri", b"welcome")).status == 200


async def test_directory_shows_the_name_in_its_address_and_passes_it_on(tmp_path: Path) -> None:
    async with running_gateway(tmp_path) as rig:
        album = await make_album(rig, {})
        page = (await rig.ask("GET", f"{album}/?filename=Oma%20%3Cb%3E")).body.decode()
        assert "<title>Oma &lt;b&gt; · Grid</title>" in page and ">Directory<" not in page
        assert "t=zip&amp;filename=Oma+%3Cb%3E" in page
        shared = (await rig.ask("GET", f"{album}/?t=share&filename=Oma%20%3Cb%3E")).body.decode()
        assert "/?filename=Oma+%3Cb%3E" in shared
