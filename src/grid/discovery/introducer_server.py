"""The introducer: relays signed announcements from publishers to subscribers. [spec wire 6-9]

It keeps everything in memory only; publishers and subscribers reconnect after a restart. It
checks signatures, so that nobody can replace another's announcement, and reads nothing of an announcement
except its service and its sequence number.
"""

from __future__ import annotations

from typing import Any

from foolscap.api import Referenceable
from twisted.internet.defer import Deferred
from twisted.logger import Logger
from zope.interface import implementer

from grid.discovery.announcement import Announcement, parse_announcement
from grid.discovery.introducer_schema import APPLICATION_KEY, INTRODUCER_KEY, RIIntroducer, RISubscriber
from grid.discovery.server_files import KeptAnnouncements
from grid.errors import FormatError, IntegrityError, PeerError
from grid.limits import MAX_SUBSCRIBERS
from grid.wire.foolscap.client.calls import send
from grid.wire.foolscap.remote_errors import REMOTE_ERRORS, answer, remote_class
from grid.wire.reasons import words_for

log = Logger()

UnknownKeyError = remote_class("allmydata.introducer.common.UnknownKeyError")
BadSignature = remote_class("allmydata.crypto.error.BadSignature")


@implementer(RIIntroducer)  # type: ignore[misc]
class Introducer(Referenceable):
    """The remote object that an introducer FURL names."""

    def __init__(self, application: str) -> None:
        """application: name and version, for clients that ask."""
        self._application = application
        self._kept = KeptAnnouncements()
        self._subscribers: dict[str, list[Any]] = {}

    @property
    def announcements(self) -> list[Announcement]:
        """All announcements kept."""
        return list(self._kept)

    @property
    def subscriber_count(self) -> int:
        """Current subscriptions, over all services."""
        return sum(map(len, self._subscribers.values()))

    def remote_get_version(self) -> dict[bytes, object]:
        """The version dictionary."""
        return {INTRODUCER_KEY: {}, APPLICATION_KEY: self._application.encode()}

    def remote_publish_v2(self, announcement: object, canary: object) -> None:
        """Keep the announcement if it is new, and pass it on."""
        try:
            accepted = parse_announcement(announcement)
        except FormatError as error:
            raise UnknownKeyError(str(error)) from None
        except IntegrityError as error:
            raise BadSignature(str(error)) from None
        if self._kept.offer(accepted):
            log.info("announcement of {id} accepted", id=accepted.server_id)
            for subscriber in list(self._subscribers.get(accepted.service_name, ())):
                self._announce(subscriber, [accepted])

    def remote_subscribe_v2(
        self, subscriber: Any, service_name: bytes, subscriber_info: dict[bytes, object]
    ) -> Deferred[None]:
        """Send the subscriber all announcements kept for the service, and later ones as they come."""
        return answer(self._subscribe(subscriber, service_name))

    async def _subscribe(self, subscriber: Any, service_name: bytes) -> None:
        try:
            service = service_name.decode()
        except UnicodeDecodeError as error:
            raise FormatError("a service name is UTF-8 text") from error
        if self.subscriber_count >= MAX_SUBSCRIBERS:
            raise PeerError("this introducer has too many subscribers")
        subscribers = self._subscribers.setdefault(service, [])
        if any(known is subscriber for known in subscribers):
            return
        subscribers.append(subscriber)
        subscriber.notifyOnDisconnect(self._unsubscribe, service, subscriber)
        kept = self._kept.of_service(service)
        if kept:
            await self._announce(subscriber, kept)

    def _unsubscribe(self, service: str, subscriber: Any) -> None:
        remaining = [known for known in self._subscribers.get(service, ()) if known is not subscriber]
        if remaining:
            self._subscribers[service] = remaining
        else:
            self._subscribers.pop(service, None)

    def _announce(self, subscriber: Any, announcements: list[Announcement]) -> Deferred[None]:
        tuples = {accepted.signed.to_tuple() for accepted in announcements if accepted.signed is not None}

        def failed(failure: Any) -> None:
            failure.trap(*REMOTE_ERRORS)
            log.info("a subscriber did not accept an announcement: {reason}", reason=words_for(failure.value))

        return send(subscriber, RISubscriber, "announce_v2", tuples).addErrback(failed)
