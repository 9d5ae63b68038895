"""What the log of a full server says, and how often."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from twisted.logger import ILogObserver, LogEvent, formatEvent, globalLogPublisher
from zope.interface import implementer

from grid.ports import StorageIndex
from grid.storage.files.memory_disk import MemoryDisk
from grid.storage.files.room_log import APART_S, RoomLog
from grid.storage.settings import StorageSettings
from tests.contract.storage_server import lease, share_numbers
from tests.support.storage import ServiceScene


@implementer(ILogObserver)
class _Refusals:
    """Keeps the lines about refusals."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def __call__(self, event: LogEvent) -> None:
        text = formatEvent(event)
        if "refused" in text:
            self.lines.append(text)


@pytest.fixture
def said() -> Iterator[list[str]]:
    observer = _Refusals()
    globalLogPublisher.addObserver(observer)
    yield observer.lines
    globalLogPublisher.removeObserver(observer)


def test_refusals_are_logged_once_an_hour_with_the_setting_that_matters(said: list[str]) -> None:
    log = RoomLog(StorageSettings(reserved_space=1000))
    for now in (0.0, 1.0, APART_S - 1, APART_S, APART_S + 1, -10.0):
        log.refused(5, now)
    assert len(said) == 3 and said[0].startswith(
        "new shares are refused: 5 bytes are available beside storage.reserved_space (1000 bytes)"
    )


def test_server_says_that_it_is_read_only_when_it_is_asked_for_room_or_space(said: list[str]) -> None:
    scene = ServiceScene(MemoryDisk(), StorageSettings(readonly=True))
    scene.run(scene.service.get_version())
    scene.run(scene.service.allocate(StorageIndex(b"i" * 16), lease(), share_numbers(1), 1))
    assert said == ["new shares are refused: storage.readonly is set"]
    other = ServiceScene(MemoryDisk(), StorageSettings(readonly=True))
    other.run(other.service.allocate(StorageIndex(b"i" * 16), lease(), share_numbers(1), 1))
    assert said[1:] == ["new shares are refused: storage.readonly is set"]
