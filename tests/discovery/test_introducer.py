"""Publishing and subscribing through real sockets. [spec wire 6-9]"""

from __future__ import annotations

import stat
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from foolscap.api import Referenceable, RemoteException, eventually
from twisted.internet.defer import Deferred, succeed
from twisted.internet.endpoints import TCP4ServerEndpoint

from grid.discovery import introducer_client
from grid.discovery.announcement import Announcement, SignedAnnouncement, parse_announcement
from grid.discovery.condition import Condition
from grid.discovery.introducer_client import CACHE_PAUSE_S, SILENCE_S, IntroducerClient, IntroducerSettings
from grid.discovery.introducer_schema import INTRODUCER_KEY
from grid.discovery.introducer_server import Introducer
from grid.discovery.server_files import KeptAnnouncements, pack_cache, parse_cache
from grid.runtime import ReactorClock
from grid.wire.foolscap.tub import listen, set_location, start_tub, stop_tub, throwaway_certificate
from grid.wire.locators import Furl, parse_furl
from grid.wire.status import ConnectionState
from tests.discovery.samples import IDS, signed
from tests.support.virtual_time import VirtualRuntime

WAIT_S = 120.0


def clock() -> ReactorClock:
    from twisted.internet import reactor

    return ReactorClock(reactor)


class Heard:
    """The announcements a client got, in order."""

    def __init__(self) -> None:
        self.announcements: list[Announcement] = []
        self._condition = Condition(clock())

    def take(self, announcement: Announcement) -> None:
        self.announcements.append(announcement)
        self._condition.changed()

    @property
    def seqnums(self) -> list[tuple[str, int | None]]:
        return sorted((one.server_id, one.seqnum) for one in self.announcements)

    async def wait_for(self, count: int) -> None:
        assert await self._condition.wait_until(lambda: len(self.announcements) >= count, WAIT_S)


@asynccontextmanager
async def offered(remote: Referenceable, certificate: bytes | None = None, port: int = 0) -> AsyncIterator[Furl]:
    from twisted.internet import reactor

    tub = start_tub(certificate)
    try:
        port = await listen(tub, TCP4ServerEndpoint(reactor, port, interface="127.0.0.1"))
        set_location(tub, (f"tcp:127.0.0.1:{port}",))
        yield parse_furl(tub.registerReference(remote, name="swissnum"))
    finally:
        await stop_tub(tub)


@asynccontextmanager
async def client(
    furl: Furl, *publish: SignedAnnouncement, cache_file: Path | None = None, deadline_s: float = WAIT_S
) -> AsyncIterator[tuple[IntroducerClient, Heard]]:
    heard, tub = Heard(), start_tub()
    settings = IntroducerSettings(furl=furl, nickname="me", version="grid/1", cache_file=cache_file)
    made = IntroducerClient(evolve(settings, deadline_s=deadline_s), tub, clock(), heard.take)
    for announcement in publish:
        made.publish(announcement)
    made.start()
    try:
        assert await made.settled(WAIT_S)
        yield made, heard
    finally:
        made.close()
        await stop_tub(tub)


async def test_subscriber_when_it_comes_later_then_hears_all_that_was_published() -> None:
    async with offered(Introducer("grid/1")) as furl, client(furl, signed(0), signed(1)), client(furl) as (late, heard):
        assert late.status.state is ConnectionState.CONNECTED
        await heard.wait_for(2)
        assert heard.seqnums == sorted([(IDS[0], 1), (IDS[1], 1)])


async def test_subscriber_when_something_is_published_then_hears_it_once_and_only_if_new() -> None:
    introducer = Introducer("grid/1")
    async with offered(introducer) as furl, client(furl) as (publisher, own), client(furl) as (_, heard):
        for announcement in (signed(0, 3), signed(0, 3), signed(0, 2), signed(0, 3, nickname="x"), signed(0, 5)):
            publisher.publish(announcement)
        await heard.wait_for(2)
        await own.wait_for(2)
        assert heard.seqnums == own.seqnums == [(IDS[0], 3), (IDS[0], 5)]
        assert introducer.subscriber_count == 2
        assert len(introducer.announcements) == 1


async def test_introducer_when_clients_go_then_forgets_their_subscriptions_but_not_their_words() -> None:
    introducer = Introducer("grid/1")
    async with offered(introducer) as furl:
        async with client(furl, signed(0)):
            assert introducer.subscriber_count == 1
        async with client(furl) as (_, heard):
            await heard.wait_for(1)
            assert introducer.subscriber_count == 1


