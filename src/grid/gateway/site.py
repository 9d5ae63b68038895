"""All of the gateway's handlers behind one factory. [spec webapi 2]"""

from __future__ import annotations

from typing import Any

from grid.gateway import health, monitoring, opresource, statuspages, unlinked, webpages
from grid.gateway.gateway import Gateway
from grid.gateway.mkdir import make_unlinked
from grid.gateway.routing import Routes
from grid.gateway.server import GatewayFactory
from grid.gateway.tree_resource import tree_resource
from grid.wire.places import Places


def make_routes(gateway: Gateway) -> Routes:
    """Every path that the gateway answers."""
    found = Routes()
    found.add(health.routes(gateway))
    found.add(webpages.routes(gateway))
    found.add(statuspages.routes(gateway, webpages.pages(gateway)))
    found.add(monitoring.routes(gateway))
    found.add(unlinked.routes(tree_resource, make_unlinked))
    found.add(opresource.routes())
    found.add_former(webpages.former_addresses())
    return found


def make_site(gateway: Gateway, reactor: Any, places: Places) -> GatewayFactory:  # noqa: ANN401 - Twisted's
    """What an endpoint listens with. places: of all connections of this process."""
    return GatewayFactory(gateway, make_routes(gateway), reactor, places)
