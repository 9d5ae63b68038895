"""Storage services for tests, in virtual time over any disk."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

from grid.ports import CpuPool, ServerId, ServerIdentity
from grid.storage.calls.service import StorageService
from grid.storage.files.disk import Disk
from grid.storage.files.memory_disk import MemoryDisk
from grid.storage.settings import StorageSettings
from tests.support.virtual_time import VirtualRuntime

T = TypeVar("T")

NODE_ID = bytes(range(0x64, 0x78))
IDENTITY = ServerIdentity(server_id=ServerId("v0-test"), permutation_seed=b"seed" * 5, lease_seed=NODE_ID)


class ServiceScene:
    """A started service; `run` runs a coroutine to its end, and time jumps whenever it waits."""

    def __init__(
        self, disk: Disk | None = None, settings: StorageSettings | None = None, io: CpuPool | None = None
    ) -> None:
        self.disk = MemoryDisk() if disk is None else disk
        self.runtime = VirtualRuntime()
        self.service = StorageService(IDENTITY, self.disk, self.runtime, settings or StorageSettings(), io)
        self.run(self.service.start())

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self.runtime.run(coroutine)

    def advance(self, seconds: float) -> None:
        """Let time pass, with everything that is due."""
        self.runtime.clock.task_clock.advance(seconds)
