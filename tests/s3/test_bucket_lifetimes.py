"""A bucket that is deleted while objects are stored in it: each put is kept or refused, and none is lost."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from grid.caps import LitCap
from grid.s3.bucket import Bucket
from grid.s3.faults import S3Fault
from tests.gateway.rig import Reply
from tests.s3.rig import MAIN, S3Rig, code, path, running_door


async def opened_bucket(rig: S3Rig) -> Bucket:
    """A new bucket `mine`, as a request has it that found it before it was deleted."""
    assert (await rig.ask("PUT", "/mine")).status == 200
    return await rig.door.bucket(rig.accounts[MAIN], "mine")


async def link(bucket: Bucket) -> str:
    """Put an object; the code of the refusal."""
    try:
        await bucket.link("deep/a", LitCap(data=b"a"), lambda before: {})
    except S3Fault as fault:
        return fault.code
    return ""


class Meanwhile:
    """Begins something when the next publish begins, and waits for it."""

    def __init__(self, rig: S3Rig, begin: Callable[[], Coroutine[Deferred[Any], Any, Any]]) -> None:
        self._begin = begin
        self.begun: Deferred[Any] | None = None
        rig.rig.gateway.history.watch(self._watch)

    def _watch(self, operation: object) -> None:
        if getattr(operation, "kind", "") == "publish" and self.begun is None:
            self.begun = Deferred()
            Deferred.fromCoroutine(self._begin()).chainDeferred(self.begun)

    async def result(self) -> Any:
        """What came of it."""
        assert self.begun is not None
        return await self.begun


async def test_a_put_that_found_its_bucket_before_it_was_deleted_is_refused(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        bucket = await opened_bucket(rig)
        assert (await rig.ask("DELETE", "/mine")).status == 204
        assert await link(bucket) == "NoSuchBucket"


async def test_a_put_during_the_removal_of_its_bucket_is_refused(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        bucket = await opened_bucket(rig)
        put = Meanwhile(rig, lambda: link(bucket))
        assert (await rig.ask("DELETE", "/mine")).status == 204
        assert await put.result() == "NoSuchBucket"


async def test_a_bucket_is_kept_if_a_put_into_it_began_before_its_removal(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        bucket = await opened_bucket(rig)
        removal = Meanwhile(rig, lambda: rig.ask("DELETE", "/mine"))
        assert await link(bucket) == ""
        reply: Reply = await removal.result()
        assert code(reply) == "BucketNotEmpty"
        assert (await rig.ask("GET", path("deep/a", "mine"))).body == b"a"


async def test_a_put_whose_bucket_could_not_be_removed_is_kept(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        bucket = await opened_bucket(rig)
        await link(bucket)
        assert code(await rig.ask("DELETE", "/mine")) == "BucketNotEmpty"
        assert await link(bucket) == ""


async def test_a_put_waits_for_a_removal_whose_client_has_gone(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        bucket = await opened_bucket(rig)
        put: list[Deferred[str]] = []

        async def abandon() -> None:
            for request in list(rig.factory.requests):
                request.abort()
            put.append(Deferred.fromCoroutine(link(bucket)))

        gone = Meanwhile(rig, abandon)
        with pytest.raises(Exception):  # noqa: B017
            await rig.ask("DELETE", "/mine")
        await gone.result()
        refusal = await put[0]
        listed = (await rig.ask("GET", path("deep/a", "mine"))).status
        assert (refusal, listed) in {("", 200), ("NoSuchBucket", 404)}
