"""A command's connection to the grid through a gateway."""

from __future__ import annotations

from attrs import frozen

from grid.caps import ChkCap, LitCap
from grid.cli.webapi.http import GatewayClient
from grid.cli.webapi.store import GatewayStore
from grid.cli.webapi.surveys import GatewaySurvey
from grid.directory.store import Store
from grid.ports import Observer, Runtime, Sink, ignore_events


@frozen
class GatewayConnection:
    """Asks the gateway for everything; it knows the servers."""

    client: GatewayClient

    @property
    def runtime(self) -> Runtime:
        """Clock, processor and entropy of this process."""
        return self.client.runtime

    async def open_store(self, observer: Observer = ignore_events) -> GatewayStore:
        """The gateway's grid; asks nothing yet."""
        return GatewayStore(client=self.client, observer=observer)

    def store_without_servers(self) -> GatewayStore:
        """A store for literal (LIT) files, which need no servers."""
        return GatewayStore(client=self.client)

    async def read_immutable(
        self, cap: ChkCap | LitCap, sink: Sink, offset: int, length: int | None, observer: Observer
    ) -> int:
        """Bytes read of an immutable file."""
        return await GatewayStore(client=self.client, observer=observer).read(cap, sink, offset, length)

    def survey(self, store: Store) -> GatewaySurvey:
        """Reads streams of the gateway."""
        assert isinstance(store, GatewayStore)
        return GatewaySurvey(store)
