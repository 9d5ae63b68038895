"""kill -9 of a gateway at each call of a group commit: no object that was acknowledged is lost, and none is half there."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, cast

from attrs import define, evolve
from twisted.internet.defer import Deferred, DeferredList

from grid.caps import DirectoryCap
from grid.directory.file_store import FileStore
from grid.directory.gathering import Directories
from grid.engine.grid import Encoding
from grid.errors import PeerUnreachableError
from grid.mutable.sources import MemorySource
from grid.ports import Allocation, StorageServer, Upload
from grid.s3.bucket import Bucket
from grid.s3.conditions import Conditions
from grid.s3.listing import Lister, Query
from grid.s3.names import beside_of
from grid.s3.object_info import ObjectInfo
from grid.s3.objects import link_object
from grid.sinks import BytesSink
from tests.support.tree_grid import TreeGrid

ENCODING = Encoding(k=2, n=3, happy=2, max_segment_size=2**17)
KEYS = ("kept", "a", "deep/b", "deep/c")
AFTER = "after"
OLD = b"old data that is there before " * 5
PLENTY = 10**6


@define(eq=False)
class Life:
    """A gateway's process: it is dead after this number of calls."""

    calls: int

    @property
    def is_over(self) -> bool:
        """Whether it is dead."""
        return self.calls < 0

    def require(self) -> None:
        """Raise if it is dead."""
        if self.is_over:
            raise PeerUnreachableError("the process that calls is dead")


class SeenByOne:
    """A server, or an upload to it, as one process sees it: nothing is sent after its death, and no answer comes."""

    def __init__(self, inner: StorageServer | Upload, life: Life) -> None:
        self._inner = inner
        self._life = life

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not callable(found):
            return found

        async def call(*arguments: Any) -> Any:
            self._life.calls -= 1
            self._life.require()
            answer = await found(*arguments)
            self._life.require()
            if isinstance(answer, Allocation):
                answer = evolve(answer, upload=SeenByOne(answer.upload, self._life))
            return answer

        return call


class Process:
    """A gateway's process, and the objects that it acknowledged."""

    def __init__(self, grid: TreeGrid, root: DirectoryCap, calls: int = PLENTY) -> None:
        self.life = Life(calls)
        servers = [cast(StorageServer, SeenByOne(server, self.life)) for server in grid.servers]
        self._store = FileStore(grid=evolve(grid.store.grid, servers=servers, encoding=ENCODING))
        self._directories = Directories(self._store, beside_of)
        self._bucket = Bucket("bucket", root, self._directories, self._store.runtime.clock)
        self.acknowledged: set[str] = set()

    async def put(self, key: str, data: bytes) -> None:
        """As PutObject does it."""
        target = await self._store.put_immutable(MemorySource(data))
        info = ObjectInfo(etag=hashlib.md5(data).hexdigest(), modified=1.0, nonce=key)
        await link_object(self._bucket, key, target, info, Conditions())
        if not self.life.is_over:
            self.acknowledged.add(key)

    async def put_all(self) -> None:
        """Many puts at once. Those of a dead process fail by themselves."""
        puts = [Deferred.fromCoroutine(self.put(key, new_data(key))) for key in KEYS]
        await DeferredList(puts, consumeErrors=True)

    async def objects(self) -> Mapping[str, bytes]:
        """Every object that is listed, with its bytes, which are those of its ETag."""
        found = {}
        lister = Lister(self._directories, self._store.runtime)
        for entry in (await lister.page(self._bucket.root, Query())).entries:
            stored = await self._bucket.find(entry.key)
            assert stored is not None and entry.found is not None
            sink = BytesSink()
            await self._store.read_bytes(stored.target, sink)
            data = found[entry.key] = bytes(sink.data)
            assert hashlib.md5(data).hexdigest() == stored.info.etag == entry.found.etag
        return found


def new_data(key: str) -> bytes:
    """What is put under a key."""
    return f"new {key} ".encode() * 20


def killed_after(calls: int) -> tuple[set[str], Mapping[str, bytes], int]:
    """What a gateway acknowledged before its death, what another one finds then, and how many calls the first had left."""
    grid = TreeGrid(3, ENCODING)
    root = grid.run(grid.store.create_directory())
    grid.run(Process(grid, root).put("kept", OLD))
    first, second = Process(grid, root, calls), Process(grid, root)
    grid.run(first.put_all())
    acknowledged, left = set(first.acknowledged), first.life.calls
    found = grid.run(second.objects())
    grid.run(second.put(AFTER, new_data(AFTER)))
    assert grid.run(Process(grid, root).objects()) == {**found, AFTER: new_data(AFTER)}
    return acknowledged, found, left


def test_a_gateway_that_is_killed_at_any_call_of_a_group_commit_loses_nothing_and_leaves_no_half() -> None:
    acknowledged, found, left = killed_after(PLENTY)
    assert acknowledged == set(KEYS) == set(found)
    seen = set()
    for calls in range(PLENTY - left):
        acknowledged, found, _ = killed_after(calls)
        assert acknowledged <= set(found), calls
        for key, data in found.items():
            assert data == new_data(key) or (key == "kept" and data == OLD and key not in acknowledged), (calls, key)
        assert "kept" in found, calls
        seen.add(len(acknowledged))
    assert len(seen) > 2, "some puts were acknowledged while others were not"