async def test_client_when_the_introducer_restarts_then_publishes_and_subscribes_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said: list[str] = []
    monkeypatch.setattr(introducer_client.log, "info", lambda text, **_: said.append(text))
    certificate = throwaway_certificate()
    async with offered(Introducer("grid/1"), certificate) as furl:
        port = int(furl.hints[0].rsplit(":", 1)[1])
        publisher_context, subscriber_context = client(furl, signed(0)), client(furl)
        publisher, _ = await publisher_context.__aenter__()
        _, heard = await subscriber_context.__aenter__()
        await heard.wait_for(1)
    restarted = Introducer("grid/1")
    async with offered(restarted, certificate, port):
        publisher.publish(signed(0, 2))
        await heard.wait_for(2)
        assert [one.seqnum for one in heard.announcements] == [1, 2]
        while said.count("{where} connected") < 2:
            await clock().sleep(0.01)
        assert sorted(said) == [*["{where} connected"] * 2, *["{where}: the connection was lost; retrying"] * 2]
        await publisher_context.__aexit__(None, None, None)
        await subscriber_context.__aexit__(None, None, None)


class _SilentTub:
    """A Tub whose introducer accepts the connection and stays silent."""

    def getReference(self, furl: str) -> Deferred[object]:
        return Deferred()


class _OneReadTub:
    """A Tub whose introducer's announcements and answer arrive in one read: Foolscap fires the answer first."""

    def getReference(self, furl: str) -> Deferred[object]:
        return succeed(self)

    def notifyOnDisconnect(self, callback: Callable[..., object], *arguments: object) -> None:
        pass

    def callRemote(self, method: str, *arguments: Any, **options: object) -> Deferred[object]:
        if method == "get_version":
            return succeed({INTRODUCER_KEY: {}, b"application-version": b"grid"})
        eventually(arguments[0].remote_announce_v2, {signed(index).to_tuple() for index in range(3)})
        return succeed(None)


async def test_client_when_announcements_and_answer_arrive_in_one_read_then_settles_with_all_of_them() -> None:
    heard = Heard()
    found = IntroducerClient(
        IntroducerSettings(furl=parse_furl(f"pb://{'a' * 32}@tcp:127.0.0.1:1/x")), _OneReadTub(), clock(), heard.take
    )
    found.start()
    assert await found.settled(WAIT_S)
    found.close()
    assert len(heard.announcements) == 3


def test_client_when_the_introducer_keeps_silent_then_uses_what_it_said_last_time(tmp_path: Path) -> None:
    runtime, file = VirtualRuntime(), tmp_path / "cache.yaml"
    furl = parse_furl(f"pb://{'a' * 32}@tcp:127.0.0.1:1/x")
    kept = KeptAnnouncements()
    kept.offer(parse_announcement(signed(0).to_tuple()))
    heard = Heard()

    def start(cache_file: Path) -> IntroducerClient:
        settings = IntroducerSettings(furl=furl, cache_file=cache_file)
        made = IntroducerClient(settings, _SilentTub(), runtime.clock, heard.take)
        made.start()
        return made

    without, with_nothing_to_use = start(tmp_path / "nothing"), heard.seqnums
    file.write_bytes(pack_cache(kept))
    made = start(file)
    runtime.clock.task_clock.advance(SILENCE_S / 2)
    assert not made.is_settled
    runtime.clock.task_clock.advance(SILENCE_S / 2)
    assert made.is_settled and heard.seqnums == [(IDS[0], 1)]
    assert not without.is_settled and with_nothing_to_use == []
    made.close()
    without.close()
    assert not runtime.clock.task_clock.getDelayedCalls()


async def test_cache_when_announcements_come_then_is_written_and_used_only_without_introducer(tmp_path: Path) -> None:
    file = tmp_path / "cache.yaml"
    async with offered(Introducer("grid/1")) as furl, client(furl, signed(0), signed(1), cache_file=file) as (_, heard):
        await heard.wait_for(2)
    assert {one.server_id for one in parse_cache(file.read_bytes())} == {IDS[0], IDS[1]}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    async with client(furl, cache_file=file) as (lonely, cached):
        assert lonely.status.state is not ConnectionState.CONNECTED
        assert cached.seqnums == heard.seqnums
        assert all(one.signed is None for one in cached.announcements)
    async with offered(Introducer("grid/1")) as furl, client(furl, cache_file=file) as (_, nothing):
        assert nothing.announcements == []


@pytest.mark.parametrize(
    ("announcement", "name"),
    [
        ((b"{}", b"v1-x", b"v0-y"), "UnknownKeyError"),
        ((b"{}", b"", b""), "UnknownKeyError"),
        ((signed(0).message, signed(1).signature, signed(0).key), "BadSignature"),
        (("text", b"", b""), "Violation"),
        (b"x", "Violation"),
    ],
)
async def test_publish_when_the_announcement_is_bad_then_the_publisher_hears_why(announcement: Any, name: str) -> None:
    introducer = Introducer("grid/1")
    async with offered(introducer) as furl:
        tub = start_tub()
        reference = await tub.getReference(furl.to_string())
        with pytest.raises(RemoteException) as caught:
            await reference.callRemote("publish_v2", announcement, Referenceable(), _useSchema=False)
        assert caught.value.failure.parents[0].endswith("." + name)
        assert introducer.announcements == []
        await stop_tub(tub)


