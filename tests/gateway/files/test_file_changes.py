"""PUT, POST and DELETE of files: in place or by a new link, and requests refused before the body is read."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from grid.caps import ChkCap, DirectoryCap, KnownCap, LitCap, MdmfWriteCap, SdmfWriteCap, UnknownChild, parse_cap
from grid.directory.pack import Child
from grid.sinks import BytesSink
from tests.gateway.one_level import folder_of, gateway_of_files
from tests.support.web_gateway import WebGateway

DATA = random.Random(7).randbytes(2_000_000)
CHK = ChkCap(key=bytes(16), ueb_hash=bytes(32), needed=3, total=10, size=1000)
LIT = LitCap(data=b"old")


async def read(web: WebGateway, cap: KnownCap) -> bytes:
    sink = BytesSink()
    await web.gateway.store.read(cap, sink)
    return bytes(sink.data)


async def child_of(web: WebGateway, folder: str, name: str = "child") -> Child | None:
    """What is in a directory under a name."""
    cap = parse_cap(folder.removeprefix("/uri/"))
    assert isinstance(cap, DirectoryCap)
    return (await web.gateway.store.directory(cap).list()).get(name)


@pytest.mark.parametrize(("format", "kind"), [("", ChkCap), ("sdmf", SdmfWriteCap), ("mdmf", MdmfWriteCap)])
async def test_name_when_free_or_an_immutable_file_then_gets_a_link_to_a_new_one(
    tmp_path: Path, format: str, kind: type[KnownCap]
) -> None:
    async with gateway_of_files(tmp_path) as web:
        folder = await folder_of(web, old=Child(target=LIT, metadata={"kept": True}))
        for name, status in (("new", 201), ("newer?offset=0&format=", 201), ("old", 200)):
            reply = await web.put(f"{folder}/{name}{'' if '?' in name else '?format='}{format}", DATA)
            cap = parse_cap(reply.text)
            assert reply.status == status and isinstance(cap, kind)
            child = await child_of(web, folder, name.partition("?")[0])
            assert child is not None and child.target == cap
            assert ("kept" in child.metadata) == (name == "old")
            assert await read(web, child.target) == DATA


@pytest.mark.parametrize("format", ["sdmf", "mdmf"])
async def test_mutable_file_when_put_then_is_written_in_place_by_its_path_or_its_cap(
    tmp_path: Path, format: str
) -> None:
    async with gateway_of_files(tmp_path) as web:
        cap = parse_cap((await web.put(f"/uri?format={format}", b"first")).text)
        assert isinstance(cap, SdmfWriteCap | MdmfWriteCap)
        folder = await folder_of(web, child=Child(target=cap))
        for target, data in (
            (f"{folder}/child", DATA),
            (f"/uri/{cap.to_string()}", b"short"),
            (f"{folder}/child", b""),
        ):
            reply = await web.put(f"{target}?format=chk", data)
            assert (reply.status, reply.text) == (200, cap.to_string())
            assert await read(web, cap) == data
        child = await child_of(web, folder)
        assert child is not None and child.target == cap


@pytest.mark.parametrize("format", ["sdmf", "mdmf"])
async def test_mutable_file_when_put_at_an_offset_then_only_that_part_changes_and_no_hole_is_made(
    tmp_path: Path, format: str
) -> None:
    async with gateway_of_files(tmp_path) as web:
        target = "/uri/" + (await web.put(f"/uri?format={format}", b"0123456789")).text
        for offset, data, after in [
            (2, b"ab", b"01ab456789"),
            (8, b"cdef", b"01ab4567cdef"),
            (12, b"g", b"01ab4567cdefg"),
            (0, b"", b"01ab4567cdefg"),
        ]:
            assert (await web.put(f"{target}?offset={offset}", data)).status == 200
            assert (await web.get(target)).body == after
        for place in ("14", "-1", "x", "99999999999999999999"):
            assert (await web.put(f"{target}?offset={place}", b"h")).status == 400
        assert (await web.get(target)).body == b"01ab4567cdefg"


async def test_long_part_when_put_then_is_replaced_piece_by_piece(tmp_path: Path) -> None:
    async with gateway_of_files(tmp_path) as web:
        target = "/uri/" + (await web.put("/uri?format=mdmf", DATA)).text
        part = random.Random(2).randbytes(17 * 2**20)
        assert (await web.put(f"{target}?offset=1000", part)).status == 200
        assert (await web.get(target)).body == DATA[:1000] + part


async def test_put_when_it_must_be_a_mistake_then_is_refused_and_nothing_changes(tmp_path: Path) -> None:
    async with gateway_of_files(tmp_path) as web:
        mutable = parse_cap((await web.put("/uri?format=sdmf", b"mine")).text)
        assert isinstance(mutable, SdmfWriteCap)
        empty = await web.gateway.store.create_directory()
        folder = await folder_of(
            web,
            lit=Child(target=LIT),
            mine=Child(target=mutable),
            ro=Child(target=mutable.read_cap()),
            dir=Child(target=empty),
        )
        reading = DirectoryCap(parse_cap(folder[5:]).body).read_cap().to_string()  # type: ignore[union-attr]
        for target, status in [
            (f"/uri/{CHK.to_string()}", 400),
            (f"/uri/{mutable.read_cap().to_string()}", 400),
            (f"/uri/{empty.to_string()}", 400),
            ("/uri/nonsense", 501),
            (f"{folder}/lit?offset=0", 400),
            (f"{folder}/new?offset=1", 400),
            (f"{folder}/lit?replace=false", 409),
            (f"{folder}/mine?replace=false", 409),
            (f"{folder}/lit?replace=maybe", 400),
            (f"{folder}/dir", 400),
            (f"{folder}/dir?replace=false", 400),
            (f"{folder}/ro", 400),
            (f"{folder}/new?format=other", 400),
            (f"/uri/{reading}/new", 403),
            (f"/uri/{reading}/lit", 403),
            (f"/uri/{reading}/mine", 400),
        ]:
            reply = await web.put(target, b"x")
            assert (target, reply.status) == (target, status)
            assert "URI:" not in reply.text
        for name in ("new", "lit", "mine"):
            assert (await web.put(f"{folder}/{name}", b"x", Content_Range="bytes 0-0/1")).status == 501
        assert (await web.get(f"{folder}/mine")).body == b"mine" and (await web.get(f"{folder}/lit")).body == b"old"
        assert await child_of(web, folder, "new") is None


async def test_cap_when_put_then_is_linked_whatever_is_there(tmp_path: Path) -> None:
    async with gateway_of_files(tmp_path) as web:
        empty = await web.gateway.store.create_directory()
        folder = await folder_of(web, lit=Child(target=LIT), dir=Child(target=empty))
        for name, query in [("new", ""), ("lit", ""), ("lit", "&replace=only-files"), ("dir", "&replace=true")]:
            reply = await web.put(f"{folder}/{name}?t=uri{query}", b"ro." + CHK.to_string().encode() + b"\n")
            assert (reply.status, reply.text) == (200, CHK.to_string())
            child = await child_of(web, folder, name)
            assert child is not None and child.target == CHK
        reply = await web.put(f"{folder}/future?t=uri", b"ro.x-future:abc")
        assert reply.status == 200
        child = await child_of(web, folder, "future")
        assert child is not None and isinstance(child.target, UnknownChild) and child.target.read == b"ro.x-future:abc"


async def test_cap_when_put_where_it_is_not_allowed_then_is_refused(tmp_path: Path) -> None:
    async with gateway_of_files(tmp_path) as web:
        empty = await web.gateway.store.create_directory()
        folder = await folder_of(web, lit=Child(target=LIT), dir=Child(target=empty))
        for name, query, data, status in [
            ("new", "", b"", 400),
            ("new", "", b"\n", 400),
            ("new", "", b"nonsense", 400),
            ("new", "", b"\xff\xfe", 400),
            ("new", "", b"x" * 100_000, 413),
            ("lit", "&replace=false", CHK.to_string().encode(), 409),
            ("dir", "&replace=false", CHK.to_string().encode(), 409),
            ("dir", "&replace=only-files", CHK.to_string().encode(), 409),
        ]:
            assert (await web.put(f"{folder}/{name}?t=uri{query}", data)).status == status
        assert (await web.put(f"/uri/{CHK.to_string()}?t=uri", CHK.to_string().encode())).status == 400
        child = await child_of(web, folder, "dir")
        assert child is not None and child.target == empty and await child_of(web, folder, "new") is None


async def test_form_when_posted_to_a_file_then_its_contents_or_its_link_are_new(tmp_path: Path) -> None:
    async with gateway_of_files(tmp_path) as web:
        mutable = parse_cap((await web.put("/uri?format=mdmf", b"mine")).text)
        assert isinstance(mutable, MdmfWriteCap)
        folder = await folder_of(web, lit=Child(target=LIT), mine=Child(target=mutable))
        file = {"file": ("other name", DATA)}
        for target in (f"{folder}/mine", f"/uri/{mutable.to_string()}"):
            reply = await web.post_form(f"{target}?t=upload", file)
            assert (reply.status, reply.text) == (200, mutable.to_string())
            assert await read(web, mutable) == DATA
        reply = await web.post_form(f"{folder}/lit?t=upload", file)
        child = await child_of(web, folder, "lit")
        assert reply.status == 200 and child is not None and child.target == parse_cap(reply.text)
        reply = await web.post_form(f"{folder}/lit?t=upload", {**file, "when_done": ".."})
        assert (reply.status, reply.headers["location"]) == (302, "..")
        for target, fields, status in [
            (f"{folder}/lit?t=upload&replace=false", file, 409),
            (f"{folder}/mine?t=upload", {"file": ("x", b"no"), "replace": "false"}, 409),
            (f"{folder}/lit?t=upload&replace=only-files", file, 400),
            (f"{folder}/lit?t=upload&when_done=http://example.org/", file, 400),
            (f"{folder}/lit?t=upload", {"other": "x"}, 400),
            (f"{folder}/new?t=upload", file, 404),
            (f"/uri/{CHK.to_string()}?t=upload", file, 400),
            (f"/uri/{mutable.read_cap().to_string()}?t=upload", file, 400),
        ]:
            assert (target, (await web.post_form(target, fields)).status) == (target, status)  # type: ignore[arg-type]
        assert await read(web, mutable) == DATA


async def test_link_when_deleted_then_its_cap_is_answered(tmp_path: Path) -> None:
    async with gateway_of_files(tmp_path) as web:
        empty = await web.gateway.store.create_directory()
        folder = await folder_of(web, lit=Child(target=LIT), dir=Child(target=empty))
        for name, cap in (("lit", LIT), ("dir", empty)):
            reply = await web.request("DELETE", f"{folder}/{name}")
            assert (reply.status, reply.text) == (200, cap.to_string())
            reply = await web.request("DELETE", f"{folder}/{name}")
            assert reply.status == 404 and "No such child" in reply.text
        assert (await web.request("DELETE", f"/uri/{CHK.to_string()}")).status == 400


async def test_grid_when_it_has_no_servers_then_says_so_at_once(tmp_path: Path) -> None:
    async with gateway_of_files(tmp_path, servers=[]) as web:
        for format in ("chk", "sdmf", "mdmf"):
            assert (await web.put(f"/uri?format={format}", DATA)).status == 503
