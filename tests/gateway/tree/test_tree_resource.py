"""Directories by their capabilities and by paths, over real sockets. [spec webapi 3, 5]"""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pytest
from twisted.internet.defer import Deferred, gatherResults

from grid.caps import DirectoryCap, LitCap, UnknownCap, parse_cap
from tests.gateway.trees import gateway_of_trees
from tests.support.web_gateway import Reply, WebGateway

LIT = LitCap(data=b"some").to_string()
OTHER = LitCap(data=b"other").to_string()
JSON = {"Content-Type": "application/octet-stream"}


async def make(web: WebGateway, t: str = "mkdir") -> str:
    """The path of a new directory."""
    reply = await web.request("POST", f"/uri?t={t}")
    assert (reply.status, reply.headers["content-type"]) == (200, "text/html")
    assert isinstance(parse_cap(reply.text), DirectoryCap)
    return f"/uri/{quote(reply.text, safe='')}"


async def post(web: WebGateway, target: str, body: bytes = b"") -> Reply:
    return await web.request("POST", target, body, JSON if body else None)


async def listing(web: WebGateway, folder: str) -> dict[str, Any]:
    """The children as t=json has them."""
    reply = await web.get(f"{folder}?t=json")
    assert (reply.status, reply.headers["content-type"]) == (200, "text/plain")
    kind, properties = json.loads(reply.text)
    assert kind == "dirnode" and reply.text.endswith("\n")
    return dict(properties["children"])


