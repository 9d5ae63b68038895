"""A node's connection to one introducer: publishes and subscribes, and repeats both after each reconnection.

Announcements are accepted only with a valid signature and by the replacement rules; each accepted one is passed on
once. The cache is written after changes, and used if the first attempt to connect fails, or if the introducer lists too
few servers, as one does that has just started: then also for reads only. Until it lists enough, it does not replace the
cache. However fast an introducer sends, the cache is written once per CACHE_PAUSE_S. [spec wire 6-9] (decision 479)
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import Any

from foolscap.api import Referenceable, fireEventually
from twisted.internet.defer import Deferred
from twisted.logger import Logger
from zope.interface import implementer

from grid.discovery.announcement import STORAGE_SERVICE, Announcement, SignedAnnouncement, parse_announcement
from grid.discovery.condition import Condition
from grid.discovery.introducer_schema import INTRODUCER_KEY, RIIntroducer, RISubscriber
from grid.discovery.server_files import KeptAnnouncements, pack_cache, read_cache
from grid.errors import FormatError, GridError, IntegrityError, PeerError, PeerRefusedError, PeerTimeoutError
from grid.limits import CONNECT_DEADLINE_S
from grid.ports import Clock, Timer
from grid.runtime import Tasks, is_cancellation, with_deadline
from grid.values import field, frozen
from grid.wire.foolscap.client.calls import call
from grid.wire.foolscap.remote_errors import REMOTE_ERRORS, from_remote
from grid.wire.foolscap.tub import write_private
from grid.wire.locators import Furl
from grid.wire.status import ConnectionState, ConnectionStatus

FIRST_RETRY_S = 1.0
LAST_RETRY_S = 60.0

CACHE_PAUSE_S = 10.0
"""Least time between two writes of the cache: an introducer may send thousands of announcements one at a time."""

RECALL_S = 7 * 86400.0
"""The greatest age, in seconds, of a cache that counts for more than a short list: later, its servers are gone for good."""

SILENCE_S = 1.0
"""How long an introducer may stay silent before its cached announcements are used; the attempt goes on."""

log = Logger()


@frozen(kw_only=True)
class IntroducerSettings:
    """One introducer, and how this node appears there. cache_file: None for no cache. version: our name and version.

    enough: servers that it must list so that a longer list in the cache does not count.
    """

    furl: Furl
    petname: str = "default"
    nickname: str = ""
    version: str = ""
    cache_file: Path | None = None
    enough: int = 0
    deadline_s: float = field(default=CONNECT_DEADLINE_S)


class IntroducerClient:
    """The connection to one introducer, maintained until close()."""

    def __init__(
        self,
        settings: IntroducerSettings,
        tub: Any,
        clock: Clock,
        on_announcement: Callable[[Announcement], None],
        on_settled: Callable[[], None] = lambda: None,
        on_recalled: Callable[[Announcement], None] = lambda _: None,
    ) -> None:
        """on_announcement: called with each accepted announcement of a storage server, cached ones included.

        on_recalled: called with cached ones of servers that a connected introducer does not list, if it lists too few.
        """
        self._settings = settings
        self._tub = tub
        self._clock = clock
        self._on_announcement = on_announcement
        self._on_settled = on_settled
        self._kept = KeptAnnouncements()
        self._published: dict[bytes, SignedAnnouncement] = {}
        self._reference: Any = None
        self._tasks = Tasks()
        self._condition = Condition(clock)
        self._is_settled = False
        self._silence: Timer | None = None
        self._cache = _Cache(settings.cache_file, self._kept, clock, settings.enough, on_recalled)
        self._status = ConnectionStatus(state=ConnectionState.IDLE, since=clock.unix_time())

    @property
    def petname(self) -> str:
        """The user's name for this introducer."""
        return self._settings.petname

    @property
    def status(self) -> ConnectionStatus:
        """The state of the connection."""
        return self._status

    @property
    def is_settled(self) -> bool:
        """Whether the first attempt has ended: it failed, or all announcements have arrived."""
        return self._is_settled

    def start(self) -> None:
        """Start connecting; call this once."""
        self._tasks.start(self._keep_connected(), on_error=self._ended)
        if self._settings.cache_file is not None:
            self._silence = self._clock.call_later(SILENCE_S, self._use_cache)

    def close(self) -> None:
        """Stop maintaining the connection. The Tub's owner closes the connection itself."""
        self._tasks.cancel()
        self._cache.close()
        self._settle()

    def publish(self, signed: SignedAnnouncement) -> None:
        """Publish this now, if connected, and on every later connection, in place of the last one with the same key."""
        self._published[signed.key] = signed
        if self._reference is not None:
            self._tasks.start(self._publish(self._reference, signed), on_error=self._ended)

    async def settled(self, deadline_s: float) -> bool:
        """Wait until the first attempt has ended, at most that long. Returns whether it has."""
        return await self._condition.wait_until(lambda: self._is_settled, deadline_s)

    async def _keep_connected(self) -> None:
        delay_s = FIRST_RETRY_S
        while True:
            self._set_state(ConnectionState.CONNECTING)
            try:
                lost = await with_deadline(self._clock, self._connect(), self._settings.deadline_s, self._too_late)
            except GridError as error:
                self._failed(error)
                lost = None
            if lost is None:
                await self._clock.sleep(delay_s)
                delay_s = min(LAST_RETRY_S, 2 * delay_s)
                continue
            delay_s = FIRST_RETRY_S
            if self._is_settled:
                log.info("{where} connected", where=self._where)  # The first attempt was reported by its caller.
            elif recalled := self._cache.recall():
                words = "{where} lists {count} servers, and listed {more} more last time: those serve reads only"
                log.info(words, where=self._where, count=len(self._kept), more=recalled)
            self._settle()
            await lost
            self._reference = None
            log.info("{where}: the connection was lost; retrying", where=self._where)
            self._set_state(ConnectionState.WAITING, "the connection was lost")
            await self._clock.sleep(FIRST_RETRY_S)

    async def _connect(self) -> Deferred[None]:
        """Connect, publish and subscribe. The Deferred returned fires when the connection is lost."""
        where = self._where
        try:
            reference = await self._tub.getReference(self._settings.furl.to_string())
        except REMOTE_ERRORS as error:
            raise from_remote(error, where) from None
        version = await call(reference, RIIntroducer, where, "get_version")
        if INTRODUCER_KEY not in version:
            raise PeerError(f"{where} does not speak version 2 of the introducer protocol")
        lost: Deferred[None] = Deferred()
        reference.notifyOnDisconnect(lost.callback, None)
        self._reference = reference
        self._set_state(ConnectionState.CONNECTED)
        for signed in list(self._published.values()):
            try:
                await self._publish(reference, signed)
            except PeerRefusedError as error:
                # A node that may not publish may still subscribe.
                log.info("{error}", error=error)
        subscriber = _Subscriber(self._take)
        await call(reference, RIIntroducer, where, "subscribe_v2", subscriber, STORAGE_SERVICE.encode(), self._info())
        # Of what arrives in one read, Foolscap fires answers first and delivers calls, the announcements, a turn later.
        await fireEventually()
        return lost

    async def _publish(self, reference: Any, signed: SignedAnnouncement) -> None:
        await call(reference, RIIntroducer, self._where, "publish_v2", signed.to_tuple(), Referenceable())

    def _info(self) -> dict[bytes, object]:
        return {
            b"version": 0,
            b"nickname": self._settings.nickname,
            b"app-versions": [],
            b"my-version": self._settings.version,
            b"oldest-supported": "1.0.0",
        }

    @property
    def _where(self) -> str:
        return f"introducer {self._settings.petname}"

    def _too_late(self) -> Exception:
        return PeerTimeoutError(f"{self._where} did not answer within {self._settings.deadline_s:g} s")

    def _take(self, announcements: set[Any]) -> None:
        accepted = False
        for value in announcements:
            try:
                announcement = parse_announcement(value)
            except (FormatError, IntegrityError) as error:
                log.info("{where} sent an announcement that is skipped: {error}", where=self._where, error=error)
                continue
            if announcement.service_name == STORAGE_SERVICE and self._kept.offer(announcement):
                accepted = True
                self._on_announcement(announcement)
        if accepted:
            self._cache.changed()

    def _failed(self, error: GridError) -> None:
        self._reference = None
        self._set_state(ConnectionState.WAITING, str(error))
        self._use_cache()
        self._settle()

    def _use_cache(self) -> None:
        """Use the introducer's cached announcements, if there are any."""
        if self._is_settled or self._settings.cache_file is None:
            return
        remembered = [one for one in read_cache(self._settings.cache_file) if one.service_name == STORAGE_SERVICE]
        for announcement in remembered:
            self._on_announcement(announcement)
        if remembered:
            self._settle()

    def _settle(self) -> None:
        if self._silence is not None:
            self._silence.cancel()
        if not self._is_settled:
            self._is_settled = True
            self._condition.changed()
            self._on_settled()

    def _ended(self, error: BaseException) -> None:
        if isinstance(error, GridError):
            log.info("{error}", error=error)
        elif not is_cancellation(error):
            log.error(
                "the connection to {where} ended with an internal error: {error!r}", where=self._where, error=error
            )

    def _set_state(self, state: ConnectionState, detail: str = "") -> None:
        hints = self._settings.furl.hints if state is ConnectionState.CONNECTED else ()
        address = hints[0] if hints else ""
        self._status = ConnectionStatus(state=state, since=self._clock.unix_time(), detail=detail, address=address)