async def test_introducer_when_a_subscription_is_repeated_then_ignores_it() -> None:
    introducer = Introducer("grid/1")
    received: list[set[Any]] = []

    async with offered(introducer) as furl, client(furl, signed(0)):
        tub = start_tub()
        reference = await tub.getReference(furl.to_string())
        subscriber = RawSubscriber(received.append)
        for _ in range(2):
            await reference.callRemote("subscribe_v2", subscriber, b"storage", {b"version": 0})
        await reference.callRemote("subscribe_v2", RawSubscriber(received.append), b"other", {b"version": 0})
        assert received == [{signed(0).to_tuple()}]
        assert type(received[0]) is set
        assert introducer.subscriber_count == 3
        await stop_tub(tub)


async def test_client_when_the_introducer_relays_rubbish_then_takes_the_rest() -> None:
    rubbish = {
        (b"junk", b"v0-junk", b"v0-junk"),
        (signed(0).message, signed(1).signature, signed(0).key),
        (b"x" * 10**6, b"", b""),
        signed(2, **{"service-name": "other"}).to_tuple(),
        signed(1).to_tuple(),
    }
    async with offered(RawIntroducer(rubbish)) as furl, client(furl) as (_, heard):
        await heard.wait_for(1)
        assert heard.seqnums == [(IDS[1], 1)]


async def test_client_when_its_announcement_is_refused_then_still_subscribes() -> None:
    bad = SignedAnnouncement(signed(0).message, signed(1).signature, signed(0).key)
    async with offered(Introducer("grid/1")) as furl, client(furl, signed(1)), client(furl, bad) as (made, heard):
        assert made.status.state is ConnectionState.CONNECTED
        await heard.wait_for(1)


@pytest.mark.parametrize("version", [{}, {b"http://allmydata.org/tahoe/protocols/introducer/v1": {}}, None, 5])
async def test_client_when_the_introducer_speaks_no_v2_then_settles_without_it(version: object) -> None:
    async with offered(RawIntroducer(set(), version)) as furl, client(furl) as (made, heard):
        assert made.status.state is ConnectionState.WAITING
        assert heard.announcements == []


async def test_client_when_the_introducer_never_answers_then_settles_at_the_deadline() -> None:
    async with offered(RawIntroducer(set(), Deferred())) as furl, client(furl, deadline_s=0.2) as (made, _):
        assert made.status.state is ConnectionState.WAITING
        assert "0.2 s" in made.status.detail


V2: object = {b"http://allmydata.org/tahoe/protocols/introducer/v2": {}}


class RawIntroducer(Referenceable):
    """Gives whatever answers a test wants, without an interface."""

    def __init__(self, announcements: set[Any], version: object = V2) -> None:
        self._announcements = announcements
        self._version = version

    def remote_get_version(self) -> object:
        return self._version

    def remote_subscribe_v2(self, subscriber: Any, service_name: bytes, subscriber_info: object) -> Any:
        return subscriber.callRemote("announce_v2", self._announcements, _useSchema=False)


def raw_subscriber_class() -> Any:
    from zope.interface import implementer

    from grid.discovery.introducer_schema import RISubscriber

    @implementer(RISubscriber)  # type: ignore[misc]
    class Subscriber(Referenceable):
        def __init__(self, take: Callable[[set[Any]], None]) -> None:
            self._take = take

        def remote_announce_v2(self, announcements: set[Any]) -> None:
            self._take(announcements)

    return Subscriber


RawSubscriber = raw_subscriber_class()


def test_cache_when_an_introducer_sends_thousands_then_is_written_once_in_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime, file, written = VirtualRuntime(), tmp_path / "cache.yaml", list[int]()
    settings = IntroducerSettings(furl=parse_furl(f"pb://{'a' * 32}@tcp:127.0.0.1:1/x"), cache_file=file)
    made = IntroducerClient(settings, _SilentTub(), runtime.clock, lambda _: None)

    def write(path: Path, data: bytes) -> None:
        written.append(len(data))
        path.write_bytes(data)

    monkeypatch.setattr(introducer_client, "write_private", write)
    for seqnum in range(1, 101):
        made._take({signed(0, seqnum).to_tuple()})
    assert len(written) == 1
    runtime.clock.task_clock.advance(CACHE_PAUSE_S)
    assert len(written) == 2
    assert [one.seqnum for one in parse_cache(file.read_bytes())] == [100]
    made._take({signed(0, 101).to_tuple()})
    made.close()
    assert [one.seqnum for one in parse_cache(file.read_bytes())] == [101]
    assert not runtime.clock.task_clock.getDelayedCalls()
