"""A bucket that one gateway deletes while another stores an object in it, with either of them held up at each of its calls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, cast

import pytest
from attrs import evolve
from twisted.internet.defer import Deferred

from grid.caps import DirectoryCap, LitCap
from grid.directory.edits import SetChild
from grid.directory.file_store import FileStore
from grid.directory.gathering import Directories
from grid.engine.grid import Encoding
from grid.errors import GridError, PeerUnreachableError
from grid.ports import Allocation, StorageServer, Upload
from grid.s3.bucket import Bucket
from grid.s3.faults import S3Fault, s3_fault
from grid.s3.lifetimes import BucketLink, Lifetimes
from grid.s3.listing import Lister, Query
from grid.s3.names import MARK, beside_of
from grid.s3.removal import FIELD, remove_bucket
from tests.support.tree_grid import TreeGrid

KEYS = ("a", "deep/b", "new/c")
ROWS = [("a", 1), ("deep/b", 2), ("new/c", 1)]
"""Keys in the bucket's own directory, in one that is there, and in one that is not; and how many servers there are."""
Work = Callable[[], Coroutine[Any, Any, str]]


class HeldUp:
    """A server, or an upload to it, as one gateway sees it: something else is done before each call."""

    def __init__(self, inner: StorageServer | Upload, before: Callable[[], Awaitable[None]]) -> None:
        self._inner = inner
        self._before = before

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not callable(found):
            return found

        async def call(*arguments: Any) -> Any:
            await self._before()
            answer = await found(*arguments)
            if isinstance(answer, Allocation):
                answer = evolve(answer, upload=HeldUp(answer.upload, self._before))
            return answer

        return call


class Gateway:
    """One gateway, and what it was answered."""

    def __init__(self, grid: TreeGrid, home: DirectoryCap) -> None:
        self._home = home
        self._lifetimes = Lifetimes()
        servers = [cast(StorageServer, HeldUp(server, self._before)) for server in grid.servers]
        store = FileStore(grid=evolve(grid.store.grid, servers=servers, encoding=grid.encoding))
        self.directories = Directories(store, beside_of)
        self._lister = Lister(self.directories, store.runtime)
        self._clock = store.runtime.clock
        self.calls = 0
        self._at = -1
        self._other: Work | None = None
        self._under_way: Deferred[str] | None = None
        self.is_dead = False

    async def _before(self) -> None:
        self.calls += 1
        other = self._other
        if self.is_dead:
            raise PeerUnreachableError("the process that calls is dead")
        if other is not None and self.calls > self._at:
            self._other = None
            self._under_way = Deferred.fromCoroutine(other())
            done: Deferred[None] = Deferred()

            def ended(result: Any) -> Any:
                done.callback(None)
                return result

            # A call that its caller gives up does not end what holds it up.
            self._under_way.addBoth(ended)
            await done

    def hold(self, at: int, other: Work) -> None:
        """Do something else before the call of this number, from 0."""
        self.calls, self._at, self._other = 0, at, other

    async def result_of_other(self) -> str:
        """What came of it; "not begun" if there was no such call."""
        return "not begun" if self._under_way is None else await self._under_way

    async def die(self) -> str:
        """End this process: none of its calls reaches a server any more."""
        self.is_dead = True
        return ""

    async def bucket(self) -> Bucket:
        """The bucket as a request finds it; NoSuchBucket."""
        child = (await self.directories.read(self._home)).get("bucket")
        if child is None or not isinstance(root := child.target, DirectoryCap):
            raise S3Fault("NoSuchBucket")
        link = BucketLink("bucket", root, self._home, self.directories, self._lifetimes.of(root))
        return Bucket("bucket", root, self.directories, self._clock, link)

    async def put(self, key: str) -> str:
        """Put an object; the code of the refusal, if any."""
        try:
            await (await self.bucket()).link(key, LitCap(data=b"data"), lambda before: {})
        except GridError as error:
            return s3_fault(error).code
        return ""

    async def delete(self) -> str:
        """Delete the bucket; the code of the refusal, if any."""
        try:
            link = (await self.bucket()).bucket_link
            assert link is not None
            await remove_bucket(link, self._lister, f"{id(self):032x}")
        except GridError as error:
            return s3_fault(error).code
        return ""

    async def remove(self, key: str) -> str:
        """Remove an object."""
        await (await self.bucket()).remove(key)
        return ""

    async def keys(self) -> list[str] | None:
        """All keys; None if the bucket is gone."""
        try:
            bucket = await self.bucket()
        except S3Fault:
            return None
        return [entry.key for entry in (await self._lister.page(bucket.root, Query())).entries]


