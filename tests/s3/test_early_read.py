"""What begins before the directories have been asked: reads of remembered objects, and stores into remembered buckets."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast
from urllib.parse import quote

import pytest
from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater

from grid.s3 import listing
from tests.s3.rig import S3Rig, code, path, running_door, texts
from tests.s3.watched import STORES, Calls, until, watched_door

OLD, NEW = b"old" * 1000, b"new" * 1000
READS = frozenset({"find_shares", "read_shares"})


@asynccontextmanager
async def two_gateways(folder: Path) -> AsyncIterator[tuple[S3Rig, S3Rig, Calls]]:
    """Two gateways with a bucket `made`, and the calls of the first one."""
    async with running_door(folder) as second:
        assert (await second.ask("PUT", "/made")).status == 200
        async with watched_door(second) as (first, calls):
            yield first, second, calls


def begun(rig: S3Rig, method: str, key: str, body: bytes = b"", **named: Any) -> Deferred[Any]:
    """A request that is under way."""
    return Deferred.fromCoroutine(rig.ask(method, path(key, "made"), body, **named))


async def remembered(first: S3Rig, key: str, body: bytes = OLD) -> None:
    """Put and get an object, so that the gateway remembers its path."""
    assert (await begun(first, "PUT", key, body)).status == 200
    assert (await begun(first, "GET", key)).body == body


@pytest.mark.parametrize(("key", "directories"), [("a", 2), ("deep/down/a", 4)])
async def test_a_remembered_object_is_asked_for_together_with_its_directories(
    tmp_path: Path, key: str, directories: int
) -> None:
    async with two_gateways(tmp_path) as (first, _, calls):
        await remembered(first, key)
        calls.made.clear()
        calls.held = frozenset({"read_slot", *READS})
        reply = begun(first, "GET", key)
        await until(lambda: len(calls.asked("read_slot")) == directories and len(calls.asked(*READS)) == 1)
        assert not reply.called
        calls.release()
        assert (await reply).body == OLD


async def test_nothing_is_sent_before_the_directories_have_been_asked(tmp_path: Path) -> None:
    async with two_gateways(tmp_path) as (first, _, calls):
        await remembered(first, "a")
        calls.made.clear()
        calls.held = frozenset({"read_slot"})
        wire = await first.connect()
        wire.send(first.head("GET", path("a", "made"), {"Connection": "close"}))
        await until(lambda: bool(calls.asked(*READS)))
        for _ in range(50):
            await deferLater(cast(Any, reactor), 0.001)
        assert not wire.received
        calls.release()
        assert (await wire.reply()).body == OLD


async def test_an_object_that_another_gateway_has_replaced_is_the_new_one(tmp_path: Path) -> None:
    async with two_gateways(tmp_path) as (first, second, _):
        await remembered(first, "a")
        assert (await begun(second, "PUT", "a", NEW)).status == 200
        assert (await begun(first, "GET", "a")).body == NEW


async def test_a_part_of_an_object_that_another_gateway_has_replaced_is_of_the_new_one(tmp_path: Path) -> None:
    async with two_gateways(tmp_path) as (first, second, _):
        await remembered(first, "a")
        assert (await begun(second, "PUT", "a", NEW[:2000])).status == 200
        reply = await begun(first, "GET", "a", headers={"Range": "bytes=-10"})
        assert (reply.status, reply.body) == (206, NEW[1990:2000])


async def test_an_object_that_another_gateway_has_deleted_is_gone(tmp_path: Path) -> None:
    async with two_gateways(tmp_path) as (first, second, _):
        await remembered(first, "deep/a")
        assert (await begun(second, "DELETE", "deep/a")).status == 204
        assert code(await begun(first, "GET", "deep/a")) == "NoSuchKey"


async def test_a_bucket_that_another_gateway_has_made_anew_is_the_new_one(tmp_path: Path) -> None:
    async with two_gateways(tmp_path) as (first, second, _):
        await remembered(first, "a")
        assert (await begun(second, "DELETE", "a")).status == 204
        assert (await second.ask("DELETE", "/made")).status == 204
        assert code(await begun(first, "GET", "a")) == "NoSuchBucket"
        assert (await second.ask("PUT", "/made")).status == 200
        assert (await begun(second, "PUT", "a", NEW)).status == 200
        assert (await begun(first, "GET", "a")).body == NEW


async def test_a_put_into_a_bucket_that_another_gateway_has_made_anew_is_in_the_new_one(tmp_path: Path) -> None:
    async with two_gateways(tmp_path) as (first, second, _):
        await remembered(first, "a")
        assert (await begun(second, "DELETE", "a")).status == 204
        assert (await second.ask("DELETE", "/made")).status == 204
        assert (await second.ask("PUT", "/made")).status == 200
        assert (await begun(first, "PUT", "b", NEW)).status == 200
        assert (await begun(second, "GET", "b")).body == NEW


async def test_the_condition_of_a_put_is_judged_by_a_bucket_that_another_gateway_has_made_anew(tmp_path: Path) -> None:
    async with two_gateways(tmp_path) as (first, second, _):
        await remembered(first, "a")
        assert (await begun(second, "DELETE", "a")).status == 204
        assert (await second.ask("DELETE", "/made")).status == 204
        assert (await second.ask("PUT", "/made")).status == 200
        tag = (await begun(second, "PUT", "a", OLD)).headers["etag"]
        assert (await begun(first, "PUT", "a", NEW, headers={"If-Match": tag})).status == 200
        assert (await begun(second, "GET", "a")).body == NEW


async def test_a_put_into_a_bucket_that_another_gateway_has_deleted_is_refused(tmp_path: Path) -> None:
    async with two_gateways(tmp_path) as (first, second, _):
        await remembered(first, "a")
        assert (await begun(second, "DELETE", "a")).status == 204
        assert (await second.ask("DELETE", "/made")).status == 204
        assert code(await begun(first, "PUT", "b", NEW)) == "NoSuchBucket"


async def test_a_put_stores_its_body_while_the_directories_above_are_asked(tmp_path: Path) -> None:
    async with two_gateways(tmp_path) as (first, second, calls):
        await remembered(first, "deep/down/a")
        calls.made.clear()
        calls.held = frozenset({"read_slot"})
        reply = begun(first, "PUT", "deep/down/b", NEW)
        await until(lambda: len(calls.asked(*STORES)) == 1 and len(calls.asked("read_slot")) == 3)
        assert not calls.asked("test_and_write"), "it must not be linked before the bucket is known to exist"
        calls.release()
        assert (await reply).status == 200
        assert (await begun(second, "GET", "deep/down/b")).body == NEW


async def begin_listing(first: S3Rig) -> tuple[str, list[str]]:
    """Put objects into four directories of five, list the first page, and return the query for the second, and all keys."""
    keys = [f"top/{name}/{number}" for name in "abcd" for number in range(5)]
    for key in keys:
        assert (await begun(first, "PUT", key)).status == 200
    body = (await first.ask("GET", "/made?list-type=2&max-keys=5")).body
    assert texts(body, "Key") == keys[:5]
    return f"&max-keys=5&continuation-token={quote(*texts(body, 'NextContinuationToken'))}", keys


async def test_the_next_page_asks_at_once_for_all_directories_that_it_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "LONG", 5)
    async with two_gateways(tmp_path) as (first, _, calls):
        query, keys = await begin_listing(first)
        calls.made.clear()
        calls.held = frozenset({"read_slot"})
        page = Deferred.fromCoroutine(first.keys(query, "made"))
        # The directory of buckets, the bucket, `top`, and `top/c`: `top/b` is kept.
        await until(lambda: len(calls.asked("read_slot")) == 4)
        calls.release()
        assert await page == keys[5:10]
        assert len(calls.asked("read_slot")) == 4
        assert calls.asked("read_slot") == {about for _, about in calls.made}


async def test_the_next_page_has_what_another_gateway_has_put_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "LONG", 5)
    async with two_gateways(tmp_path) as (first, second, _):
        query, keys = await begin_listing(first)
        assert (await begun(second, "PUT", "top/bb/x")).status == 200
        assert await first.keys(query.replace("max-keys=5", "max-keys=7"), "made") == [
            *keys[5:10],
            "top/bb/x",
            "top/c/0",
        ]


async def test_the_next_page_of_a_bucket_that_another_gateway_has_made_anew_is_of_the_new_one(tmp_path: Path) -> None:
    async with two_gateways(tmp_path) as (first, second, _):
        query, keys = await begin_listing(first)
        for key in keys:
            assert (await begun(second, "DELETE", key)).status == 204
        assert (await second.ask("DELETE", "/made")).status == 204
        assert (await second.ask("PUT", "/made")).status == 200
        assert (await begun(second, "PUT", "z")).status == 200
        assert await first.keys(query, "made") == ["z"]


async def test_head_and_a_get_that_needs_no_bytes_read_none(tmp_path: Path) -> None:
    async with two_gateways(tmp_path) as (first, _, calls):
        await remembered(first, "a")
        tag = (await begun(first, "HEAD", "a")).headers["etag"]
        calls.made.clear()
        assert (await begun(first, "HEAD", "a")).status == 200
        assert (await begun(first, "GET", "a", headers={"If-None-Match": tag})).status == 304
        assert not calls.asked(*READS)
        assert len(calls.asked("read_slot")) == 2


async def test_a_read_whose_client_has_left_ends(tmp_path: Path) -> None:
    async with two_gateways(tmp_path) as (first, _, calls):
        await remembered(first, "a")
        calls.made.clear()
        calls.held = frozenset({"read_slot"})
        wire = await first.connect()
        wire.send(first.head("GET", path("a", "made"), {"Connection": "close"}))
        await until(lambda: bool(calls.asked(*READS)))
        assert first.rig.gateway.history.active
        cast(Any, wire.transport).abortConnection()
        await until(lambda: not first.rig.gateway.history.active)
        calls.release()
