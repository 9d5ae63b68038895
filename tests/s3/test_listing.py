"""Listings: S3's order, complete pages, and trees with loops."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from urllib.parse import quote

import pytest
from twisted.internet.defer import Deferred

from grid.caps import DirectoryCap, KnownCap
from grid.directory.edits import SetChild
from grid.directory.pack import Child
from grid.errors import GridError
from grid.mutable.sources import MemorySource
from grid.s3 import listing
from grid.s3.object_info import ListedObject
from tests.s3.rig import S3Rig, path, running_door, texts
from tests.s3.watched import until

KEYS = ["a", "a-b", "a/1", "a/2/x", "a/2/y", "a0", "b/", "b/c", "c//d", "\u00e9/z"]


async def fill(rig: S3Rig) -> None:
    for key in KEYS:
        assert (await rig.ask("PUT", path(key), b"1")).status == 200


async def fill_directory(rig: S3Rig, count: int) -> None:
    """Objects `k0`, `k1` and so on in the bucket."""
    root = rig.accounts["GKMAIN"].buckets["bucket"]
    store = rig.rig.gateway.store
    await rig.ask("PUT", path("k0"), b"1" * 1000)
    child = (await store.directory(root).list())["k0"]
    await store.directory(root).edit([SetChild(f"k{n}", child.target, child.metadata) for n in range(1, count)])


def expected(prefix: str, delimiter: str) -> list[str]:
    """What S3 lists, prefixes among keys."""
    found = []
    for key in sorted(KEYS):
        if key.startswith(prefix):
            end = key.find(delimiter, len(prefix)) if delimiter else -1
            shown = key if end < 0 else key[: end + len(delimiter)]
            if shown not in found:
                found.append(shown)
    return found


async def listed(rig: S3Rig, prefix: str, delimiter: str, most: int, version: int) -> list[str]:
    """Everything, page by page."""
    found, after = [], ""
    for _ in range(50):
        query = f"?prefix={quote(prefix)}&delimiter={quote(delimiter, safe='')}&max-keys={most}{after}"
        body = (await rig.ask("GET", "/bucket" + query + ("&list-type=2" if version == 2 else ""))).body
        keys, prefixes = texts(body, "Key"), texts(body, "Prefix")[1:]
        assert len(keys) + len(prefixes) <= most
        found += sorted(keys + prefixes)
        if texts(body, "IsTruncated") == ["false"]:
            return found
        if version == 2:
            after = f"&continuation-token={quote(*texts(body, 'NextContinuationToken'))}"
        else:
            after = f"&marker={quote((texts(body, 'NextMarker') or keys)[-1], safe='')}"
    raise AssertionError("the listing does not end")


@pytest.mark.parametrize("version", [1, 2])
async def test_a_listing_by_pages_of_any_size_has_each_key_once_in_order(tmp_path: Path, version: int) -> None:
    async with running_door(tmp_path) as rig:
        await fill(rig)
        for prefix in ("", "a", "a/", "a/2", "b/", "x", "\u00e9"):
            for delimiter in ("", "/", "-", "2/"):
                for most in (1, 3, 1000):
                    assert await listed(rig, prefix, delimiter, most, version) == expected(prefix, delimiter)


async def test_a_prefix_is_encoded_where_clients_decode_it_or_xml_has_no_other_way(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        for query, prefix, said in (
            ("", "\n", "\n"),
            ("", "a b", "a b"),
            ("", "\x01", "%01"),
            ("&list-type=2", "\n", "%0A"),
            ("&versions", "\n", "%0A"),
        ):
            body = (await rig.ask("GET", f"/bucket?encoding-type=url&prefix={quote(prefix)}{query}")).body
            assert texts(body, "Prefix") == [said]


async def test_an_empty_token_begins_a_listing(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        await rig.ask("PUT", path("a"), b"1")
        assert await rig.keys("&continuation-token=") == ["a"]


async def test_a_directory_that_leads_back_to_itself_is_listed_once(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        await rig.ask("PUT", path("a/b"), b"1")
        root = rig.accounts["GKMAIN"].buckets["bucket"]
        store = rig.rig.gateway.store
        inner = (await store.directory(root).get(["a"])).target
        await store.directory(inner).edit([SetChild("loop", root), SetChild("self", inner)])  # type: ignore[arg-type]
        assert await rig.keys() == ["a/b"]


async def test_a_page_that_would_read_too_many_directories_ends_early_and_the_next_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "MOST_DIRECTORIES", 4)
    async with running_door(tmp_path) as rig:
        await fill(rig)
        assert await listed(rig, "", "", 1000, 2) == sorted(KEYS)


async def test_the_next_page_of_a_long_directory_reads_it_no_second_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "LONG", 5)
    async with running_door(tmp_path) as rig:
        await fill_directory(rig, 9)
        reads = 0

        def count(operation: object) -> None:
            nonlocal reads
            reads += getattr(operation, "kind", "") == "retrieve" and not getattr(operation, "is_active", True)

        rig.rig.gateway.history.watch(count)
        assert len(await listed(rig, "", "", 2, 2)) == 9
        assert reads == 1


async def test_a_listing_never_gets_what_an_earlier_listing_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "LONG", 3)
    async with running_door(tmp_path) as rig:
        keys = [f"{name}/{number}" for name in "abcd" for number in range(4)]
        for key in keys:
            assert (await rig.ask("PUT", path(key), b"1")).status == 200
        assert await listed(rig, "", "", 4, 2) == keys
        assert (await rig.ask("PUT", path("c/9"), b"1")).status == 200
        assert await listed(rig, "", "", 4, 2) == sorted([*keys, "c/9"])


async def test_a_page_of_an_older_listing_leaves_a_newer_one_what_that_has_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "LONG", 3)
    async with running_door(tmp_path) as rig:
        await fill_directory(rig, 8)

        async def page(token: str = "") -> tuple[list[str], str]:
            after = f"&continuation-token={quote(token)}" if token else ""
            body = (await rig.ask("GET", f"/bucket?list-type=2&max-keys=2{after}")).body
            return texts(body, "Key"), "".join(texts(body, "NextContinuationToken"))

        _, older = await page()
        _, older = await page(older)
        assert (await rig.ask("PUT", path("k45"), b"1")).status == 200
        _, newer = await page()
        _, newer = await page(newer)
        assert newer == older
        assert (await page(older))[0] == (await page(newer))[0] == ["k4", "k45"]


async def test_a_page_of_a_long_directory_unpacks_its_own_entries_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "LONG", 5)
    async with running_door(tmp_path) as rig:
        await fill_directory(rig, 40)
        unpacked, unpack = 0, listing._unpack

        def counted(packed: bytes) -> DirectoryCap | ListedObject:
            nonlocal unpacked
            unpacked += 1
            return unpack(packed)

        monkeypatch.setattr(listing, "_unpack", counted)
        assert len(await listed(rig, "", "", 10, 2)) == 40
        # One more of each page but the last, which tells that there is another page.
        assert unpacked == 40 + 3
        assert await listed(rig, "k3", "", 10, 2) == ["k3", *(f"k3{n}" for n in range(10))]


async def test_objects_of_a_directory_that_was_kept_are_as_they_were_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_door(tmp_path) as rig:
        headers = {"x-amz-meta-name": "\u00e9", "Content-Type": "text/plain"}
        for key in ("a", "b", "c"):
            assert (await rig.ask("PUT", path(key), key.encode() * 3000, headers)).status == 200
        fields = ("Key", "ETag", "Size", "LastModified")
        plain = (await rig.ask("GET", "/bucket")).body
        monkeypatch.setattr(listing, "LONG", 1)
        kept = (await rig.ask("GET", "/bucket")).body
        assert [texts(kept, name) for name in fields] == [texts(plain, name) for name in fields]
        assert texts(kept, "Key") == ["a", "b", "c"]


@pytest.mark.parametrize("is_composite", [False, True])
def test_what_is_kept_of_an_object_tells_the_type_of_its_checksum(is_composite: bool) -> None:
    found = ListedObject(
        size=5, file=None, etag="a" * 32, modified=1.5, algorithms=("crc32", "sha256"), is_composite=is_composite
    )
    assert listing._unpack(listing._pack(found)) == found


async def test_directories_when_they_would_take_too_much_memory_are_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "LONG", 5)
    async with running_door(tmp_path) as rig:
        await fill_directory(rig, 9)
        await rig.keys("&max-keys=2")
        memory = rig.door.lister.memory
        assert 9 * 100 < memory < 9 * 300
        monkeypatch.setattr(listing, "KEPT_BYTES", memory - 1)
        assert len(await listed(rig, "", "", 2, 2)) == 9
        assert not rig.door.lister.memory


async def test_directories_deeper_than_any_stack_are_listed(tmp_path: Path) -> None:
    levels = 300
    async with running_door(tmp_path) as rig:
        await rig.ask("PUT", path("bottom"), b"1")
        root = rig.accounts["GKMAIN"].buckets["bucket"]
        store = rig.rig.gateway.store
        bottom = await store.create_immutable_directory(await store.directory(root).list())
        deep = bottom
        for _ in range(levels):
            deep = await store.create_immutable_directory({"d": Child(target=deep)})
        await store.directory(root).edit([SetChild("d", deep)])
        usual = sys.getrecursionlimit()
        sys.setrecursionlimit(len(inspect.stack(0)) + levels)
        try:
            (top, low) = await rig.keys()
        finally:
            sys.setrecursionlimit(usual)
        assert (top, low) == ("bottom", "d/" * (levels + 1) + "bottom")


async def test_the_sizes_of_mutable_files_are_asked_for_together_and_a_lost_one_holds_up_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking: list[Deferred[int]] = []
    async with running_door(tmp_path) as rig:
        store, root = rig.rig.gateway.store, rig.accounts["GKMAIN"].buckets["bucket"]
        mutable, small = await store.put_mutable(b"1"), await store.put_immutable(MemorySource(b"12"))
        edits = [SetChild(f"k{number:02}", small if number == 7 else mutable, {}) for number in range(41)]
        await store.directory(root).edit(edits)

        async def size(self: object, file: KnownCap) -> int:
            asking.append(Deferred())
            return await asking[-1]

        monkeypatch.setattr(type(store), "size", size)
        listing = Deferred.fromCoroutine(rig.ask("GET", "/bucket"))
        for begin, end in ((0, 32), (32, 40)):
            await until(lambda: len(asking) >= 32)
            assert len(asking) == 32 or begin
            for number in reversed(range(begin, end)):
                await until(lambda number=number: len(asking) > number)  # type: ignore[misc]
                if number == 3:
                    asking[number].errback(GridError("lost"))
                else:
                    asking[number].callback(100 + number)
        sizes = texts((await listing).body, "Size")
        assert (sizes[:3], sizes[3], sizes[7], len(sizes)) == (["100", "101", "102"], "0", "2", 41)
        assert sorted(map(int, sizes)) == [0, 2, 100, 101, 102, *range(104, 140)]
