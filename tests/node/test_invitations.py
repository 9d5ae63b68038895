"""Meetings of both sides of an invitation at a real server of magic-wormhole, with strangers in the place of either."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
import wormhole
from attrs import evolve
from twisted.internet import defer, protocol, reactor
from twisted.internet.task import deferLater

from grid.discovery.invitation import APPLICATION, INVITER, JOINER, pack_introduction, pack_invitation
from grid.errors import (
    ConfigError,
    GridError,
    NoInvitationError,
    PeerError,
    PeerGoneError,
    PeerTimeoutError,
    WrongCodeError,
)
from grid.node.invitations import Meeting, accept, offer
from grid.runtime import ReactorClock
from tests.discovery.test_invitation import FURL, INVITATION
from tests.support.mailbox import hostile_server, mailbox_server

pytestmark = pytest.mark.background

WAIT_S = 60.0
SHORT_S = 0.3
"""Where nobody comes."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with mailbox_server(tmp_path_factory.mktemp("mailbox")) as url:
        yield url


@pytest.fixture
def meeting(server: str) -> Meeting:
    return Meeting(reactor=reactor, clock=ReactorClock(reactor), server=server)


class Offered:
    """An offer under way, and the code that it showed."""

    def __init__(self, meeting: Meeting, wait_s: float = WAIT_S) -> None:
        self.code: defer.Deferred[str] = defer.Deferred()
        self.ended = defer.Deferred.fromCoroutine(offer(meeting, INVITATION, self.code.callback, wait_s))


@asynccontextmanager
async def stranger(server: str, code: str) -> AsyncIterator[Any]:
    """A side that speaks through the library as it likes."""
    found = wormhole.create(APPLICATION, server, reactor)
    found.set_code(code)
    try:
        yield found
    finally:
        with suppress(Exception):
            await found.close()


async def refusal(ended: Awaitable[object], kind: type[GridError]) -> str:
    with pytest.raises(kind) as caught:
        await ended
    assert type(caught.value) is kind and "pb:" not in str(caught.value) and "ln3ddyj" not in str(caught.value)
    return str(caught.value)


async def test_invitation_reaches_the_one_who_has_the_code(meeting: Meeting) -> None:
    offered = Offered(meeting)
    assert await accept(meeting, await offered.code) == INVITATION
    await offered.ended


async def test_code_that_was_used_invites_nobody_else(meeting: Meeting) -> None:
    offered = Offered(meeting)
    code = await offered.code
    await accept(meeting, code)
    await offered.ended
    said = await refusal(accept(evolve(meeting, there_s=SHORT_S), code), NoInvitationError)
    assert "nobody offers an invitation with this code" in said


async def test_code_is_ended_for_both_by_one_wrong_attempt(meeting: Meeting) -> None:
    offered = Offered(meeting)
    code = await offered.code
    wrong = code.partition("-")[0] + "-wrong-words"
    assert "the code is wrong" in await refusal(accept(meeting, wrong), WrongCodeError)
    assert "somebody tried a wrong code" in await refusal(offered.ended, WrongCodeError)
    await refusal(accept(evolve(meeting, there_s=SHORT_S), code), NoInvitationError)


async def test_code_that_two_sides_are_using_is_refused_to_a_third(meeting: Meeting) -> None:
    async with stranger(meeting.server, "4711-a-b") as first, stranger(meeting.server, "4711-a-b") as second:
        await first.get_code()
        await second.get_unverified_key()
        said = await refusal(accept(evolve(meeting, there_s=SHORT_S), "4711-a-b"), NoInvitationError)
        assert "ask for a new one" in said


async def test_offer_that_nobody_takes_ends(meeting: Meeting) -> None:
    offered = Offered(meeting, SHORT_S)
    code = await offered.code
    assert "nobody used the code within 1 second" in await refusal(offered.ended, NoInvitationError)
    await refusal(accept(evolve(meeting, there_s=SHORT_S), code), NoInvitationError)


async def test_code_that_cannot_be_shown_is_withdrawn(meeting: Meeting) -> None:
    def show(code: str) -> None:
        raise BrokenPipeError(code)

    with pytest.raises(BrokenPipeError) as caught:
        await offer(meeting, INVITATION, show, WAIT_S)
    await refusal(accept(evolve(meeting, there_s=SHORT_S), str(caught.value)), NoInvitationError)


async def test_offer_that_is_canceled_withdraws_its_code(meeting: Meeting) -> None:
    offered = Offered(meeting)
    code = await offered.code
    await deferLater(reactor, 0)  # The code was shown in the middle of the offer.
    offered.ended.cancel()
    with pytest.raises(defer.CancelledError):
        await offered.ended
    await refusal(accept(evolve(meeting, there_s=SHORT_S), code), NoInvitationError)


