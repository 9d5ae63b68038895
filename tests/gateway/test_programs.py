"""Requests of programs written for 1.20 where the specification leaves room: addresses, pages, JSON labels, old HTTP."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote

import pytest

from grid.errors import ConflictError
from grid.gateway.faults import BadRequest, fault_of
from grid.gateway.http.answers import fault_answer
from grid.gateway.http.arguments import Arguments, parse_query
from tests.gateway.rig import TOKEN, running_gateway
from tests.gateway.trees import gateway_of_trees
from tests.support.web_gateway import web_gateway

DELETED = {"content": ["filenode", {"ro_uri": None, "metadata": {"a": 1}}]}
URLENCODED = "application/x-www-form-urlencoded"


async def test_path_when_it_begins_with_several_slashes_then_they_count_as_one(tmp_path: Path) -> None:
    async with web_gateway(tmp_path) as web:
        cap = (await web.put("//uri", b"x" * 100)).text
        for address in (f"//uri/{quote(cap, safe='')}", f"///file/{quote(cap, safe='')}/name"):
            assert (await web.get(address)).body == b"x" * 100
        assert "servers" in json.loads((await web.get("//?t=json")).body)
        assert "counters" in json.loads((await web.get("///statistics?t=json")).body)
        assert (await web.get("//nowhere")).status == 404


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "POST", "DELETE"])
@pytest.mark.parametrize(
    ("address", "location"),
    [
        ("/uri/", "/uri"),
        ("/uri//?t=mkdir", "/uri?t=mkdir"),
        ("/uri//URI%3ALIT%3Aorsxg5a?t=json&a=%20", "/uri/URI%3ALIT%3Aorsxg5a?t=json&a=%20"),
        ("//cap///URI%3ALIT%3Aorsxg5a", "/cap/URI%3ALIT%3Aorsxg5a"),
        ("//uri//example.org/", "/uri/example.org/"),
    ],
)
async def test_path_when_a_segment_behind_uri_is_empty_then_leads_to_the_one_without_it(
    tmp_path: Path, method: str, address: str, location: str
) -> None:
    async with web_gateway(tmp_path) as web:
        reply = await web.request(method, address)
        assert (reply.status, reply.headers["location"]) == (302, location)


async def test_log_when_its_path_begins_with_two_slashes_then_is_a_socket(tmp_path: Path) -> None:
    headers = {
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        "Authorization": f"tahoe-lafs {TOKEN.decode()}",
    }
    async with running_gateway(tmp_path) as rig:
        wire = await rig.connect()
        lines = [f"{name}: {value}" for name, value in {"Host": f"127.0.0.1:{rig.port}", **headers}.items()]
        wire.send("\r\n".join(["GET //private/logs/v1 HTTP/1.1", *lines, "", ""]).encode())
        while b"\r\n\r\n" not in wire.received:
            await wire.more()
        assert wire.received.startswith(b"HTTP/1.1 101 ")


@pytest.mark.parametrize(
    "kind", ["application/json", URLENCODED, f"{URLENCODED}; charset=utf-8", "multipart/form-data"]
)
async def test_children_when_json_comes_under_any_label_then_they_are_made(tmp_path: Path, kind: str) -> None:
    headers = {"Content-Type": kind}
    body = json.dumps(DELETED).encode()
    async with gateway_of_trees(tmp_path) as web:
        cap = ""
        for t in ("mkdir-immutable", "mkdir-with-children"):
            cap = (await web.request("POST", f"/uri?t={t}", body, headers)).text
            listed = json.loads((await web.get(f"/uri/{quote(cap, safe='')}?t=json")).body)[1]["children"]
            assert listed == {"content": ["unknown", {"metadata": {"a": 1}}]}
        folder = f"/uri/{quote(cap, safe='')}"
        assert (
            await web.request("POST", f"{folder}?t=set_children", body.replace(b"content", b"b"), headers)
        ).status == 200
        assert (await web.request("POST", f"{folder}?t=mkdir-immutable&name=sub", body, headers)).status == 200
        by_itself = json.loads((await web.get(f"{folder}/b?t=json")).body)
        assert by_itself[0] == "unknown" and by_itself[1]["mutable"] is False and "ro_uri" not in by_itself[1]
        page = await web.get(folder)
        assert page.status == 200 and b"content" in page.body
        assert (await web.request("POST", f"{folder}?t=relink&from_name=b&to_name=c")).status == 200
        walked = (await web.request("POST", f"{folder}?t=stream-deep-check")).text.splitlines()
        assert [json.loads(line)["cap"] for line in walked if '"unknown"' in line] == [None, None, None]


async def test_children_when_t_is_in_a_form_then_are_refused_with_a_hint(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        reply = await web.post_form("/uri", {"t": "mkdir-with-children"})
        assert (reply.status, reply.text) == (400, "children are sent as JSON: put t= in the URL, not in the form\n")


@pytest.mark.parametrize("path", ["/", "/statistics", "/helper_status"])
async def test_page_of_the_node_when_posted_to_then_answers_as_to_get(tmp_path: Path, path: str) -> None:
    async with running_gateway(tmp_path) as rig:
        for body, kind in ((b"", None), (b"t=json", URLENCODED)):
            query = "" if body else "?t=json"
            reply = await rig.ask("POST", f"{path}{query}", body, {"Content-Type": kind} if kind else {})
            assert reply.status == 200 and isinstance(json.loads(reply.body), dict)
        assert b"<html" in (await rig.ask("POST", path)).body
        foreign = await rig.ask("POST", path, b"", {"Origin": "http://example.org"})
        assert foreign.status == 403


async def test_request_when_http_1_0_has_no_host_then_is_answered(tmp_path: Path) -> None:
    async with running_gateway(tmp_path) as rig:
        for method in ("GET", "OPTIONS"):
            wire = await rig.connect()
            wire.send(f"{method} / HTTP/1.0\r\n\r\n".encode())
            assert (await wire.reply()).status == 200
        wire = await rig.connect()
        wire.send(b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n")
        assert (await wire.reply()).status == 400
        wire = await rig.connect()
        wire.send(b"POST /uri?t=mkdir HTTP/1.0\r\nOrigin: http://example.org\r\n\r\n")
        assert (await wire.reply()).status == 403


async def test_directory_when_its_head_is_asked_for_then_any_view_has_one(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        folder = f"/uri/{quote((await web.request('POST', '/uri?t=mkdir')).text, safe='')}"
        for t in ("", "json", "uri", "readonly-uri", "info", "rename-form"):
            promised, answer = await web.request("HEAD", f"{folder}?t={t}"), await web.get(f"{folder}?t={t}")
            assert promised.status == answer.status == 200
            assert promised.headers["content-type"] == answer.headers["content-type"]
        assert (await web.request("HEAD", f"{folder}?t=nothing")).status == 400


async def test_link_when_its_name_is_empty_then_is_refused(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        folder = f"/uri/{quote((await web.request('POST', '/uri?t=mkdir')).text, safe='')}"
        assert (await web.request("POST", f"{folder}?t=uri&name=&uri=URI:LIT:")).status == 400


def test_argument_when_it_is_not_utf_8_then_only_its_use_is_refused() -> None:
    arguments = Arguments(parse_query(b"name=%ff&t=json&%ff=1"))
    assert arguments.t == "json"
    assert arguments.shown("name") == "\ufffd"
    for use in (arguments.text, arguments.required):
        with pytest.raises(BadRequest):
            use("name")


def test_lost_race_when_reported_has_the_name_from_1_20_on_its_own_line() -> None:
    answer = fault_answer(fault_of(ConflictError("somebody else changed it")))
    assert (answer.status, answer.body) == (409, b"somebody else changed it\nUncoordinatedWriteError\n")
    page = fault_answer(fault_of(ConflictError("somebody else changed it"), shape="page"))
    assert b"UncoordinatedWriteError" in page.body
