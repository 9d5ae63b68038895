"""A disk that becomes read-only under a running server: it serves what it has, refuses the rest, and recovers."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from typing import Any

import pytest

from grid.errors import GridError, NoSpaceError
from grid.ports import Buffer, ShareNumber, ShareWrite, StorageIndex, StorageServer
from grid.storage.files.disk import Handle
from grid.storage.files.memory_disk import MemoryDisk
from tests.contract.storage_server import lease, plain, put, share_numbers, slot_secrets, vector
from tests.support.faulty_disk import FaultyDisk
from tests.support.storage import ServiceScene

INDEX = StorageIndex(b"immutable index!")
OTHER = StorageIndex(b"another index...")
NEW = StorageIndex(b"not yet stored..")
WHOLE = (0, 10_000)


class MountedDisk(FaultyDisk):
    """A disk as the system shows one: while it is read-only, whatever would change it fails."""

    is_read_only = False

    def _refuse(self) -> None:
        if self.is_read_only:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    def _call(self, function: Any, *arguments: Any, **options: Any) -> Any:
        if function.__name__ in _CHANGING or options.get("writable"):
            self._refuse()
        return super()._call(function, *arguments, **options)

    def write(self, handle: Handle, offset: int, pieces: Sequence[Buffer]) -> None:
        self._refuse()
        super().write(handle, offset, pieces)


_CHANGING = frozenset({"make_directory", "remove_directory", "rename", "unlink", "create_file", "truncate"})


@pytest.fixture
def disk() -> MountedDisk:
    return MountedDisk(MemoryDisk())


@pytest.fixture
def scene(disk: MountedDisk) -> ServiceScene:
    scene = ServiceScene(disk)
    scene.run(put(scene.service, INDEX, {0: b"data", 1: b"more"}))
    scene.run(scene.service.test_and_write(OTHER, slot_secrets(), {ShareNumber(0): vector((0, b"slot"))}))
    return scene


async def is_refused(server: StorageServer, index: StorageIndex) -> bool:
    """Whether no new share is taken."""
    try:
        return not (await server.allocate(index, lease(), share_numbers(3), 4)).upload.share_numbers
    except GridError:
        return True


def require_served(scene: ServiceScene) -> None:
    """All that was there is still there."""
    service = scene.service
    assert plain(scene.run(service.find_shares(INDEX, [WHOLE]))) == {0: [b"data"], 1: [b"more"]}
    assert plain(scene.run(service.read_shares(INDEX, {ShareNumber(1): [WHOLE]}))) == {1: [b"more"]}
    assert plain(scene.run(service.read_slot(OTHER, frozenset(), [WHOLE]))) == {0: [b"slot"]}


def test_server_on_a_disk_that_became_read_only_serves_and_refuses(disk: MountedDisk, scene: ServiceScene) -> None:
    service = scene.service
    under_way = scene.run(service.allocate(NEW, lease(), share_numbers(0), 4)).upload
    disk.is_read_only = True
    require_served(scene)
    with pytest.raises(NoSpaceError):
        scene.run(service.test_and_write(OTHER, slot_secrets(), {ShareNumber(0): vector((0, b"lost"))}))
    with pytest.raises(NoSpaceError):
        scene.run(service.test_and_write(NEW, slot_secrets(), {ShareNumber(0): vector((0, b"lost"))}))
    assert scene.run(is_refused(service, StorageIndex(b"some other index")))
    with pytest.raises(GridError):
        scene.run(service.add_lease(INDEX, lease(b"n")))
    with pytest.raises(GridError):
        scene.run(under_way.write([ShareWrite(ShareNumber(0), 0, [b"lost"])]))
    require_served(scene)

    disk.is_read_only = False
    require_served(scene)
    scene.run(service.test_and_write(OTHER, slot_secrets(), {ShareNumber(0): vector((0, b"slot"))}))
    scene.run(put(service, StorageIndex(b"some other index"), {3: b"kept"}))
    scene.run(under_way.abort())
    scene.run(put(service, NEW, {0: b"kept"}))
    assert plain(scene.run(service.find_shares(NEW, [WHOLE]))) == {0: [b"kept"]}
    scene.run(service.add_lease(INDEX, lease(b"n")))
    require_served(scene)


def test_server_that_starts_on_a_read_only_disk_serves(disk: MountedDisk, scene: ServiceScene) -> None:
    scene.run(scene.service.stop())
    disk.is_read_only = True
    again = ServiceScene(disk)
    require_served(again)
    assert again.run(is_refused(again.service, NEW))