@implementer(RISubscriber)  # type: ignore[misc]
class _Subscriber(Referenceable):
    """The object that the introducer calls."""

    def __init__(self, take: Callable[[set[Any]], None]) -> None:
        self._take = take

    def remote_announce_v2(self, announcements: set[Any]) -> None:
        """Receive announcements, signed by their makers."""
        self._take(announcements)


class _Cache:
    """The cache file: written at once after a change, and then not again for a while; not while too few servers are listed."""

    def __init__(
        self,
        path: Path | None,
        kept: KeptAnnouncements,
        clock: Clock,
        enough: int,
        on_recalled: Callable[[Announcement], None],
    ) -> None:
        self._path = path
        self._kept = kept
        self._clock = clock
        self._enough = enough
        self._on_recalled = on_recalled
        self._earlier: list[Announcement] | None = None
        self._is_stale = False
        self._pause: Timer | None = None

    def changed(self) -> None:
        """Note that an announcement was accepted."""
        self._is_stale = True
        if self._pause is None:
            self._write()

    def recall(self) -> int:
        """Pass on the servers that were listed earlier and are not now, if too few are; their number."""
        if not self._has_too_few():
            return 0
        listed = {each.server_id for each in self._kept}
        missing = [each for each in self._read_earlier() if each.server_id not in listed]
        for announcement in missing:
            self._on_recalled(announcement)
        return len(missing)

    def _has_too_few(self) -> bool:
        """Whether fewer than half of the servers known earlier are listed, or fewer than enough, though more were."""
        earlier, listed = len(self._read_earlier()), len(self._kept)
        return 2 * listed < earlier or listed < min(self._enough, earlier)

    def _read_earlier(self) -> list[Announcement]:
        """What the file says, read before it is written for the first time; nothing if it is old."""
        if self._earlier is None:
            is_recent = self._path is not None and self._age_s(self._path) <= RECALL_S
            found = read_cache(self._path) if self._path is not None and is_recent else []
            self._earlier = [each for each in found if each.service_name == STORAGE_SERVICE]
        return self._earlier

    def _age_s(self, path: Path) -> float:
        try:
            return abs(self._clock.unix_time() - path.stat().st_mtime)
        except OSError:
            return inf

    def close(self) -> None:
        """Write unsaved changes, and leave no timer behind."""
        for _ in range(2):  # Writing starts another pause.
            if self._pause is not None:
                self._pause.cancel()
            self._write()

    def _write(self) -> None:
        self._pause = None
        if not self._is_stale or self._path is None or self._has_too_few():
            return
        self._is_stale = False
        self._pause = self._clock.call_later(CACHE_PAUSE_S, self._write)
        try:
            write_private(self._path, pack_cache(self._kept))
        except OSError as error:
            log.info("the cache of announcements cannot be written: {error}", error=error)
