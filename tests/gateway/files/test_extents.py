"""Slices and sequences at the gateway: bytes, ranges, tags, JSON, pages and checks, as for any immutable file."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from grid.caps import DirectoryCap, SequenceCap, SliceCap
from grid.directory.pack import Child
from grid.extents.pack_writer import SEGMENT_SIZE, PackContents
from grid.extents.table import Part, pack_table
from grid.mutable.sources import MemorySource
from tests.gateway.one_level import gateway_of_files
from tests.support.web_gateway import WebGateway

FILES = [random.Random(number).randbytes(3000) for number in range(20)]


async def put_extents(web: WebGateway) -> list[tuple[SliceCap | SequenceCap, bytes]]:
    """Two slices of one pack, and a sequence of all; with their contents."""
    store = web.gateway.store
    contents = PackContents(b"secret", store.runtime.entropy.random_bytes)
    extents = [contents.add(data) for data in FILES]
    pack = await store.put_immutable(MemorySource(contents.data), segment_size=SEGMENT_SIZE)
    slices = [extent.slice_of(pack) for extent in extents]
    table = await store.put_immutable(MemorySource(pack_table([Part.whole(cap) for cap in slices])))
    whole = b"".join(FILES)
    return [(slices[0], FILES[0]), (slices[1], FILES[1]), (SequenceCap(size=len(whole), table=table), whole)]


async def test_extents_when_asked_for_come_whole_and_in_part(tmp_path: Path) -> None:
    async with gateway_of_files(tmp_path) as web:
        tags = set()
        for cap, data in await put_extents(web):
            text = cap.to_string()
            bare = await web.get(f"/uri/{text.removeprefix('imm.')}")
            reply = await web.get(f"/uri/{text}")
            assert (reply.status, reply.body, bare.body) == (200, data, data)
            tags.add(reply.headers["etag"])
            held = await web.get(f"/uri/{text}", **{"If-None-Match": reply.headers["etag"]})
            assert (held.status, held.body) == (304, b"")
            part = await web.get(f"/uri/{text}", Range=f"bytes=10-{len(data) - 2}")
            assert (part.status, part.body) == (206, data[10:-1])
            head = await web.request("HEAD", f"/uri/{text}")
            assert (head.status, head.headers["content-length"]) == (200, str(len(data)))
        # Slices of one pack have one storage index, and are not each other's contents.
        assert len(tags) == 3


async def test_extents_when_described_name_their_pack(tmp_path: Path) -> None:
    async with gateway_of_files(tmp_path) as web:
        (one, _), _, (sequence, _) = await put_extents(web)
        kind, about = json.loads((await web.get(f"/uri/{one.to_string()}?t=json")).body)
        assert (kind, about["format"], about["mutable"], about["size"]) == ("filenode", "CHK", False, 3000)
        assert about["slice"] == {"offset": 0, "pack-size": 60_000}
        assert about["verify_uri"].startswith("URI:CHK-Verifier:")
        _, about = json.loads((await web.get(f"/uri/{sequence.to_string()}?t=json")).body)
        assert about["sequence"]["table-size"] > 2000
        for cap, words in ((one, b"in a pack of"), (sequence, b"made of parts of other files")):
            page = await web.get(f"/uri/{cap.to_string()}?t=info")
            assert page.status == 200
            assert words in page.body
            assert (await web.gateway.store.check(cap, verify=True)).healthy


async def test_directory_with_extents_when_listed_and_counted_has_them(tmp_path: Path) -> None:
    async with gateway_of_files(tmp_path) as web:
        (one, _), (two, _), (sequence, _) = await put_extents(web)
        children = {"one": Child(target=one), "two": Child(target=two), "all": Child(target=sequence)}
        cap: DirectoryCap = await web.gateway.store.create_directory(children)
        listed = await web.gateway.store.directory(cap).list()
        assert {name: child.target for name, child in listed.items()} == {"one": one, "two": two, "all": sequence}


async def test_slices_when_their_pack_is_blocked_are_forbidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with gateway_of_files(tmp_path) as web:
        (one, _), _, (sequence, _) = await put_extents(web)
        monkeypatch.setattr(
            type(web.gateway.blocks), "reason", lambda _, index: "no" if index == one.storage_index else None
        )
        assert (await web.get(f"/uri/{one.to_string()}")).status == 403
        assert FILES[0] not in (await web.get(f"/uri/{sequence.to_string()}")).body
