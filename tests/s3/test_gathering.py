"""Many changes at once, by one gateway or two: few publishes, an answer for each, and nothing lost."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from twisted.internet import reactor
from twisted.internet.defer import Deferred, DeferredList, gatherResults
from twisted.internet.task import deferLater

from grid.caps import LitCap
from grid.directory.edits import SetChild
from grid.directory.file_store import FileStore
from grid.directory.gathering import Directories
from grid.engine.grid import Encoding
from grid.errors import ExistingChildError, NoSpaceError
from grid.gateway.site import Gateway
from grid.placement.leases import LeaseMaster
from tests.gateway.rig import Nobody, Reply, Rig
from tests.s3.rig import MAIN, S3Rig, code, opened, path, running_door, texts
from tests.support.grids import grid_of

ENCODING = Encoding(k=2, n=4, happy=2, max_segment_size=2**17)


class Publishes:
    """Counts the publishes of a gateway."""

    def __init__(self, rig: S3Rig) -> None:
        self.count = 0
        rig.rig.gateway.history.watch(self._watch)

    def _watch(self, operation: object) -> None:
        self.count += getattr(operation, "kind", "") == "publish" and not getattr(operation, "is_active", True)


async def put_all(rig: S3Rig, keys: list[str]) -> list[Reply]:
    asked = [Deferred.fromCoroutine(rig.ask("PUT", path(key), key.encode())) for key in keys]
    return list(await gatherResults(asked))


async def test_a_directory_in_the_way_of_a_file_is_refused_where_both_cannot_exist(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        root = rig.accounts[MAIN].buckets["bucket"]
        directories = Directories(rig.door.services.store)
        await directories.change(root, lambda look, retrying: (SetChild("f", LitCap(data=b"f"), {}),))
        with pytest.raises(ExistingChildError):
            await directories.make(root, "f")
        assert await rig.keys() == ["f"]


async def test_a_hundred_puts_at_a_time_take_a_few_publishes(tmp_path: Path) -> None:
    keys = [f"k{number:03}" for number in range(100)]
    async with running_door(tmp_path) as rig:
        publishes = Publishes(rig)
        assert {reply.status for reply in await put_all(rig, keys)} == {200}
        assert publishes.count <= 50
        assert await rig.keys() == keys


async def test_a_deletion_of_a_thousand_objects_takes_few_publishes_and_one_of_more_removes_none(
    tmp_path: Path,
) -> None:
    keys = [f"k{number:04}" for number in range(1000)]

    def wanted(keys: list[str]) -> bytes:
        return f"<Delete>{''.join(f'<Object><Key>{key}</Key></Object>' for key in keys)}</Delete>".encode()

    async with running_door(tmp_path) as rig:
        await rig.ask("PUT", path("kept"), b"1")
        store, root = rig.rig.gateway.store, rig.accounts[MAIN].buckets["bucket"]
        kept = (await store.directory(root).list())["kept"]
        await store.directory(root).edit([SetChild(key, kept.target, {}) for key in keys])
        assert code(await rig.ask("POST", "/bucket?delete", wanted([*keys, "one more"]))) == "MalformedXML"
        assert len(await rig.keys()) == 1000
        publishes = Publishes(rig)
        many = await rig.ask("POST", "/bucket?delete", wanted([*keys[:-1], keys[0]]))
        assert len(texts(many.body, "Deleted")) == 1000
        assert await rig.keys() == [keys[-1], "kept"]
        assert publishes.count <= 100


async def test_changes_that_come_during_a_publish_go_out_with_the_next_one(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        publishes = Publishes(rig)
        root = rig.accounts[MAIN].buckets["bucket"]

        def change(number: int) -> Deferred[None]:
            edits = (SetChild(f"k{number}", LitCap(data=b"%d" % number), {}),)
            return Deferred.fromCoroutine(rig.door.directories.change(root, lambda look, retrying: edits))

        await gatherResults([change(number) for number in range(100)])
        assert publishes.count == 2
        assert len(await rig.keys()) == 100


async def test_paths_that_are_asked_for_together_share_reads_and_none_depends_on_another(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        await put_all(rig, ["deep/down/a", "deep/b"])
        root, directories = rig.accounts[MAIN].buckets["bucket"], rig.door.directories
        reads: list[object] = []
        rig.rig.gateway.history.watch(
            lambda operation: reads.append(operation) if operation.kind == "retrieve" else None
        )
        with directories.together():
            asked = [
                Deferred.fromCoroutine(directories.read_path(root, names))
                for names in (("deep",), ("deep", "down"), ("deep",), ("deep",))
            ]
        gone = asked.pop()
        gone.addErrback(lambda _: None)
        gone.cancel()
        found = list(await gatherResults(asked))
        assert [len(levels) for levels in found] == [2, 3, 2]
        assert {name for levels in found for name in levels[-1]} == {"down", "b", "a"}
        assert len({id(each) for each in reads}) == 3


async def test_puts_at_a_time_into_a_directory_that_is_missing_make_it_once(tmp_path: Path) -> None:
    keys = [f"deep/down/k{number:02}" for number in range(20)]
    async with running_door(tmp_path) as rig:
        publishes = Publishes(rig)
        await put_all(rig, keys)
        assert await rig.keys() == keys
        assert publishes.count <= 20


async def test_of_many_puts_that_must_be_first_only_one_succeeds(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        asked = [
            Deferred.fromCoroutine(rig.ask("PUT", path("a"), b"the same", {"If-None-Match": "*"})) for _ in range(12)
        ]
        replies = list(await gatherResults(asked))
        assert [reply.status for reply in replies].count(200) == 1
        assert {code(reply) for reply in replies if reply.status != 200} == {"PreconditionFailed"}


async def test_a_gateway_that_dies_during_a_publish_has_lost_nothing_that_it_answered(tmp_path: Path) -> None:
    keys = [f"{number % 3}/k{number:02}" for number in range(60)]
    async with running_door(tmp_path) as first:
        answered: set[str] = set()

        async def put(key: str) -> None:
            reply = await first.ask("PUT", path(key), key.encode())
            if reply.status == 200:
                answered.add(key)

        def asked(some: list[str]) -> Deferred[Any]:
            return DeferredList([Deferred.fromCoroutine(put(key)) for key in some], consumeErrors=True)

        await asked(keys[:30])
        assert answered == set(keys[:30])
        others = asked(keys[30:])
        while len(first.factory.requests) < 5:
            await deferLater(cast(Any, reactor), 0)
        for request in list(first.factory.requests):
            request.abort()
        first.door.directories.close()
        await others
        assert len(answered) < len(keys)
        async with beside(first) as second:
            listed = await second.keys()
            assert answered <= set(listed)
            for key in listed:
                assert (await second.ask("GET", path(key))).body == key.encode()


@asynccontextmanager
async def beside(first: S3Rig) -> AsyncIterator[S3Rig]:
    """The door of another gateway on the same grid."""
    rig = first.rig
    grid = grid_of(rig.servers, rig.gateway.store.runtime, leases=LeaseMaster(bytes(32)), encoding=ENCODING)
    other = Gateway(store=FileStore(grid=grid), client=Nobody(), settings=rig.gateway.settings)
    async with opened(Rig(other, rig.factory, 0, rig.servers), first.accounts) as second:
        yield second


async def test_two_gateways_on_one_bucket_lose_nothing_that_either_answered(tmp_path: Path) -> None:
    async with running_door(tmp_path) as first, beside(first) as second:
        keys = [
            [f"{name}/{number}" for number in range(8)] + [f"{name}{number}" for number in range(8)] for name in "ab"
        ]
        shared = [f"both/{number}" for number in range(8)]
        asked = [
            Deferred.fromCoroutine(put_all(door, [*own, *shared]))
            for door, own in zip((first, second), keys, strict=True)
        ]
        answered = [reply.status for replies in await gatherResults(asked) for reply in replies]
        assert set(answered) <= {200, 409}
        put = [*keys[0], *shared, *keys[1], *shared]
        kept = {key for key, status in zip(put, answered, strict=True) if status == 200}
        assert len(kept) > 20
        for door in (first, second):
            assert set(await door.keys()) >= kept
            for key in sorted(kept):
                assert (await door.ask("GET", path(key))).body == key.encode()


async def test_puts_that_hold_although_servers_are_full_are_refused_and_done_when_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*arguments: object) -> None:
        raise NoSpaceError("no room")

    keys = ["a", "b", "c"]
    async with running_door(tmp_path) as rig:
        await put_all(rig, ["first"])
        with monkeypatch.context() as patch:
            for server in rig.door.services.store.grid.servers[1:]:
                patch.setattr(server, "test_and_write", refuse)
            refused = await put_all(rig, keys)
        assert {(reply.status, code(reply)) for reply in refused} == {(503, "ServiceUnavailable")}
        assert all(b"the change is in force all the same" in reply.body for reply in refused)
        assert await rig.keys() == [*keys, "first"]
        assert {reply.status for reply in await put_all(rig, keys)} == {200}


async def test_a_conditional_deletion_is_refused_although_only_another_gateway_knows_the_newer_object(
    tmp_path: Path,
) -> None:
    async with running_door(tmp_path) as first, beside(first) as second:
        old = [(await first.ask("PUT", path(key), b"old")).headers["etag"] for key in "ab"]
        for key in "ab":
            await second.ask("PUT", path(key), b"newer")
        assert (await first.ask("DELETE", path("a"), headers={"If-Match": old[0]})).status == 412
        wanted = f"<Delete><Object><Key>b</Key><ETag>{old[1]}</ETag></Object></Delete>".encode()
        assert code(await first.ask("POST", "/bucket?delete", wanted)) == "PreconditionFailed"
        for key in "ab":
            assert (await second.ask("GET", path(key))).body == b"newer"
