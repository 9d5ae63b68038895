"""What the clients of both protocols have in common: who the server is, how its session stands, and which calls share messages.

A client of a protocol says how sessions are made (its link) and how each call is sent. This knows no protocol, and holds
no connection.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Generic, Protocol, TypeVar

from grid.ports import (
    Allocation,
    Buffer,
    Clock,
    Find,
    LeaseSecrets,
    NewShares,
    Range,
    ServerIdentity,
    ServerVersion,
    ShareNumber,
    StorageIndex,
    StoreAnswer,
)
from grid.wire.packed.find_messages import Found
from grid.wire.queues.shared_messages import ask_together, find_queue, store_by_steps, store_queue
from grid.wire.status import ConnectionStatus


class _Session(Protocol):
    version: ServerVersion


S = TypeVar("S", bound=_Session)
S_co = TypeVar("S_co", bound=_Session, covariant=True)


class SessionLink(Protocol[S_co]):
    """One server's session, made when it is first needed."""

    @property
    def status(self) -> ConnectionStatus:
        """How the connection stands."""

    @property
    def current(self) -> S_co | None:
        """The session, if there is one."""

    async def session(self) -> S_co:
        """The present session, or the next one; PeerError if none comes."""

    def forget_failures(self) -> None:
        """The server is said to be back."""

    def close(self) -> None:
        """Give up the attempt and the connections."""


def server_name(identity: ServerIdentity) -> str:
    """The server as messages name it."""
    return f"server {identity.nickname or identity.server_id}"


class SessionServer(ABC, Generic[S]):
    """A StorageServer behind a link, as far as no protocol matters; its subclasses send the calls."""

    def __init__(self, identity: ServerIdentity, link: SessionLink[S], clock: Clock) -> None:
        """Opens nothing."""
        self._identity = identity
        self._session_link = link
        self._stores = store_queue(self._send_stores, clock)
        self._finds = find_queue(self._send_finds, clock)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._identity.server_id}>"

    @property
    def identity(self) -> ServerIdentity:
        """Who it is; constant."""
        return self._identity

    @property
    def status(self) -> ConnectionStatus:
        """How the connection stands."""
        return self._session_link.status

    async def connect(self) -> None:
        """Return when connected; PeerError if that fails. Any other method would connect as well."""
        await self._session_link.session()

    def forget_failures(self) -> None:
        """It has been announced again: the next call connects without waiting for the backoff."""
        self._session_link.forget_failures()

    def close(self) -> None:
        """Give up the connections; what waits on them fails with PeerGoneError."""
        self._session_link.close()

    @property
    def known_version(self) -> ServerVersion | None:
        """What the server said last; None without a session, or when stores get no answer."""
        session = self._session_link.current
        return None if session is None or self._stores.is_doubtful else session.version

    async def get_version(self) -> ServerVersion:
        """What the server is and has now; asked as part of connecting, or else again."""
        present = self._session_link.current
        session = await self._session_link.session()
        return session.version if session is not present else await self._renew_version(session)

    async def find_shares(
        self, storage_index: StorageIndex, ranges: Sequence[Range] = ()
    ) -> Mapping[ShareNumber, Sequence[Buffer]]:
        """Every immutable share held, with those ranges of each; small questions share messages."""
        session = await self._session_link.session()
        if session.version.batched_finds:
            found = await ask_together(Find(storage_index, ranges), self._finds)
            if found is not None:
                return found
        return await self._find_alone(session, storage_index, ranges)

    async def store_shares(self, stores: Sequence[NewShares]) -> Sequence[StoreAnswer]:
        """Store whole new shares; what is asked for while a message is on its way goes out in the next one."""
        session = await self._session_link.session()
        if session.version.batched_stores:
            return await self._stores.ask(stores)
        return [await store_by_steps(self, each) for each in stores]

    # What a protocol says.

    @abstractmethod
    async def _renew_version(self, session: S) -> ServerVersion:
        """Ask the server for its version."""

    @abstractmethod
    async def _send_stores(self, stores: Sequence[NewShares]) -> Sequence[StoreAnswer]:
        """Send whole new shares in one message."""

    @abstractmethod
    async def _send_finds(self, finds: Sequence[Find]) -> Sequence[Found | None]:
        """Send several questions about shares in one message."""

    @abstractmethod
    async def _find_alone(
        self, session: S, storage_index: StorageIndex, ranges: Sequence[Range]
    ) -> Mapping[ShareNumber, Sequence[Buffer]]:
        """Find shares with a message of their own."""

    @abstractmethod
    async def allocate(
        self,
        storage_index: StorageIndex,
        secrets: LeaseSecrets,
        share_numbers: frozenset[ShareNumber],
        share_size: int,
    ) -> Allocation:
        """Room for new shares."""
