"""The connection to one server: made when first needed, by one attempt for all callers, and made again after a loss.

The client decides what is sent over it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any

from foolscap.api import DeadReferenceError
from twisted.python.failure import Failure

from grid.limits import CONNECT_DEADLINE_S
from grid.ports import Clock, ServerVersion, ShareNumber, StorageIndex
from grid.values import define, field
from grid.wire.connections.connect_watch import ConnectWatch, OnQuiet, ignore_quiet
from grid.wire.foolscap.negotiation import watch_connections
from grid.wire.foolscap.remote_errors import REMOTE_ERRORS, from_remote
from grid.wire.locators import Furl
from grid.wire.session import Connector, SessionKeeper
from grid.wire.status import ConnectionStatus


@define(eq=False)
class Session:
    """What lives as long as one connection: the remote server, its version, and share readers obtained from it."""

    reference: Any
    version: ServerVersion
    readers: OrderedDict[StorageIndex, dict[ShareNumber, Any]] = field(factory=OrderedDict)


Greet = Callable[[Any], Awaitable[ServerVersion]]
"""Asks a new remote reference for its version."""


class Link:
    """The connection to one FURL through one Tub."""

    def __init__(
        self,
        tub: Any,
        furl: Furl,
        clock: Clock,
        greet: Greet,
        where: str,
        deadline_s: float = CONNECT_DEADLINE_S,
        on_quiet: OnQuiet = ignore_quiet,
    ) -> None:
        """greet: part of connecting. where: the server's name in messages. deadline_s: for one whole attempt.

        on_quiet: called when an attempt gets no sign from the server.
        """
        self._tub = tub
        self._clock = clock
        self._on_quiet = on_quiet
        self._furl = furl
        self._greet = greet
        self._where = where
        connector = Connector(
            transport="foolscap",
            connect=self._connect,
            address=lambda session: _address(session.reference, furl),
            clean_up=lambda: self._drop("the attempt failed"),
        )
        self._keeper: SessionKeeper[Session] = SessionKeeper(connector, clock, where, deadline_s)

    @property
    def status(self) -> ConnectionStatus:
        """The state of the connection."""
        return self._keeper.status

    @property
    def current(self) -> Session | None:
        """The session, if connected."""
        session = self._keeper.current
        if session is not None and not session.reference.isConnected():
            # Requests fail one turn before Foolscap reports the loss; a retry then gets a new connection.
            self._lost(session)
        return self._keeper.current

    def learned(self, version: ServerVersion) -> None:
        """Note the server's current version."""
        if self._keeper.current is not None:
            self._keeper.learned(self._keeper.current, version)

    async def session(self) -> Session:
        """The current session, or a new one; PeerGoneError, PeerTimeoutError or another PeerError if there is none."""
        return self.current or await self._keeper.session()

    def forget_failures(self) -> None:
        """Forget failures, because the server is said to be back."""
        self._keeper.forget_failures()

    def close(self) -> None:
        """Give up the attempt and the connection. Another session() would connect again."""
        self._keeper.close()
        self._drop("closed here")

    async def _connect(self) -> Session:
        watch = ConnectWatch(self._clock, self._on_quiet)
        watch_connections(self._tub, self._furl.tub_id, watch)
        try:
            reference = await self._tub.getReference(self._furl.to_string())
            watch.end()
            session = Session(reference, await self._greet(reference))
            reference.notifyOnDisconnect(self._lost, session)
        except REMOTE_ERRORS as error:
            raise from_remote(error, self._where) from error
        finally:
            watch.end()
        return session

    def _lost(self, session: Session) -> None:
        self._keeper.lost(session, "the connection was lost")

    def _drop(self, why: str) -> None:
        """End any connection the Tub has to this server, so that the next attempt starts over."""
        for tub_reference, broker in list(self._tub.brokers.items()):
            if tub_reference.getTubID() == self._furl.tub_id:
                broker.shutdown(Failure(DeadReferenceError(why)))


def _address(reference: Any, furl: Furl) -> str:
    """The hint with which the connection was made, if Foolscap knows it."""
    try:
        winner = reference.getConnectionInfo().winningHint
    except AttributeError:
        winner = None  # An object in this process has no connection.
    if isinstance(winner, str):
        return winner
    return furl.hints[0] if furl.hints else "an unknown address"
