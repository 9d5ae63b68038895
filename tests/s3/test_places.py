"""Where a put links its object: in the directories that its key leads through at the end, not those of its beginning."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from grid.directory.edits import RemoveChild
from grid.s3 import bucket, storing
from grid.s3.accounts import Account
from grid.s3.door import Door, Place
from tests.s3.rig import S3Rig, code, path, running_door
from tests.s3.watched import until

NEVER = 1e9


class Places:
    """Counts how often the place of an object was sought; after each time, removes a directory from the bucket while `left`."""

    def __init__(self, rig: S3Rig, monkeypatch: pytest.MonkeyPatch, left: int = 0) -> None:
        self.count = 0
        self.left = left
        sought = Door.place

        async def place(door: Door, account: Account, name: str, key: str) -> Place:
            found = await sought(door, account, name, key)
            if self.left:
                self.left -= 1
                root = account.buckets.get(name) or account.home
                assert root is not None
                gone = "deep" if name in account.buckets else name
                await rig.rig.gateway.store.directory(root).edit([RemoveChild(gone)])
            self.count += 1
            return found

        monkeypatch.setattr(Door, "place", place)


async def test_a_put_whose_directory_is_removed_while_its_bytes_arrive_is_found_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storing, "FRESH_S", -1)
    monkeypatch.setattr(bucket, "QUICK_S", NEVER)
    body = b"b" * 100
    async with running_door(tmp_path) as rig:
        await rig.ask("PUT", path("deep/down/a"), b"a")
        places, wire = Places(rig, monkeypatch, 1), await rig.connect()
        fields = {"Content-Length": "100", "Connection": "close"}
        wire.send(rig.head("PUT", path("deep/down/b"), fields, payload=hashlib.sha256(body).hexdigest()) + body[:50])
        await until(lambda: places.count == 1)
        wire.send(body[50:])
        assert (await wire.reply()).status == 200
        assert (await rig.ask("GET", path("deep/down/b"))).body == body
        assert await rig.keys() == ["deep/down/b"]


async def test_a_put_whose_directory_is_removed_while_it_is_linked_is_found_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket, "QUICK_S", -1)
    async with running_door(tmp_path) as rig:
        await rig.ask("PUT", path("deep/down/a"), b"a")
        Places(rig, monkeypatch, 1)
        assert (await rig.ask("PUT", path("deep/down/b"), b"b")).status == 200
        assert (await rig.ask("GET", path("deep/down/b"))).body == b"b"


async def test_a_slow_put_into_a_bucket_that_is_no_longer_linked_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket, "QUICK_S", -1)
    async with running_door(tmp_path) as rig:
        await rig.ask("PUT", "/made")
        Places(rig, monkeypatch, 1)
        assert code(await rig.ask("PUT", path("a", "made"), b"a")) == "NoSuchBucket"


async def test_a_quick_put_seeks_its_place_once_and_reads_nothing_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_door(tmp_path) as rig:
        await rig.ask("PUT", path("deep/down/a"), b"a")
        places, reads = Places(rig, monkeypatch), list[Any]()
        rig.rig.gateway.history.watch(lambda done: reads.append(done) if done.kind == "retrieve" else None)
        monkeypatch.setattr(storing, "FRESH_S", NEVER)
        monkeypatch.setattr(bucket, "QUICK_S", NEVER)
        assert (await rig.ask("PUT", path("deep/down/b"), b"b")).status == 200
        quick, many = len({id(each) for each in reads}), places.count
        monkeypatch.setattr(bucket, "QUICK_S", -1)
        assert (await rig.ask("PUT", path("deep/down/c"), b"c")).status == 200
        assert (quick, many) == (2, 1)
        assert len({id(each) for each in reads}) == 3 * quick
