"""Listings: the order of S3, pages that leave nothing out, and trees that lead back to themselves."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest

from grid.directory.edits import SetChild
from grid.s3 import listing
from tests.s3.rig import S3Rig, path, running_door, texts

KEYS = ["a", "a-b", "a/1", "a/2/x", "a/2/y", "a0", "b/", "b/c", "c//d", "\u00e9/z"]


async def fill(rig: S3Rig) -> None:
    for key in KEYS:
        assert (await rig.ask("PUT", path(key), b"1")).status == 200


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
        root = rig.accounts["GKMAIN"].buckets["bucket"]
        store = rig.rig.gateway.store
        await rig.ask("PUT", path("k0"), b"1")
        child = (await store.directory(root).list())["k0"]
        await store.directory(root).edit([SetChild(f"k{n}", child.target) for n in range(1, 9)])
        reads = 0

        def count(operation: object) -> None:
            nonlocal reads
            reads += getattr(operation, "kind", "") == "retrieve" and not getattr(operation, "is_active", True)

        rig.rig.gateway.history.watch(count)
        assert len(await listed(rig, "", "", 2, 2)) == 9
        assert reads == 1
