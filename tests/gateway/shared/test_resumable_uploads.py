"""How long uploads wait for their next request."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from grid.gateway.faults import NotFound
from grid.gateway.shared.resumable_uploads import KEPT_S, ResumableUploads
from grid.gateway.shared.spool import SpoolFolder
from tests.support.virtual_time import VirtualRuntime


async def pieces(*data: bytes) -> AsyncIterator[bytes]:
    for piece in data:
        yield piece


def test_upload_expires_after_its_last_request_and_not_during_one(tmp_path: Path) -> None:
    runtime = VirtualRuntime()
    folder = SpoolFolder(tmp_path)
    uploads = ResumableUploads(folder, runtime)

    async def body() -> None:
        identifier = await uploads.create(2_000_000)
        with uploads.using(identifier) as upload:
            await uploads.append(upload, 0, pieces(b"a" * 500_000, b"b" * 100), lambda: None)
            await runtime.clock.sleep(3 * KEPT_S)
        await runtime.clock.sleep(KEPT_S - 1)
        with uploads.using(identifier) as upload:
            assert upload.spool.size == 500_100 and not upload.is_complete
        assert folder.held_size > 0
        await runtime.clock.sleep(KEPT_S + 1)
        with pytest.raises(NotFound), uploads.using(identifier):
            pass
        assert folder.held_size == 0 and len(uploads) == 0

    runtime.run(body())
