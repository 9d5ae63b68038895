"""What the clients of both protocols share: the server's identity, the state of its session, and calls that share messages.

Each protocol's client says how sessions are made (its link) and how calls are sent. This module knows no protocol and holds
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
    """The session with one server, made when first needed."""

    @property
    def status(self) -> ConnectionStatus:
        """The state of the connection."""

    @property
    def current(self) -> S_co | None:
        """The session, or None."""

    async def session(self) -> S_co:
        """The current session, or a new one; PeerError if there is none."""

    def forget_failures(self) -> None:
        """Forget failures, because the server is said to be back."""

    def close(self) -> None:
        """Give up the attempt and the connections."""


def server_name(identity: ServerIdentity) -> str:
    """The server's name in messages."""
    return f"server {identity.nickname or identity.server_id}"


class SessionServer(ABC, Generic[S]):
    """The protocol-independent part of a StorageServer behind a link. Subclasses send the calls."""

    def __init__(self, identity: ServerIdentity, link: SessionLink[S], clock: Clock) -> None:
        """Opens no connection."""
        self.identity = identity
        """The server's identity, which is constant."""
        self._session_link = link
        self._stores = store_queue(self._send_stores, clock)
        self._finds = find_queue(self._send_finds, clock)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.identity.server_id}>"

    @property
    def status(self) -> ConnectionStatus:
        """The state of the connection."""
        return self._session_link.status

    async def connect(self) -> None:
        """Return when connected; PeerError if that fails. All other methods connect as well."""
        await self._session_link.session()

    def forget_failures(self) -> None:
        """Connect at the next call without waiting for the backoff, because the server was announced again."""
        self._session_link.forget_failures()

    def close(self) -> None:
        """Close the connections; waiting calls fail with PeerGoneError."""
        self._session_link.close()

    @property
    def known_version(self) -> ServerVersion | None:
        """The server's last known version; None without a session, or if stores get no answer."""
        session = self._session_link.current
        return None if session is None or self._stores.is_doubtful else session.version

    def asks_for_room(self, size: int) -> bool:
        """Whether store_shares asks for room before it sends that many bytes: if a server needs that, or if it is quicker."""
        session = self._session_link.current
        return session is not None and (not session.version.batched_stores or self._is_quicker_in_steps(session, size))

    def _is_quicker_in_steps(self, session: S, size: int) -> bool:
        """Whether whole shares of that many bytes are stored more quickly by separate calls than in one message."""
        return False

    async def get_version(self) -> ServerVersion:
        """The server's current version, obtained while connecting or asked for again."""
        present = self._session_link.current
        session = await self._session_link.session()
        return session.version if session is not present else await self._renew_version(session)

    async def find_shares(
        self, storage_index: StorageIndex, ranges: Sequence[Range] = ()
    ) -> Mapping[ShareNumber, Sequence[Buffer]]:
        """Every immutable share of the storage index, with those ranges of each. Small questions share messages."""
        session = await self._session_link.session()
        if session.version.batched_finds:
            found = await ask_together(Find(storage_index, ranges), self._finds)
            if found is not None:
                return found
        return await self._find_alone(session, storage_index, ranges)

    async def store_shares(self, stores: Sequence[NewShares]) -> Sequence[StoreAnswer]:
        """Store whole new shares. Calls made while a message is on its way go into the next one."""
        session = await self._session_link.session()
        if not session.version.batched_stores or self._is_quicker_in_steps(session, sum(new.size for new in stores)):
            return [await store_by_steps(self, each) for each in stores]
        return await self._stores.ask(stores)

    # Implemented by each protocol.

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
        """Find shares with a separate message."""

    @abstractmethod
    async def allocate(
        self,
        storage_index: StorageIndex,
        secrets: LeaseSecrets,
        share_numbers: frozenset[ShareNumber],
        share_size: int,
    ) -> Allocation:
        """Allocate room for new shares."""