async def test_path_when_last_name_is_also_in_the_middle_then_all_of_it_is_made(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        folder = await make(web)
        reply = await web.put(f"{folder}/x/y/x", b"contents")
        assert reply.status == 201
        assert (await web.get(f"{folder}/x/y/x")).body == b"contents"
        assert list(await listing(web, folder)) == ["x"]
        assert (await web.put(f"{folder}/x/y/x", b"other")).status == 200
        assert (await web.get(f"{folder.replace('/uri/', '/cap/')}/x/y/x?t=uri")).text == LitCap(
            data=b"other"
        ).to_string()


@pytest.mark.parametrize("cap", ["URI:DIR2:aaaa:bbbb", "URI:CHK:secretsecret", "nonsensesecret", "URI:FUTURE:secret"])
@pytest.mark.parametrize(("method", "status"), [("GET", 400), ("HEAD", 400), ("DELETE", 400), ("PUT", 409)])
async def test_path_below_an_invalid_capability_blames_the_capability(
    tmp_path: Path, cap: str, method: str, status: int
) -> None:
    async with gateway_of_trees(tmp_path) as web:
        reply = await web.request(method, f"/uri/{quote(cap, safe='')}/a/b")
        assert reply.status == status
        assert ("the capability before the path is not valid" in unescape(reply.text)) is (method != "HEAD")
        assert "leads through" not in reply.text and "secret" not in reply.text and "aaaa" not in reply.text


async def test_target_of_a_move_that_is_no_capability_is_named_as_that(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        folder = await make(web)
        assert (await web.put(f"{folder}/a", b"contents")).status == 201
        reply = await post(web, f"{folder}?t=relink&from_name=a&to_dir=secret/b")
        assert reply.status == 400 and "the capability in to_dir= is not valid" in reply.text
        assert "secret" not in reply.text


@pytest.mark.parametrize(
    ("method", "rest", "status"),
    [
        ("PUT", "/new/", 400),
        ("PUT", "/new/a?t=bogus", 400),
        ("PUT", "/new/a?format=bogus", 400),
        ("PUT", "/new/a?replace=bogus", 400),
        ("PUT", "/new/a?t=uri", 400),
        ("PUT", "/new/a?offset=7", 400),
        ("PUT", "/new//a", 400),
        ("POST", "/new/a?t=upload", 404),
        ("POST", "/new/a?t=bogus", 400),
        ("POST", "/new/a", 400),
        ("POST", "/new/a?t=mkdir-with-children", 400),
        ("POST", "/new/a?t=mkdir&format=bogus", 400),
        ("POST", "/new/a?t=check", 404),
        ("GET", "/new", 404),
        ("GET", "/new/a?t=json", 404),
        ("HEAD", "/new", 404),
        ("DELETE", "/new/a", 404),
    ],
)
async def test_request_when_it_cannot_be_done_then_nothing_is_made_on_its_path(
    tmp_path: Path, method: str, rest: str, status: int
) -> None:
    async with gateway_of_trees(tmp_path) as web:
        folder = await make(web)
        body = b"not json" if method != "GET" and "uri" not in rest else b""
        assert (await web.request(method, folder + rest, body, JSON)).status == status
        assert await listing(web, folder) == {}


async def test_path_when_it_leads_through_a_file_then_that_is_a_conflict_for_what_makes(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        folder = await make(web)
        assert (await web.put(f"{folder}/file", b"x")).status == 201
        for method, t, status in [
            ("PUT", "", 409), ("POST", "mkdir", 409), ("POST", "rename", 400), ("GET", "", 400), ("DELETE", "", 400),
        ]:  # fmt: skip
            reply = await web.request(method, f"{folder}/file/more?t={t}")
            assert (reply.status, reply.headers["content-type"]) == (status, "text/html; charset=utf-8"), method
        assert (await web.get(f"{folder}/file/")).status == 400
        assert (await web.request("DELETE", f"{folder}/file/")).status == 400


async def test_mkdir_when_at_a_path_then_existing_entries_stay(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        folder = await make(web)
        made = await web.put(f"{folder}/a/b?t=mkdir")
        assert (made.status, made.headers["content-type"]) == (200, "text/plain")
        again = await post(web, f"{folder}/a/b?t=mkdir")
        assert (again.text, again.headers["content-type"]) == (made.text, "text/html")
        mdmf = await post(web, f"{folder}/c?t=mkdir&format=mdmf")
        assert mdmf.text.startswith("URI:DIR2-MDMF:")
        children = json.dumps({"x": ["filenode", {"ro_uri": LIT, "metadata": {"k": 1}}]}).encode()
        first = await post(web, f"{folder}/d/e?t=mkdir-with-children", children)
        assert (await post(web, f"{folder}/d/e?t=mkdir-with-children")).text == first.text
        assert (await listing(web, f"{folder}/d/e"))["x"][1]["metadata"] == {"k": 1}
        fixed = await post(web, f"{folder}/f?t=mkdir-immutable", children)
        assert fixed.text.startswith("URI:DIR2-")
        assert (await web.get(f"{folder}/f/x")).body == b"some"
        assert (await post(web, f"{folder}/f?t=unlink&name=x")).status == 403
        assert list(await listing(web, folder)) == ["a", "c", "d", "f"]


async def test_mkdir_when_named_then_an_old_child_goes_or_is_in_the_way(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        folder = await make(web)
        first = await post(web, f"{folder}/?t=mkdir&name=sub")
        second = await post(web, f"{folder}?t=mkdir&name=sub")
        assert first.status == second.status == 200 and first.text != second.text
        for rest in ("mkdir&name=sub&replace=false", "mkdir-with-children&name=sub", "mkdir-immutable&name=sub"):
            assert (await post(web, f"{folder}?t={rest}")).status == 409
        assert (await post(web, f"{folder}?t=mkdir&name=sub&replace=only-files")).status == 400
        assert (await listing(web, folder))["sub"][1]["rw_uri"] == second.text
        made = await post(web, f"{folder}/new/er?t=mkdir&name=last")
        assert (await web.get(f"{folder}/new/er/last?t=uri")).text == made.text


async def test_mkdir_when_unlinked_then_forms_and_formats_are_as_they_should(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        assert (await post(web, "/uri?t=mkdir-immutable")).text == "URI:DIR2-LIT:"
        assert (await web.put("/uri?t=mkdir&format=MDMF")).text.startswith("URI:DIR2-MDMF:")
        assert (await web.put("/uri?t=mkdir&format=CHK")).status == 400
        assert (await post(web, "/uri?t=mkdir", b"body")).status == 400
        assert (await post(web, "/uri?t=mkdir-with-children", b"[]")).status == 400
        assert (await web.post_form("/uri?t=mkdir-with-children", {"name": "x"})).status == 400
        assert (await post(web, "/uri?t=mkdir&private-key=nonsense")).status == 400
        sent = await web.post_form("/uri", {"t": "mkdir", "redirect_to_result": "true", "format": "sdmf"})
        assert (sent.status, sent.body) == (303, b"")
        assert sent.headers["location"].startswith("uri/URI%3ADIR2%3A")
        mutable = json.dumps({"x": ["dirnode", {"rw_uri": (await web.put("/uri?t=mkdir")).text}]}).encode()
        refused = await post(web, "/uri?t=mkdir-immutable", mutable)
        assert refused.status == 400 and refused.text.startswith("MustBeDeepImmutableError: ")


async def test_link_when_made_then_metadata_follows_the_rules(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        folder = await make(web)
        linked = await post(web, f"{folder}?t=uri&name=a&uri={quote(LIT)}")
        assert (linked.status, linked.text) == (200, LIT)
        noted = (await listing(web, folder))["a"][1]["metadata"]["tahoe"]
        assert noted["linkcrtime"] == noted["linkmotime"]
        given = {"a": ["x", {"ro_uri": OTHER, "metadata": {"mine": 1, "tahoe": {"linkcrtime": 0}}}]}
        assert (await post(web, f"{folder}?t=set_children", json.dumps(given).encode())).text == "Okay so I did it."
        after = (await listing(web, folder))["a"][1]
        assert (after["ro_uri"], after["metadata"]["mine"]) == (OTHER, 1)
        assert after["metadata"]["tahoe"]["linkcrtime"] == noted["linkcrtime"]
        moved = await post(web, f"{folder}?t=rename&from_name=a&to_name=b")
        assert (moved.status, moved.text) == (200, "thing moved")
        assert (await listing(web, folder))["b"][1]["metadata"]["mine"] == 1
        refused = await post(web, f"{folder}?t=set-children&replace=false", json.dumps({"b": given["a"]}).encode())
        assert refused.status == 409
        assert (await post(web, f"{folder}?t=unlink&name=b")).text == "thing unlinked"
        assert (await post(web, f"{folder}?t=unlink&name=b")).status == 404


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("uri&name=a", 400),
        (f"uri&uri={quote(LIT)}", 400),
        ("uri&name=b&uri=", 400),
        ("uri&name=b&uri=lafs://future", 400),
        (f"uri&name=a&uri={quote(OTHER)}&replace=false", 409),
        (f"uri&name=sub&uri={quote(OTHER)}&replace=only-files", 409),
        ("rename&from_name=a", 400),
        ("rename&from_name=a&to_name=b/c", 400),
        ("rename&from_name=a&to_name=b&to_dir=x", 400),
        ("rename&from_name=nothing&to_name=b", 404),
        ("rename&from_name=a&to_name=sub&replace=false", 409),
        ("rename&from_name=a&to_name=a", 200),
        ("relink&from_name=a&to_dir=nonsense", 400),
        ("relink&from_name=a&to_dir=SELF/nothing", 404),
        ("relink&from_name=a&to_dir=SELF/a", 400),
        ("relink&from_name=sub&to_dir=SELF/sub", 400),
        ("relink&from_name=a&to_dir=SELF/sub", 200),
        ("relink&from_name=a&to_dir=SELF/sub&to_name=c", 200),
        ("unlink", 404),
        ("set_children", 400),
        ("upload&name=x", 400),
        ("bogus", 400),
        ("start-manifest", 400),
        ("check&output=bogus", 400),
        (f"uri&name=c&uri={quote(LIT)}&when_done=https://example.org/", 400),
        (f"uri&name=c&uri={quote(LIT)}&when_done=/", 302),
    ],
)
async def test_change_when_asked_for_then_has_the_status_it_should(tmp_path: Path, query: str, status: int) -> None:
    async with gateway_of_trees(tmp_path) as web:
        folder = await make(web)
        await web.put(f"{folder}/a?t=uri", LIT.encode())
        await web.put(f"{folder}/sub?t=mkdir")
        reply = await post(web, f"{folder}?t={query.replace('SELF', folder.removeprefix('/uri/'))}")
        assert reply.status == status
        if status >= 400:
            assert {"a", "sub"} == set(await listing(web, folder))
            assert "URI:" not in reply.text


async def test_directory_when_relinked_below_itself_then_is_refused_by_any_name(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        folder = await make(web)
        for path in ("a/b/c", "side"):
            await web.put(f"{folder}/{path}?t=mkdir")
        await web.put(f"{folder}/again?t=uri", (await web.get(f"{folder}/a?t=uri")).body)
        inner = {name: (await web.get(f"{folder}/{name}?t=uri")).text for name in ("a", "a/b", "a/b/c", "side")}
        root = unquote(folder.removeprefix("/uri/"))
        below = [f"{root}/a", f"{root}/a/b/c", f"{root}/again/b", inner["a"], inner["a/b"], f"{inner['a/b']}/c"]
        for target in below:
            reply = await post(web, f"{folder}?t=relink&from_name=a&to_name=x&to_dir={quote(target)}")
            assert (reply.status, "below it" in reply.text) == (400, True), reply
            assert "URI:" not in reply.text and {"a", "again", "side"} == set(await listing(web, folder))
        assert (await post(web, f"{folder}?t=rename&from_name=a&to_name=z")).status == 200
        for target in (inner["side"], f"{root}/side"):
            assert (await post(web, f"{folder}?t=relink&from_name=z&to_dir={quote(target)}")).status == 200
            back = f"{folder}/side?t=relink&from_name=z&to_dir={quote(root)}"
            assert (await post(web, back)).status == 200
        assert {"z", "again", "side"} == set(await listing(web, folder))


async def test_upload_when_by_a_form_then_its_name_and_the_existing_entry_decide(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        folder = await make(web)
        for fields, name in [
            ({"t": "upload", "file": ("e\u0301.txt", b"one")}, "\u00e9.txt"),
            ({"t": "upload", "name": " given ", "file": ("x", b"two")}, "given"),
            ({"t": "upload", "name": "", "file": ("its own", b"three")}, "its own"),
        ]:
            assert (await web.post_form(folder, fields)).status == 200  # type: ignore[arg-type]
            assert (await web.get(f"{folder}/{quote(name)}")).status == 200
        await web.put(f"{folder}/sub?t=mkdir")
        assert (await web.post_form(f"{folder}?t=upload&name=sub", {"file": ("x", b"")})).status == 400
        assert (await web.post_form(f"{folder}?t=upload&name=a%2fb", {"file": ("x", b"")})).status == 400
        assert (await web.post_form(f"{folder}?t=upload&name=given&replace=false", {"file": ("x", b"")})).status == 409
        assert (await web.post_form(f"{folder}?t=upload&name=+", {"file": ("x", b"")})).status == 400
        sent = await web.post_form(f"{folder}?t=upload&when_done=/there", {"file": ("z", b"zz")})
        assert (sent.status, sent.headers["location"]) == (302, "/there")
        assert sorted(await listing(web, folder)) == ["given", "its own", "sub", "z", "\u00e9.txt"]


async def test_directory_when_only_read_then_nothing_changes_and_no_write_cap_is_shown(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        folder = await make(web)
        await web.put(f"{folder}/sub?t=mkdir")
        reader = f"/uri/{(await web.get(f'{folder}?t=readonly-uri')).text}"
        assert "rw_uri" not in (await web.get(f"{reader}?t=json")).text
        assert (await web.get(f"{reader}?t=uri")).text == reader.removeprefix("/uri/")
        assert (await web.put(f"{reader}/x", b"")).status == 403
        assert (await web.put(f"{reader}/x/y", b"")).status == 403
        for query in ("mkdir&name=x", "unlink&name=sub", f"uri&name=x&uri={LIT}", "rename&from_name=sub&to_name=x"):
            assert (await post(web, f"{reader}?t={query}")).status == 403, query
        assert (await web.request("DELETE", f"{reader}/sub")).status == 403
        assert (await web.request("DELETE", reader)).status == 400
        assert list(await listing(web, folder)) == ["sub"]


async def test_directory_when_viewed_then_has_pages_and_tags(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        folder = await make(web)
        await web.put(f"{folder}/a%3Cb", b"x")
        page = await web.get(f"{folder}/")
        assert page.status == 200 and b"a&lt;b" in page.body and b"a<b" not in page.body
        for view in ("info", "rename-form&name=a%3Cb"):
            assert (await web.get(f"{folder}?t={view}")).status == 200
        assert (await web.get(f"{folder}?t=bogus")).status == 400
        head = await web.request("HEAD", folder)
        assert (head.status, head.headers.get("etag")) == (200, None)
        children = json.dumps({f"name {i}": ["x", {"ro_uri": LIT}] for i in range(9)}).encode()
        fixed = (await post(web, "/uri?t=mkdir-immutable", children)).text
        assert fixed.startswith("URI:DIR2-CHK:")
        tag = (await web.get(f"/uri/{fixed}?t=json")).headers["etag"]
        assert tag.startswith("DIR:") and tag.endswith("-json")
        for held in (tag, f'"{tag}"', "*"):
            assert (await web.get(f"/uri/{fixed}?t=json", If_None_Match=held)).status == 304


async def test_directory_when_its_shares_are_gone_then_each_view_says_so_in_its_shape(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        gone = "/uri/URI:DIR2:" + "a" * 26 + ":" + "a" * 52
        lost = await web.get(f"{gone}?t=json")
        assert lost.status == 410 and json.loads(lost.text)["error"].startswith("UnrecoverableFileError")
        assert (await web.get(gone)).status == 200
        below = await web.get(f"{gone}/x")
        assert (below.status, below.headers["content-type"]) == (410, "text/html; charset=utf-8")
        assert (await post(web, f"{gone}?t=unlink&name=x")).status == 410


async def test_unknown_cap_when_asked_for_then_json_describes_it_and_nothing_else_does(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        assert isinstance(parse_cap("lafs:future"), UnknownCap)
        bare = await web.get("/uri/lafs:future?t=json")
        assert (bare.status, json.loads(bare.text)) == (200, ["unknown", {}])
        assert (await web.get("/uri/lafs:future")).status == 400
        checked = await post(web, "/uri/ro.lafs:future?t=check&output=JSON")
        assert json.loads(checked.text) == {"storage-index": "", "results": {"healthy": True}}
        folder = await make(web)
        assert (await post(web, f"{folder}?t=uri&name=u&uri=ro.lafs:future")).status == 200
        assert (await listing(web, folder))["u"][1]["ro_uri"] == "ro.lafs:future"
        assert (await web.get(f"{folder}/u/x")).status == 400


async def test_changes_when_many_come_at_once_then_none_is_lost(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        folder = await make(web)
        asked = [Deferred.fromCoroutine(web.put(f"{folder}/new/deep/{i}", b"%d" % i)) for i in range(12)]
        replies = await gatherResults(asked)
        assert [reply.status for reply in replies] == [201] * 12
        assert len(await listing(web, f"{folder}/new/deep")) == 12


@pytest.mark.parametrize("path", ["//x", "/a//b", "/a//", "/%ff"])
async def test_path_when_a_segment_is_empty_or_no_text_then_400(tmp_path: Path, path: str) -> None:
    async with gateway_of_trees(tmp_path) as web:
        folder = await make(web)
        assert (await web.get(folder + path)).status == 400


async def test_page_of_a_file_by_path_leads_to_its_neighbors_in_the_same_order(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        root = (await web.put("/uri?t=mkdir")).text
        for number, name in enumerate(("9", "10", "%2541")):
            await web.put(f"/uri/{root}/{name}", bytes(number))
        page = (await web.get(f"/uri/{root}/9?t=info")).text
        assert re.findall(r'href="([^"]*)" rel="(prev|next)"', page) == [(f"/uri/{quote(root)}/10?t=info", "next")]
        page = (await web.get(f"/uri/{root}/10?t=info&sort=size&order=desc")).text
        below = f"/uri/{quote(root)}"
        order = "?t=info&amp;sort=size&amp;order=desc"
        assert re.findall(r'href="([^"]*)" rel="(prev|next)"', page) == [
            (f"{below}/%2541{order}", "prev"),
            (f"{below}/9{order}", "next"),
        ]
        alone = json.loads((await web.get(f"/uri/{root}/9?t=json")).text)[1]["ro_uri"]
        assert "rel=" not in (await web.get(f"/uri/{alone}?t=info")).text.partition("<main")[2]
