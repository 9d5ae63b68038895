"""A whole gateway: its state between requests, and all handlers behind one factory. [spec webapi 2]"""

from __future__ import annotations

from functools import partial
from typing import Any

from grid.gateway.files import file_resource, resumable_resource
from grid.gateway.http.routing import Routes
from grid.gateway.http.server import GatewayFactory
from grid.gateway.monitoring import home_resource, monitoring_resource, node_pages, operation_status
from grid.gateway.monitoring.log_stream import LogStreams
from grid.gateway.monitoring.operation_status import EventStreams
from grid.gateway.monitoring.statistics import Statistics, StorageView
from grid.gateway.shared.services import Services
from grid.gateway.sharing import owner_resource, visitor_resource
from grid.gateway.sharing.live_links import LiveLinks
from grid.gateway.tree import operation_resource
from grid.gateway.tree.mkdir import make_unlinked
from grid.gateway.tree.operations import Operations
from grid.gateway.tree.tree_resource import tree_resource
from grid.values import define, field
from grid.wire.connections.connection_limit import ConnectionLimit


@define(kw_only=True, eq=False)
class Gateway(Services):
    """One gateway. storage: the storage server in the same node, or None."""

    storage: StorageView | None = None
    operations: Operations = field(init=False)
    statistics: Statistics = field(init=False)
    streams: EventStreams = field(init=False)
    logs: LogStreams = field(init=False, factory=LogStreams)
    links: LiveLinks = field(init=False)

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        clock = self.store.runtime.clock
        self.operations = Operations(clock)
        self.statistics = Statistics(clock, self.history.counters, self._count_connected)
        self.streams = EventStreams(self.history, clock)
        self.links = LiveLinks(self.store.runtime, self.settings.share_links)

    def _count_connected(self) -> int:
        return sum(server.is_connected for server in self.client.servers())

    def end_streams(self) -> None:
        """End tree operations, event streams, log streams and unfinished uploads, which would otherwise run forever."""
        self.operations.close()
        self.uploads.close()
        self.streams.close()
        self.logs.close()


def make_routes(gateway: Gateway) -> Routes:
    """Every path that the gateway answers."""
    found = Routes()
    found.add(node_pages.routes(gateway))
    found.add(home_resource.routes(gateway))
    found.add(operation_status.routes(gateway, gateway.streams))
    found.add(monitoring_resource.routes(gateway, gateway))
    found.add(file_resource.routes(partial(tree_resource, gateway.operations), make_unlinked))
    found.add(resumable_resource.routes())
    found.add(operation_resource.routes(gateway.operations))
    found.add(visitor_resource.routes(gateway.links))
    found.add(owner_resource.routes(gateway.links))
    found.add_former(node_pages.former_addresses())
    return found


def make_site(gateway: Gateway, reactor: Any, connection_limit: ConnectionLimit) -> GatewayFactory:  # noqa: ANN401 - Twisted's
    """The factory for a listening endpoint. connection_limit: on all connections of this process."""
    return GatewayFactory(gateway, make_routes(gateway), reactor, connection_limit)