class Scene:
    """A grid, and a bucket with an empty directory `deep`."""

    def __init__(self, servers: int = 1) -> None:
        self.grid = TreeGrid(servers, Encoding(k=1, n=servers, happy=servers, max_segment_size=2**17))
        self.home, self.root, self.deep = [self.grid.run(self.grid.store.create_directory()) for _ in range(3)]
        self._link(self.home, "bucket", self.root)
        self._link(self.root, "deep", self.deep)

    def _link(self, parent: DirectoryCap, name: str, target: DirectoryCap) -> None:
        self.grid.run(self.grid.store.directory(parent).edit([SetChild(name, target, {})]))

    def gateway(self) -> Gateway:
        """Another gateway."""
        return Gateway(self.grid, self.home)

    def keys(self) -> list[str] | None:
        """All keys, for a gateway that knows nothing yet."""
        return self.grid.run(self.gateway().keys())

    def has_marks(self) -> bool:
        """Whether anything of a removal is left in the bucket or its link."""
        marked = [MARK in self.grid.names(cap) for cap in (self.root, self.deep)]
        link = self.grid.run(self.grid.client().directory(self.home).get(["bucket"]))
        return any(marked) or FIELD in (link.metadata or {})


def expect_nothing_lost(scene: Scene, key: str, put: str, deleted: str) -> None:
    """An object that was acknowledged is there; a deletion that was acknowledged has refused it, or it failed.

    Where one is held up for so long that servers count as lost, it may fail with neither of the usual refusals.
    """
    if put == "":
        assert deleted != ""
        assert scene.keys() == [key]
        assert deleted != "BucketNotEmpty" or not scene.has_marks()
    if put == "NoSuchBucket" or deleted == "":
        assert scene.keys() is None


def calls_of(work: Callable[[Gateway], Coroutine[Any, Any, str]], servers: int = 1) -> range:
    """The numbers of the calls that one gateway makes if nobody holds it up."""
    scene = Scene(servers)
    gateway = scene.gateway()
    assert scene.grid.run(work(gateway)) == ""
    return range(gateway.calls)


@pytest.mark.parametrize(("key", "servers"), ROWS)
def test_a_put_by_another_gateway_during_a_deletion_is_refused_or_keeps_the_bucket(key: str, servers: int) -> None:
    outcomes = set()
    for at in calls_of(Gateway.delete, servers):
        scene = Scene(servers)
        first, second = scene.gateway(), scene.gateway()
        first.hold(at, partial(second.put, key))
        deleted = scene.grid.run(first.delete())
        expect_nothing_lost(scene, key, scene.grid.run(first.result_of_other()), deleted)
        outcomes.add(deleted)
    assert "BucketNotEmpty" in outcomes


@pytest.mark.parametrize(("key", "servers"), ROWS)
def test_a_deletion_by_another_gateway_during_a_put_is_refused_or_refuses_the_put(key: str, servers: int) -> None:
    outcomes = set()
    for at in calls_of(lambda gateway: gateway.put(key), servers):
        scene = Scene(servers)
        first, second = scene.gateway(), scene.gateway()
        first.hold(at, second.delete)
        put = scene.grid.run(first.put(key))
        expect_nothing_lost(scene, key, put, scene.grid.run(first.result_of_other()))
        outcomes.add(put)
    assert "NoSuchBucket" in outcomes


def test_deletions_by_two_gateways_at_once_remove_the_bucket_once() -> None:
    for at in calls_of(Gateway.delete):
        scene = Scene()
        first, second = scene.gateway(), scene.gateway()
        first.hold(at, second.delete)
        assert "" in (scene.grid.run(first.delete()), scene.grid.run(first.result_of_other()))
        assert scene.keys() is None


def test_a_deletion_that_was_killed_hinders_neither_puts_nor_another_deletion() -> None:
    outcomes = set()
    for at in calls_of(Gateway.delete):
        scene = Scene()
        first, second = scene.gateway(), scene.gateway()
        first.hold(at, first.die)
        scene.grid.run(first.delete())
        is_there = scene.keys() is not None
        for key in KEYS:
            assert scene.grid.run(second.put(key)) == ("" if is_there else "NoSuchBucket")
        assert scene.keys() == (sorted(KEYS) if is_there else None)
        for key in KEYS if is_there else ():
            scene.grid.run(second.remove(key))
        assert scene.grid.run(second.delete()) == ("" if is_there else "NoSuchBucket")
        assert scene.keys() is None
        outcomes.add(is_there)
    assert outcomes == {True, False}
