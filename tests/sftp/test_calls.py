"""Requests of a session in progress: the order of answers, how many directories are listed, and what ends with the connection."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from attrs import define, field
from twisted.internet.defer import CancelledError, Deferred
from twisted.python.failure import Failure

from grid.runtime import Tasks
from grid.sftp.calls import FileCalls, SessionCalls
from grid.sftp.door import MAX_LISTINGS, Load
from grid.sftp.faults import SftpFault
from grid.sftp.handles import READ, WRITE
from grid.sftp.session import Session
from tests.support.virtual_time import VirtualRuntime


@define
class SlowTree:
    """A tree that answers nothing until the test says so. asked: the requests; cancelled: those that were abandoned."""

    asked: list[tuple[str, Deferred[Any]]] = field(factory=list)
    cancelled: list[str] = field(factory=list)

    async def list(self, path: object) -> Any:
        return await self._answer("list")

    async def find(self, path: object) -> Any:
        return await self._answer("find")

    async def look(self, path: object) -> Any:
        return await self._answer("look")

    async def make_directory(self, path: object, describe: object) -> Any:
        return await self._answer("make_directory")

    async def _answer(self, what: str) -> Any:
        answer: Deferred[Any] = Deferred()
        self.asked.append((what, answer))
        try:
            return await answer
        except CancelledError:
            self.cancelled.append(what)
            raise


@define
class SlowFile:
    """An open file that answers nothing until the test says so. asked: the requests in their order. ready: by offset."""

    asked: list[Deferred[Any]] = field(factory=list)
    ready: dict[int, bytes] = field(factory=dict)

    def read_now(self, offset: int, length: int) -> bytes | None:
        return self.ready.get(offset)

    async def read(self, offset: int, length: int) -> Any:
        return await self._answer()

    async def write(self, offset: int, data: object) -> Any:
        return await self._answer()

    def write_now(self, offset: int, data: bytes) -> bool:
        return offset in self.ready

    async def _answer(self) -> Any:
        self.asked.append(Deferred())
        return await self.asked[-1]


class Scene:
    """A session over a slow tree, and the outcomes of its calls, in the order of their ends."""

    def __init__(self) -> None:
        self.tree = SlowTree()
        self.statuses: list[int] = []
        traffic = SimpleNamespace(ended=lambda method, route, status, *rest: self.statuses.append(status))
        services = SimpleNamespace(sftp_traffic=traffic, store=SimpleNamespace(runtime=VirtualRuntime()))
        self.door = SimpleNamespace(services=services, directories=None, removals=None, load=Load(), tasks=Tasks())
        self.session = Session(cast(Any, self.door), cast(Any, SimpleNamespace(name="alice", root=None)))
        self.session.tree = cast(Any, self.tree)
        self.calls = SessionCalls(self.session)
        self.outcomes: list[object] = []

    def note(self, asked: Deferred[Any]) -> None:
        asked.addBoth(lambda outcome: self.outcomes.append(outcome.type if isinstance(outcome, Failure) else outcome))


def test_directories_when_many_are_opened_before_the_first_answer_stay_within_the_limit() -> None:
    scene = Scene()
    for _ in range(128):
        scene.note(scene.calls.openDirectory(b"/d"))
    assert len(scene.tree.asked) == MAX_LISTINGS
    assert scene.outcomes == [SftpFault] * (128 - MAX_LISTINGS)
    scene.outcomes.clear()
    for number, (_, answer) in enumerate(scene.tree.asked):
        answer.callback({}) if number else answer.errback(SftpFault(4, "gone"))
    first, *listings = cast(Any, scene.outcomes)
    assert first is SftpFault and len(listings) == scene.session.listing_count == MAX_LISTINGS - 1
    for listing in listings:
        listing.close()
    assert scene.session.listing_count == 0 and scene.door.load.listed == 0


def test_requests_when_the_connection_is_lost_end_unless_they_change_something() -> None:
    scene = Scene()
    scene.note(scene.calls.getAttrs(b"/a", True))
    scene.note(scene.calls.openDirectory(b"/b"))
    scene.note(scene.calls.openFile(b"/c", READ, {}))
    scene.note(scene.calls.openFile(b"/d", WRITE, {}))
    scene.note(scene.calls.makeDirectory(b"/e", {}))
    assert scene.door.tasks.count == scene.door.load.requests == 5
    scene.session.is_lost = True
    scene.calls.give_up()
    assert sorted(scene.tree.cancelled) == ["find", "find", "list", "look"]
    assert scene.outcomes == [CancelledError] * 4 and scene.statuses == [400] * 4
    assert (scene.door.tasks.count, scene.door.load.requests, scene.door.load.handles) == (1, 1, 0)
    assert scene.session.listing_count == scene.session.open_count == 0
    scene.tree.asked[-1][1].callback(None)
    assert scene.outcomes[4:] == [None] and scene.door.tasks.count == 0


def test_reads_and_writes_of_a_file_when_they_end_in_any_order_are_answered_in_order() -> None:
    """scp cuts a file that it reads or writes at the first answer that comes out of order."""
    scene, slow = Scene(), SlowFile()
    file, other = FileCalls(scene.calls, cast(Any, slow)), FileCalls(scene.calls, cast(Any, slow))
    for number in range(3):
        scene.note(file.readChunk(number, 1))
    scene.note(file.writeChunk(3, b"w"))
    scene.note(file.readChunk(4, 1))
    scene.note(other.readChunk(0, 1))
    slow.asked[4].callback(b"4")
    slow.asked[2].callback(b"2")
    slow.asked[1].errback(SftpFault(4, "gone"))
    assert scene.outcomes == []
    slow.asked[5].callback(b"of another file")
    assert scene.outcomes.pop() == b"of another file"
    slow.asked[0].callback(b"0")
    assert scene.outcomes == [b"0", SftpFault, b"2"]
    slow.asked[3].callback(None)
    assert scene.outcomes[3:] == [None, b"4"]


def test_read_when_its_bytes_were_fetched_ahead_is_answered_at_once_but_never_before_an_earlier_one() -> None:
    scene, slow = Scene(), SlowFile(ready={0: b"0", 2: b"2"})
    file = FileCalls(scene.calls, cast(Any, slow))
    scene.note(file.readChunk(0, 1))
    assert scene.outcomes == [b"0"] and slow.asked == [] and scene.statuses == [200]
    scene.note(file.readChunk(1, 1))
    scene.note(file.readChunk(2, 1))
    assert len(slow.asked) == 2
    slow.asked[1].callback(b"2")
    assert scene.outcomes == [b"0"]
    slow.asked[0].callback(b"1")
    assert scene.outcomes == [b"0", b"1", b"2"] and scene.door.load.requests == 0


def test_write_when_it_need_not_wait_is_answered_at_once_but_never_before_an_earlier_one() -> None:
    scene, slow = Scene(), SlowFile(ready={0: b"", 1: b"", 3: b""})
    file = FileCalls(scene.calls, cast(Any, slow))
    for number in range(2):
        scene.note(file.writeChunk(number, b"w"))
    assert scene.outcomes == [None, None] and slow.asked == [] and scene.statuses == [200, 200]
    assert scene.door.tasks.count == 0
    scene.note(file.writeChunk(2, b"w"))
    scene.note(file.writeChunk(3, b"w"))
    assert len(slow.asked) == scene.door.tasks.count == 2
    slow.asked[1].callback(None)
    assert len(scene.outcomes) == 2
    slow.asked[0].errback(SftpFault(4, "full"))
    assert scene.outcomes[2:] == [SftpFault, None] and scene.door.load.requests == 0


def test_reads_of_a_file_when_the_connection_is_lost_end_in_order() -> None:
    scene, slow = Scene(), SlowFile()
    file = FileCalls(scene.calls, cast(Any, slow))
    for number in range(3):
        scene.note(file.readChunk(number, 1))
    slow.asked[2].callback(b"2")
    scene.calls.give_up()
    assert scene.outcomes == [CancelledError, CancelledError, b"2"] and scene.door.tasks.count == 0
