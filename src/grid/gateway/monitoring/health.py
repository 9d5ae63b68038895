"""Whether the gateway is alive, and whether it can do its work: for supervisors and load balancers."""

from __future__ import annotations

from collections.abc import Mapping

from grid.gateway.gateway import Gateway
from grid.gateway.http.answers import AnyAnswer, modern_json
from grid.gateway.http.exchange import Exchange
from grid.gateway.http.routing import Handler, allow


def routes(gateway: Gateway) -> Mapping[str, Handler]:
    """/healthz: it answers at all. /readyz: as many servers are connected as a put takes; 503 with the numbers if not."""

    async def healthz(exchange: Exchange) -> AnyAnswer:
        allow(exchange, "GET", "HEAD")
        return modern_json({"status": "ok"}, headers={"Cache-Control": "no-store"})

    async def readyz(exchange: Exchange) -> AnyAnswer:
        allow(exchange, "GET", "HEAD")
        servers = gateway.client.servers()
        connected = sum(server.is_connected for server in servers)
        ready = connected >= gateway.settings.happy
        found = {"ready": ready, "connected": connected, "known": len(servers), "needed": gateway.settings.happy}
        return modern_json(found, 200 if ready else 503, {"Cache-Control": "no-store"})

    return {"healthz": healthz, "readyz": readyz}
