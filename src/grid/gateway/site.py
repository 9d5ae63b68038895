"""All of the gateway's handlers behind one factory. [spec webapi 2]"""

from __future__ import annotations

from typing import Any

from grid.gateway import web_pages
from grid.gateway.files import by_capability
from grid.gateway.gateway import Gateway
from grid.gateway.http.routing import Routes
from grid.gateway.http.server import GatewayFactory
from grid.gateway.monitoring import health, monitoring, status_pages
from grid.gateway.tree import operation_resource
from grid.gateway.tree.mkdir import make_unlinked
from grid.gateway.tree.tree_resource import tree_resource
from grid.wire.connections.places import Places


def make_routes(gateway: Gateway) -> Routes:
    """Every path that the gateway answers."""
    found = Routes()
    found.add(health.routes(gateway))
    found.add(web_pages.routes(gateway))
    found.add(status_pages.routes(gateway, web_pages.pages(gateway)))
    found.add(monitoring.routes(gateway))
    found.add(by_capability.routes(tree_resource, make_unlinked))
    found.add(operation_resource.routes())
    found.add_former(web_pages.former_addresses())
    return found


def make_site(gateway: Gateway, reactor: Any, places: Places) -> GatewayFactory:  # noqa: ANN401 - Twisted's
    """What an endpoint listens with. places: of all connections of this process."""
    return GatewayFactory(gateway, make_routes(gateway), reactor, places)
