"""Small objects that come together share a pack and a publish; each is answered for itself."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.defer import Deferred, gatherResults

from grid.caps import ChkCap, KnownCap, LitCap, SliceCap
from grid.errors import NoSpaceError
from grid.extents.pack_writer import MOST_SIZE
from grid.s3 import packing
from tests.gateway.rig import Reply, Wire
from tests.s3.rig import S3Rig, code, path, running_door
from tests.s3.watched import STORES, Calls, until, watched_door

BUCKET = "made"
NAMES = [f"k{number:02}" for number in range(32)]


def body_of(name: str, size: int = 1000) -> bytes:
    return (name.encode() + b" ") * (size // (len(name) + 1))


@asynccontextmanager
async def packing_door(folder: Path, *, packs: bool = True) -> AsyncIterator[tuple[S3Rig, Calls]]:
    """A door that packs, and the calls of its gateway."""
    async with running_door(folder) as beside:
        assert (await beside.ask("PUT", f"/{BUCKET}")).status == 200
        async with watched_door(beside, packs=packs) as (door, calls):
            yield door, calls
            if door.door.packs is not None:
                await until(lambda: door.door.packs is None or door.door.packs.is_idle)
            assert door.door.services.settings.spools.held_size == 0


def putting(rig: S3Rig, name: str, body: bytes = b"", headers: Mapping[str, str] | None = None) -> Deferred[Reply]:
    return Deferred.fromCoroutine(rig.ask("PUT", path(name, BUCKET), body or body_of(name), headers))


def waiting(rig: S3Rig) -> int:
    assert rig.door.packs is not None
    return rig.door.packs.waiting_count


async def put_while_held(
    rig: S3Rig, calls: Calls, names: Sequence[str], headers: Mapping[str, Mapping[str, str]] | None = None
) -> tuple[Deferred[Reply], list[Deferred[Reply]]]:
    """Requests whose objects all wait, because a first put is under way."""
    calls.held = STORES
    first = putting(rig, "first")
    await until(lambda: bool(calls.waiting))
    rest = [putting(rig, name, headers=(headers or {}).get(name)) for name in names]
    await until(lambda: waiting(rig) == len(names))
    return first, rest


async def target_of(rig: S3Rig, name: str) -> KnownCap:
    account = rig.accounts["GKMAIN"]
    _, found = await rig.door.find(account, BUCKET, name)
    assert found is not None
    return found.target


async def targets_of(rig: S3Rig, names: Sequence[str]) -> list[KnownCap]:
    return [await target_of(rig, name) for name in names]


def call_count(calls: Calls, wanted: str) -> int:
    """Calls of a method, to all servers."""
    return sum(name == wanted for name, _ in calls.made)


async def test_objects_that_come_together_take_one_pack_and_one_publish(tmp_path: Path) -> None:
    async with packing_door(tmp_path) as (rig, calls):
        assert (await putting(rig, "before")).status == 200
        calls.made.clear()
        await putting(rig, "alone")
        publish = call_count(calls, "test_and_write")
        first, rest = await put_while_held(rig, calls, NAMES)
        calls.made.clear()
        calls.release()
        replies = list(await gatherResults([first, *rest]))
        assert {reply.status for reply in replies} == {200}
        assert len(calls.asked(*STORES)) == 1  # The first one's messages were on their way already.
        assert call_count(calls, "test_and_write") == 2 * publish
        assert call_count(calls, "read_slot") == len(rig.rig.servers)  # The directory of buckets, once for all.
        assert replies[1].headers["etag"] == f'"{hashlib.md5(body_of(NAMES[0])).hexdigest()}"'
        targets = await targets_of(rig, NAMES)
        assert len({target.pack for target in targets if isinstance(target, SliceCap)}) == 1
        assert all(isinstance(target, SliceCap) for target in targets)
        assert isinstance(await target_of(rig, "first"), ChkCap)
        for name in NAMES:
            assert (await rig.ask("GET", path(name, BUCKET))).body == body_of(name)


async def test_objects_that_come_at_the_same_time_take_few_packs(tmp_path: Path) -> None:
    async with packing_door(tmp_path) as (rig, calls):
        replies = list(await gatherResults([putting(rig, name) for name in NAMES]))
        assert {reply.status for reply in replies} == {200}
        assert len(calls.asked(*STORES)) <= len(NAMES) // 2
        assert await rig.keys(bucket=BUCKET) == NAMES


@pytest.mark.parametrize("coming", [3, 2], ids=["as many", "fewer"])
async def test_the_next_group_waits_a_moment_for_as_many_as_were_just_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, coming: int
) -> None:
    monkeypatch.setattr(packing, "QUIET", 10**6)
    monkeypatch.setattr(packing, "PAUSE", 10**6)
    monkeypatch.setattr(packing, "LONGEST_PAUSE_S", 10**6 if coming == 3 else 0.5)
    async with packing_door(tmp_path) as (rig, calls):
        first, rest = await put_while_held(rig, calls, NAMES[:2])
        calls.release()
        await first
        rest.append(putting(rig, NAMES[2]))
        assert {reply.status for reply in await gatherResults(rest)} == {200}
        after = [putting(rig, name) for name in NAMES[3:5]]
        await until(lambda: waiting(rig) == 2)
        after += [putting(rig, name) for name in NAMES[5 : 3 + coming]]
        assert {reply.status for reply in await gatherResults(after)} == {200}
        targets = await targets_of(rig, NAMES[3 : 3 + coming])
        assert len({target.pack for target in targets if isinstance(target, SliceCap)}) == 1
        rig.door.close()


async def test_an_object_alone_is_a_file_of_its_own(tmp_path: Path) -> None:
    async with packing_door(tmp_path) as (rig, _):
        for name in NAMES[:3]:
            assert (await putting(rig, name)).status == 200
            assert isinstance(await target_of(rig, name), ChkCap)


async def test_a_door_that_does_not_pack_makes_no_slices(tmp_path: Path) -> None:
    async with packing_door(tmp_path, packs=False) as (rig, _):
        await gatherResults([putting(rig, name) for name in NAMES])
        assert all(isinstance(target, ChkCap) for target in await targets_of(rig, NAMES))


async def test_objects_of_other_sizes_are_in_no_pack(tmp_path: Path) -> None:
    async with packing_door(tmp_path) as (rig, calls):
        first, rest = await put_while_held(rig, calls, NAMES[:2])
        others = [putting(rig, "tiny", b"tiny"), putting(rig, "long", bytes(MOST_SIZE + 1))]
        calls.release()
        await gatherResults([first, *rest, *others])
        assert isinstance(await target_of(rig, "tiny"), LitCap)
        assert isinstance(await target_of(rig, "long"), ChkCap)


async def test_equal_objects_take_their_room_in_a_pack_once(tmp_path: Path) -> None:
    async with packing_door(tmp_path) as (rig, calls):
        calls.held = STORES
        first = putting(rig, "first")
        await until(lambda: bool(calls.waiting))
        rest = [putting(rig, name, b"equal" * 100) for name in NAMES[:4]]
        await until(lambda: waiting(rig) == 4)
        calls.release()
        await gatherResults([first, *rest])
        targets = await targets_of(rig, NAMES[:4])
        assert all(isinstance(target, SliceCap) for target in targets)


async def test_if_a_pack_cannot_be_stored_none_of_its_objects_is_linked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*arguments: object, **named: object) -> None:
        raise NoSpaceError("no room")

    async with packing_door(tmp_path) as (rig, calls):
        first, rest = await put_while_held(rig, calls, NAMES)
        with monkeypatch.context() as patch:
            patch.setattr(rig.door.services.store, "put_unique", refuse)
            calls.release()
            replies = list(await gatherResults(rest))
        assert (await first).status == 200
        assert {(reply.status, code(reply)) for reply in replies} == {(507, "InsufficientStorage")}
        assert await rig.keys(bucket=BUCKET) == ["first"]
        assert (await putting(rig, "later")).status == 200


async def test_one_object_that_is_refused_holds_up_none_of_its_group(tmp_path: Path) -> None:
    async with packing_door(tmp_path) as (rig, calls):
        unless = {"If-None-Match": "*"}
        first, rest = await put_while_held(rig, calls, NAMES[:3], {"k01": unless})
        racing = putting(rig, "k01", b"it was here before that" * 10, unless)
        await until(lambda: waiting(rig) == 4)
        calls.release()
        replies = list(await gatherResults([first, *rest, racing]))
        assert [reply.status for reply in replies] == [200, 200, 200, 200, 412]
        assert code(replies[-1]) == "PreconditionFailed"
        for name in NAMES[:3]:
            assert (await rig.ask("GET", path(name, BUCKET))).body == body_of(name)


async def begun(rig: S3Rig, name: str, most: int) -> Wire:
    """A put that has sent this many bytes of its body."""
    body = body_of(name)
    wire = await rig.connect()
    fields = {"Content-Length": str(len(body)), "Connection": "close"}
    wire.send(rig.head("PUT", path(name, BUCKET), fields, payload=hashlib.sha256(body).hexdigest()) + body[:most])
    await until(lambda: len(rig.factory.requests) > 0)
    return wire


async def test_a_slow_client_holds_up_nobody(tmp_path: Path) -> None:
    async with packing_door(tmp_path) as (rig, calls):
        slow = await begun(rig, "slow", 500)
        first, rest = await put_while_held(rig, calls, NAMES[:4])
        calls.release()
        assert {reply.status for reply in await gatherResults([first, *rest])} == {200}
        slow.send(body_of("slow")[500:])
        assert (await slow.reply()).status == 200
        assert await rig.keys(bucket=BUCKET) == ["first", *NAMES[:4], "slow"]


@pytest.mark.parametrize("most", [500, 2000], ids=["in its body", "while it waits"])
async def test_an_object_whose_client_is_gone_is_in_no_group(tmp_path: Path, most: int) -> None:
    async with packing_door(tmp_path) as (rig, calls):
        first, rest = await put_while_held(rig, calls, NAMES[:3])
        gone = await begun(rig, "gone", most)
        await until(lambda: len(rig.factory.requests) == 5 and waiting(rig) == 3 + (most > 1000))
        gone.transport.abortConnection()  # type: ignore[union-attr]
        await until(lambda: len(rig.factory.requests) == 4 and waiting(rig) == 3)
        calls.release()
        assert {reply.status for reply in await gatherResults([first, *rest])} == {200}
        targets = await targets_of(rig, NAMES[:3])
        packs = {target.pack for target in targets if isinstance(target, SliceCap)}
        assert [pack.size for pack in packs] == [sum(len(body_of(name)) for name in NAMES[:3])]
        assert await rig.keys(bucket=BUCKET) == ["first", *NAMES[:3]]


async def test_a_group_whose_clients_are_all_gone_is_given_up(tmp_path: Path) -> None:
    async with packing_door(tmp_path) as (rig, calls):
        calls.held = STORES
        gone = await begun(rig, "gone", 2000)
        await until(lambda: bool(calls.waiting))
        gone.transport.abortConnection()  # type: ignore[union-attr]
        await until(lambda: rig.door.packs is not None and rig.door.packs.is_idle)
        calls.release()
        assert (await putting(rig, "later")).status == 200
        assert await rig.keys(bucket=BUCKET) == ["later"]


async def test_the_client_of_one_object_that_goes_while_its_pack_is_stored_takes_no_other_with_it(
    tmp_path: Path,
) -> None:
    async with packing_door(tmp_path) as (rig, calls):
        first, rest = await put_while_held(rig, calls, NAMES[:2])
        gone = await begun(rig, "gone", 2000)
        await until(lambda: waiting(rig) == 3)
        held, calls.waiting = calls.waiting, []
        for each in held:
            each.callback(None)
        assert (await first).status == 200
        await until(lambda: waiting(rig) == 0 and bool(calls.waiting))
        gone.transport.abortConnection()  # type: ignore[union-attr]
        await until(lambda: len(rig.factory.requests) == 2)
        calls.release()
        assert {reply.status for reply in await gatherResults(rest)} == {200}
        assert await rig.keys(bucket=BUCKET) == ["first", *NAMES[:2]]


async def test_the_client_of_one_object_that_goes_while_its_group_waits_for_its_turn_takes_no_other_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with packing_door(tmp_path) as (rig, calls):
        first, rest = await put_while_held(rig, calls, NAMES[:2])
        gone = await begun(rig, "gone", 2000)
        last = putting(rig, "last")
        await until(lambda: waiting(rig) == 4)
        stores, asked, gate = rig.door.services.stores, list[int](), Deferred[None]()
        turn_of = stores.turn

        @asynccontextmanager
        async def turn(size: int) -> AsyncIterator[None]:
            asked.append(size)
            await gate
            async with turn_of(size):
                yield

        monkeypatch.setattr(stores, "turn", turn)
        calls.release()
        await until(lambda: bool(asked))
        gone.transport.abortConnection()  # type: ignore[union-attr]
        await until(lambda: len(rig.factory.requests) == 3)
        gate.callback(None)
        assert {reply.status for reply in await gatherResults([first, *rest, last])} == {200}
        targets = await targets_of(rig, [*NAMES[:2], "last"])
        packs = {target.pack for target in targets if isinstance(target, SliceCap)}
        assert [pack.size for pack in packs] == [sum(len(body_of(name)) for name in (*NAMES[:2], "last"))]
        for name in (*NAMES[:2], "last"):
            assert (await rig.ask("GET", path(name, BUCKET))).body == body_of(name)


@pytest.mark.parametrize(("limit", "value"), [("MOST_OBJECTS", 4), ("MOST_BYTES", 4000)])
async def test_a_group_has_bounds_and_one_that_is_full_waits_for_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    monkeypatch.setattr(packing, limit, value)
    async with packing_door(tmp_path) as (rig, calls):
        calls.held = STORES
        first = putting(rig, "first")
        await until(lambda: bool(calls.waiting))
        rest = [putting(rig, name) for name in NAMES[:10]]
        await until(lambda: len(calls.asked(*STORES)) == 3 and waiting(rig) == 2)
        calls.release()
        assert {reply.status for reply in await gatherResults([first, *rest])} == {200}
        packs: dict[Any, int] = {}
        for target in await targets_of(rig, NAMES[:10]):
            assert isinstance(target, SliceCap)
            packs[target.pack] = packs.get(target.pack, 0) + 1
        assert sorted(packs.values()) == [2, 4, 4]


async def test_objects_of_two_buckets_share_no_pack(tmp_path: Path) -> None:
    async with packing_door(tmp_path) as (rig, calls):
        first, rest = await put_while_held(rig, calls, NAMES[:3])
        other = [Deferred.fromCoroutine(rig.ask("PUT", path(name), body_of(name))) for name in NAMES[3:6]]
        await until(lambda: waiting(rig) == 5)
        calls.release()
        assert {reply.status for reply in await gatherResults([first, *rest, *other])} == {200}
        here = await targets_of(rig, NAMES[:3])
        root = rig.accounts["GKMAIN"].buckets["bucket"]
        there = [child.target for child in (await rig.door.directories.read(root)).values()]
        packs = [{target.pack for target in targets if isinstance(target, SliceCap)} for targets in (here, there)]
        assert [len(each) for each in packs] == [1, 1]
        assert packs[0] != packs[1]


async def test_all_that_clients_do_with_objects_they_do_with_those_in_packs(tmp_path: Path) -> None:
    headers = {
        "a": {"x-amz-meta-color": "red", "Content-Type": "text/plain", "x-amz-tagging": "l=v"},
        "b": {"x-amz-checksum-algorithm": "SHA256"},
    }
    body = body_of("a")
    etag = f'"{hashlib.md5(body).hexdigest()}"'
    async with packing_door(tmp_path) as (rig, calls):
        first, rest = await put_while_held(rig, calls, ["a", "b", "deep/c"], headers)
        calls.release()
        assert {reply.status for reply in await gatherResults([first, *rest])} == {200}
        target = await target_of(rig, "a")
        assert isinstance(target, SliceCap)
        head = await rig.ask("HEAD", path("a", BUCKET))
        said = [head.headers[name] for name in ("content-length", "etag", "x-amz-meta-color", "content-type")]
        assert said == [str(len(body)), etag, "red", "text/plain"]
        part = await rig.ask("GET", path("a", BUCKET), headers={"Range": "bytes=10-99"})
        assert (part.status, part.body) == (206, body[10:100])
        assert (await rig.ask("GET", path("a", BUCKET), headers={"If-None-Match": etag})).status == 304
        assert (await rig.ask("GET", path("a", BUCKET), headers={"If-Match": '"other"'})).status == 412
        listing = await rig.ask("GET", f"/{BUCKET}?list-type=2")
        assert f"<Size>{len(body)}</Size>".encode() in listing.body
        copied = await rig.ask("PUT", path("copy", BUCKET), headers={"x-amz-copy-source": f"{BUCKET}/a"})
        assert copied.status == 200
        assert await target_of(rig, "copy") == target
        assert (await rig.ask("PUT", f"{path('a', BUCKET)}?tagging", _TAGS)).status == 200
        assert b"<Value>w</Value>" in (await rig.ask("GET", f"{path('a', BUCKET)}?tagging")).body
        assert (await rig.ask("DELETE", path("a", BUCKET))).status == 204
        assert (await rig.ask("GET", path("copy", BUCKET))).body == body
        assert (await rig.ask("GET", path("deep/c", BUCKET))).body == body_of("deep/c")
        assert await rig.keys(bucket=BUCKET) == ["b", "copy", "deep/c", "first"]


_TAGS = b"<Tagging><TagSet><Tag><Key>l</Key><Value>w</Value></Tag></TagSet></Tagging>"
