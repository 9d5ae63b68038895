"""What one account may use of the door, and what becomes of clients that are idle or take nothing: others get their share."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from attrs import define
from twisted.conch.error import ConchError
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from grid.caps import LitCap
from grid.directory.pack import Child
from grid.sftp.channels import SftpChannel, User
from grid.sftp.door import FEW_LISTED, MAX_HANDLES, MOST_HANDLES, MOST_LISTED, MOST_SESSIONS, Load
from grid.sftp.faults import SftpFault
from grid.sftp.handles import READ
from grid.sftp.server import LOGIN_S, STALL_S, WATCH_S, SftpTransport, Stalls
from grid.sftp.session import LISTED_AT_ONCE, Listing, Session
from grid.wire.connections.connection_limit import ConnectionLimit, Standing

FILE = Child(target=LitCap(data=b""))


class OneDirectory:
    """A tree whose directories all have this many entries."""

    def __init__(self, count: int) -> None:
        self.children = {f"f{number}": FILE for number in range(count)}

    async def list(self, path: object) -> dict[str, Child]:
        return self.children

    async def find(self, path: object) -> Child:
        return FILE


class Scene:
    """A door with sessions of several accounts."""

    def __init__(self) -> None:
        services = SimpleNamespace(store=None, require_allowed=lambda target: None)
        self.load = Load()
        self.door = cast(
            Any, SimpleNamespace(load=self.load, services=services, directories=None, removals=None, room=None)
        )

    def session(self, account: str, count: int = 0) -> Session:
        made = Session(self.door, cast(Any, SimpleNamespace(name=account, root=None)))
        made.tree = cast(Any, OneDirectory(count))
        return made


def outcome(work: Any) -> Any:
    """What it returned, or the class of its error."""
    ended: list[Any] = []
    Deferred.fromCoroutine(work).addCallbacks(ended.append, lambda failure: ended.append(failure.type))
    return ended[0]


def test_files_when_one_account_opens_all_that_it_may_are_still_opened_by_others() -> None:
    scene = Scene()
    greedy = [scene.session("greedy") for _ in range(4)]
    opened = [outcome(session.open(b"/f", READ, {})) for session in greedy for _ in range(MAX_HANDLES)]
    kept = [file for file in opened if file is not SftpFault]
    assert len(kept) == MOST_HANDLES // 2 + 2, "half of all, and the first file of each session"
    others = [outcome(scene.session("other").open(b"/f", READ, {})) for _ in range(3)]
    assert SftpFault not in others
    for file in kept + others:
        file.abandon()
    assert (scene.load.handles, scene.load.of("greedy").handles) == (0, 0)


def test_directories_when_one_account_lists_large_ones_are_still_listed_by_others() -> None:
    scene = Scene()
    greedy, other = scene.session("greedy", MOST_LISTED), scene.session("other", MOST_LISTED // 4)
    large = outcome(greedy.list(b"/d"))
    assert isinstance(large, Listing) and scene.load.listed == MOST_LISTED // 2
    assert outcome(greedy.list(b"/d")) is SftpFault
    listings = [outcome(other.list(b"/d")) for _ in range(2)]
    assert SftpFault not in listings and outcome(other.list(b"/d")) is SftpFault
    small = scene.session("greedy", FEW_LISTED // 2)
    few = [outcome(small.list(b"/d")) for _ in range(3)]
    assert [each is SftpFault for each in few] == [False, False, True]
    for listing in (large, *listings, *few[:2]):
        listing.close()
    assert (scene.load.listed, greedy.listed, small.listed) == (0, 0, 0)


def test_entries_when_they_are_sent_count_no_more() -> None:
    session = Scene().session("alice", 250)
    session.tree.children["a/b"] = FILE  # type: ignore[attr-defined]
    listing = outcome(session.list(b"/d"))
    counts, names = [session.usage.listed], []
    while entries := outcome(listing.more()):
        names += [name for name, _ in entries]
        counts.append(session.usage.listed)
    assert counts == [251, 251 - LISTED_AT_ONCE, 251 - 2 * LISTED_AT_ONCE, 0]
    assert names == [f"f{number}" for number in range(250)]
    listing.close()
    assert session.usage.listed == 0


def test_sessions_when_one_account_has_half_of_all_are_still_opened_by_others() -> None:
    scene = Scene()

    def open_session(account: str) -> SftpChannel:
        user = User(scene.door, cast(Any, SimpleNamespace(name=account, root=None)), SimpleNamespace(channels={}))
        return user.lookupChannel(b"session", 2**20, 2**15, b"")

    opened = [open_session("greedy") for _ in range(MOST_SESSIONS // 2)]
    with pytest.raises(ConchError):
        open_session("greedy")
    opened.append(open_session("other"))
    assert scene.load.sessions == len(opened)


@define(eq=False)
class Taking:
    """The channel of a session. sent_size: bytes that its client took. unsent: those that wait."""

    sent_size: int = 0
    unsent: int = 0
    is_busy: bool = True


class Connection:
    """A connection of a client that has logged in. channels: of its sessions; aborted: when it was closed."""

    def __init__(self, *channels: Any) -> None:
        self.clock = Clock()
        self.aborted: list[float] = []
        self.permit = ConnectionLimit().acquire("10.0.0.1")
        transport = self.transport = cast(Any, SftpTransport())
        transport.permit = self.permit
        transport.factory = SimpleNamespace(transports=set(), reactor=self.clock)
        transport.makeConnection(
            SimpleNamespace(
                registerProducer=lambda *_: None,
                write=lambda data: None,
                pauseProducing=lambda: None,
                abortConnection=lambda: self.aborted.append(self.clock.seconds()),
            )
        )
        transport.service = SimpleNamespace(channels=dict(enumerate(channels)))
        transport.avatar = object()

    def wait(self, seconds: float, each: Callable[[], object] = bool) -> None:
        for _ in range(round(seconds / WATCH_S)):
            each()
            self.clock.advance(WATCH_S)


def test_connection_when_its_client_takes_nothing_is_closed_but_not_while_it_takes_a_little() -> None:
    slow, stuck = Taking(unsent=10), Taking(sent_size=5)
    connection = Connection(slow, stuck)

    def take() -> None:
        slow.sent_size += 1

    connection.wait(3 * STALL_S, take)
    assert connection.aborted == []
    stuck.unsent = 10
    connection.wait(LOGIN_S + STALL_S + WATCH_S, take)
    assert len(connection.aborted) == 1


def test_connection_when_its_socket_takes_nothing_is_closed() -> None:
    connection = Connection()
    connection.wait(2 * STALL_S)
    connection.transport.pauseProducing()
    connection.wait(LOGIN_S + STALL_S + WATCH_S)
    assert len(connection.aborted) == 1


def test_connection_when_no_request_is_under_way_is_idle() -> None:
    channel = Taking()
    connection = Connection(channel)
    assert connection.permit is not None
    found = []
    for is_busy in (True, False):
        channel.is_busy = is_busy
        connection.transport.settle_standing()
        found.append(connection.permit.standing)
    assert found == [Standing.ACTIVE, Standing.IDLE]


def test_session_when_its_requests_are_answered_and_taken_is_no_longer_busy() -> None:
    scene, standings, later = Scene(), list[bool](), list[Any]()
    channel = SftpChannel(
        scene.door, cast(Any, SimpleNamespace(name="alice", root=None)), remoteWindow=9, remoteMaxPacket=2**15
    )
    wire = SimpleNamespace(call_afterwards=later.append, is_paused=False)
    wire.settle_standing = lambda: standings.append(channel.is_busy)
    channel.conn = SimpleNamespace(transport=wire, send_data=lambda *_: None, adjustWindow=lambda *_: None)
    assert channel.requestReceived(b"subsystem", b"\0\0\0\4sftp")
    channel.dataReceived(b"\0\0\0\x05\x01\0\0\0\x03")
    later.pop()()
    assert standings == [True], "the client has not taken all of the answer"
    channel.addWindowBytes(1000)
    assert standings == [True, False] and channel.sent_size > 9


def test_stall_when_something_else_makes_progress_is_found() -> None:
    stalls = Stalls()
    assert stalls.longest_s({"a": 1, "b": 1}, 0.0) == 0.0
    assert stalls.longest_s({"a": 1, "b": 2}, 60.0) == 60.0
    assert stalls.longest_s({"b": 2}, 90.0) == 30.0
    assert stalls.longest_s({"a": 1}, 100.0) == 0.0