JUNK = [
    b"",
    b"\xff",
    b"junk",
    b"[]",
    b"[" * 9000,
    b'{"abilities": {}}',
    b'{"abilities": {"other-v9": {}}}',
    b"x" * 20_000,
]


@pytest.mark.parametrize("junk", JUNK, ids=range(len(JUNK)))
async def test_side_that_does_not_join_gets_nothing(meeting: Meeting, junk: bytes) -> None:
    offered = Offered(meeting)
    async with stranger(meeting.server, await offered.code) as other:
        other.send_message(junk)
        await refusal(offered.ended, PeerError)
        assert json.loads(await other.get_message()) == {"abilities": {INVITER: {}}}
        more = other.get_message()
        await deferLater(reactor, SHORT_S)
        assert not more.called
        more.addErrback(lambda _: None)


@pytest.mark.parametrize("junk", JUNK, ids=range(len(JUNK)))
async def test_side_that_does_not_invite_is_no_inviter(meeting: Meeting, junk: bytes) -> None:
    async with stranger(meeting.server, "100-a-b") as other:
        other.send_message(junk)
        said = await refusal(accept(meeting, "100-a-b"), PeerError)
        assert said.endswith("nothing was changed")


@pytest.mark.parametrize("junk", [*JUNK[:5], b'{"introducer": "%s"}' % FURL.encode()], ids=range(6))
async def test_invitation_that_is_none_is_refused(meeting: Meeting, junk: bytes) -> None:
    async with stranger(meeting.server, "101-a-b") as other:
        other.send_message(pack_introduction(INVITER))
        other.send_message(junk)
        await refusal(accept(meeting, "101-a-b"), PeerError)


async def test_inviter_that_falls_silent_is_given_up(meeting: Meeting) -> None:
    async with stranger(meeting.server, "102-a-b") as other:
        other.send_message(pack_introduction(INVITER))
        said = await refusal(accept(evolve(meeting, answer_s=SHORT_S), "102-a-b"), PeerTimeoutError)
        assert "stopped answering" in said


async def test_joiner_introduces_itself_as_1_20_expects(meeting: Meeting) -> None:
    async with stranger(meeting.server, "103-a-b") as other:
        other.send_message(pack_introduction(INVITER))
        other.send_message(pack_invitation(INVITATION))
        assert await accept(meeting, "103-a-b") == INVITATION
        assert await other.get_message() == pack_introduction(JOINER)


async def test_server_that_is_not_there_is_named(meeting: Meeting) -> None:
    nowhere = evolve(meeting, server="ws://127.0.0.1:1/v1")
    for attempt in (accept(nowhere, "7-a-b"), offer(nowhere, INVITATION, print, WAIT_S)):
        said = await refusal(attempt, PeerGoneError)
        assert said.startswith("cannot reach the wormhole server ws://127.0.0.1:1/v1 (") and said.endswith("?")


async def test_server_that_refuses_is_quoted_without_control_characters(
    meeting: Meeting, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with mailbox_server(tmp_path_factory.mktemp("mailbox"), "--signal-error=go \x1b[2J away") as url:
        said = await refusal(accept(evolve(meeting, server=url), "7-a-b"), PeerError)
    assert said == f"the wormhole server {url} refuses: go  [2J away"


class Talker(protocol.Protocol):
    """What listens where a server of magic-wormhole should."""

    def __init__(self, words: Callable[[Any], None]) -> None:
        self.words = words

    def dataReceived(self, data: bytes) -> None:
        self.words(self.transport)


@pytest.mark.parametrize("words", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", b"SSH-2.0-x\r\n"])
async def test_server_of_something_else_is_no_server_of_ours(meeting: Meeting, words: bytes) -> None:
    listening: Any = reactor
    factory = protocol.ServerFactory.forProtocol(lambda: Talker(lambda transport: transport.write(words)))
    port = listening.listenTCP(0, factory, interface="127.0.0.1")
    try:
        there = evolve(meeting, server=f"ws://127.0.0.1:{port.getHost().port}/v1")
        await refusal(accept(there, "7-a-b"), PeerGoneError)
    finally:
        await port.stopListening()


async def test_server_that_sends_no_json_is_no_server_of_ours(meeting: Meeting) -> None:
    with hostile_server(b"\x1b[2J junk") as url:
        said = await refusal(accept(evolve(meeting, server=url, there_s=2.0), "7-a-b"), PeerGoneError)
    assert said == f"{url} does not answer: is it a wormhole server, and reachable from here?"


def test_library_that_is_missing_is_named_with_the_extra(monkeypatch: pytest.MonkeyPatch, meeting: Meeting) -> None:
    monkeypatch.setitem(__import__("sys").modules, "wormhole", None)
    with pytest.raises(ConfigError, match=r"pipx install --force '\.\[invite\]'"):
        accept(meeting, "7-a-b").send(None)
