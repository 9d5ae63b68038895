"""Every path from a request to an object checks the blacklist. [spec webapi 11]"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from grid.caps import UnknownCap, parse_cap
from tests.gateway.trees import gateway_of_trees
from tests.support.web_gateway import WebGateway, form

DATA = bytes(range(256)) * 4
REASON = "taken down"


class List:
    """A blacklist in memory."""

    def __init__(self) -> None:
        self.entries: dict[bytes, str] = {}

    def reason(self, storage_index: bytes) -> str | None:
        """Why it must not be shown."""
        return self.entries.get(storage_index)

    def add(self, text: str) -> None:
        """Put the object of a capability on the list."""
        cap = parse_cap(text)
        assert not isinstance(cap, UnknownCap) and cap.storage_index is not None
        self.entries[cap.storage_index] = REASON


async def tree(web: WebGateway) -> dict[str, str]:
    """A directory with files of each kind and a directory in it, with a file, and another beside it."""
    caps = {kind: (await web.put(f"/uri?format={kind}", DATA + kind.encode())).text for kind in ("chk", "sdmf", "mdmf")}
    caps["root"] = (await web.put("/uri?t=mkdir")).text
    caps["dir"] = (await web.put(f"/uri/{caps['root']}/dir?t=mkdir")).text
    caps["other"] = (await web.put("/uri?t=mkdir")).text
    caps["in"] = (await web.put(f"/uri/{caps['dir']}/in", DATA)).text
    for kind in ("chk", "sdmf", "mdmf"):
        assert (await web.put(f"/uri/{caps['root']}/{kind}?t=uri", caps[kind].encode())).status == 200
    assert (await web.put(f"/uri/{caps['other']}/free", DATA)).status == 201
    verify = parse_cap(caps["chk"]).verify_cap()  # type: ignore[union-attr]
    caps["verify"] = verify.to_string()  # type: ignore[union-attr]
    return caps


FILE = [
    ("GET", "/uri/{chk}"),
    ("HEAD", "/uri/{chk}"),
    ("GET", "/uri/{chk}?t=info"),
    ("GET", "/cap/{chk}"),
    ("GET", "/file/{chk}/name"),
    ("HEAD", "/file/{chk}/@@named=/name"),
    ("GET", "/named/{chk}/name"),
    ("GET", "/uri/{root}/chk"),
    ("HEAD", "/uri/{root}/chk"),
    ("GET", "/uri/{root}/chk?t=info"),
    ("GET", "/uri/{sdmf}"),
    ("GET", "/uri/{mdmf}"),
    ("GET", "/uri/{root}/sdmf"),
    ("GET", "/file/{mdmf}"),
    ("PUT", "/uri/{sdmf}"),
    ("PUT", "/uri/{mdmf}"),
    ("PUT", "/uri/{mdmf}?offset=3"),
    ("PUT", "/uri/{root}/sdmf"),
    ("POST", "/uri/{mdmf}?t=upload"),
    ("POST", "/uri/{root}?t=upload&name=sdmf"),
    ("POST", "/uri/{chk}?t=check"),
    ("POST", "/uri/{verify}?t=check"),
    ("POST", "/uri/{chk}?t=check&verify=true&output=json"),
    ("POST", "/uri/{sdmf}?t=check&repair=true&output=json"),
    ("POST", "/uri/{root}/mdmf?t=check&add-lease=true&output=json"),
]

DIRECTORY = [
    ("GET", "/uri/{dir}"),
    ("HEAD", "/uri/{dir}"),
    ("GET", "/uri/{dir}/"),
    ("GET", "/uri/{dir}?t=json"),
    ("GET", "/uri/{dir}?t=info"),
    ("GET", "/uri/{dir}?t=rename-form&name=in"),
    ("GET", "/uri/{root}/dir?t=json"),
    ("GET", "/uri/{dir}/in"),
    ("GET", "/uri/{root}/dir/in?t=json"),
    ("GET", "/uri/{root}/dir/none"),
    ("PUT", "/uri/{dir}/new"),
    ("PUT", "/uri/{root}/dir/new"),
    ("PUT", "/uri/{root}/dir?t=mkdir"),
    ("PUT", "/uri/{root}/dir/deep/er?t=mkdir"),
    ("PUT", "/uri/{dir}/new?t=uri"),
    ("DELETE", "/uri/{dir}/in"),
    ("POST", "/uri/{dir}?t=mkdir&name=new"),
    ("POST", "/uri/{root}/dir/deep?t=mkdir"),
    ("POST", "/uri/{dir}?t=upload&name=new"),
    ("POST", "/uri/{dir}?t=uri&name=new&uri={chk}"),
    ("POST", "/uri/{dir}?t=unlink&name=in"),
    ("POST", "/uri/{dir}?t=rename&from_name=in&to_name=out"),
    ("POST", "/uri/{dir}?t=relink&from_name=in&to_dir={other}"),
    ("POST", "/uri/{other}?t=relink&from_name=free&to_dir={dir}"),
    ("POST", "/uri/{other}?t=relink&from_name=free&to_dir={root}/dir"),
    ("POST", "/uri/{dir}?t=set_children"),
    ("POST", "/uri/{dir}?t=check"),
    ("POST", "/uri/{dir}?t=check&repair=true&output=json"),
    ("POST", "/uri/{dir}?t=stream-manifest"),
    ("POST", "/uri/{dir}?t=stream-deep-check"),
    ("POST", "/uri/{dir}?t=start-manifest&ophandle=a"),
    ("POST", "/uri/{dir}?t=start-deep-check&ophandle=b"),
    ("POST", "/uri/{dir}?t=start-deep-size&ophandle=c"),
    ("POST", "/uri/{root}/dir?t=start-deep-stats&ophandle=d"),
]


async def ask(web: WebGateway, caps: dict[str, str], method: str, path: str) -> Any:
    """The answer to one of those requests, with a body where one belongs."""
    body, kind = b"", {}
    if method == "PUT" and "mkdir" not in path:
        body = caps["chk"].encode() if "t=uri" in path else b"new contents"
    elif "t=upload" in path:
        type, body = form({"file": ("name", b"new contents")})
        kind = {"Content-Type": type}
    elif "t=set_children" in path:
        body = b'{"x": ["filenode", {"ro_uri": "%s"}]}' % caps["chk"].encode()
    return await web.request(method, path.format(**caps), body, kind)


async def test_objects_when_on_the_list_then_every_request_for_them_is_refused(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        blocks = web.gateway.blocks = List()
        caps = await tree(web)
        for name in ("chk", "sdmf", "mdmf", "dir"):
            blocks.add(caps[name])
        for method, path in (*FILE, *DIRECTORY):
            reply = await ask(web, caps, method, path)
            assert reply.status == 403, (method, path, reply.text)
            assert method == "HEAD" or REASON in reply.text, (method, path)
        blocks.entries.clear()
        listed = json.loads((await web.get(f"/uri/{caps['dir']}?t=json")).text)
        assert list(listed[1]["children"]) == ["in"]
        assert (await web.get(f"/uri/{caps['mdmf']}")).body == DATA + b"mdmf"
        assert (await web.get(f"/uri/{caps['root']}/sdmf")).body == DATA + b"sdmf"
        assert (await web.get(f"/uri/{caps['other']}/free")).body == DATA


async def test_objects_when_not_on_the_list_then_reading_them_is_not_forbidden(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        web.gateway.blocks = List()
        caps = await tree(web)
        for method, path in (*FILE, *DIRECTORY):
            if method in ("GET", "HEAD"):
                expected = 404 if path.endswith("/none") else 200
                assert (await ask(web, caps, method, path)).status == expected, (method, path)


async def test_tree_when_parts_are_on_the_list_then_walks_do_not_look_into_them(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        blocks = web.gateway.blocks = List()
        caps = await tree(web)
        blocks.add(caps["dir"])
        blocks.add(caps["sdmf"])
        reply = await web.request("POST", f"/uri/{caps['root']}?t=stream-manifest")
        units = [json.loads(line) for line in reply.text.splitlines()]
        assert [unit["path"] for unit in units if unit.get("path") == ["dir", "in"]] == []
        [blocked] = [unit for unit in units if unit.get("path") == ["dir"]]
        assert REASON in blocked["error"]
        for repair in ("", "&repair=true&verify=true"):
            reply = await web.request("POST", f"/uri/{caps['root']}?t=stream-deep-check{repair}")
            found = {tuple(unit["path"]): unit for unit in map(json.loads, reply.text.splitlines()) if "path" in unit}
            assert ("dir", "in") not in found
            for path in (("dir",), ("sdmf",)):
                assert REASON in json.dumps(found[path])
                assert '"healthy": true' not in json.dumps(found[path])
            assert REASON not in json.dumps(found["chk",])


async def test_listing_when_a_child_is_on_the_list_then_still_shows_the_link(tmp_path: Path) -> None:
    async with gateway_of_trees(tmp_path) as web:
        blocks = web.gateway.blocks = List()
        caps = await tree(web)
        blocks.add(caps["chk"])
        blocks.add(caps["dir"])
        children = json.loads((await web.get(f"/uri/{caps['root']}?t=json")).text)[1]["children"]
        assert set(children) == {"dir", "chk", "sdmf", "mdmf"}
        file = json.loads((await web.get(f"/uri/{caps['chk']}?t=json")).text)
        assert "size" not in file[1]
        assert (await web.get(f"/uri/{caps['chk']}?t=uri")).text == caps["chk"]
