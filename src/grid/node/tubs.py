"""Foolscap Tubs as a node's configuration requires them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from grid.errors import ConfigError
from grid.node.addresses import listening_endpoints, location_hints
from grid.node.config import NodeSettings, require_plain_tcp
from grid.node.directory import NodeDirectory
from grid.node.files import make_private_directory
from grid.node.identity import write_node_id
from grid.wire.foolscap.tub import listen, node_certificate, set_location, start_tub

DEFAULT_KEEPALIVE_S = 60
DEFAULT_DISCONNECT_S = 600


def client_tub(settings: NodeSettings) -> Any:  # noqa: ANN401 - foolscap has no types
    """A Tub with a temporary certificate for outgoing connections; ConfigError if none is permitted."""
    require_plain_tcp(settings)
    return _start(settings, None)


def node_tub(directory: NodeDirectory) -> Any:  # noqa: ANN401
    """The node's own Tub with its permanent certificate; it does not listen yet. ConfigError."""
    require_plain_tcp(directory.settings)
    make_private_directory(directory.private)
    tub = _start(directory.settings, node_certificate(directory.private / "node.pem"))
    write_node_id(directory, str(tub.tubID))
    return tub


async def listen_as_configured(
    tub: Any,  # noqa: ANN401
    directory: NodeDirectory,
    reactor: Any,  # noqa: ANN401 - as are reactors
    share_port: Callable[[Any], Any],
) -> tuple[str, ...]:
    """Let the Tub listen as configured, and return its location. ConfigError if it cannot.

    Objects registered right after this exist before the first connection is served. share_port: wraps an endpoint in
    one whose connections hold permits, and on which another protocol may listen as well.
    """
    from twisted.internet.endpoints import serverFromString

    where = f"{directory.config_file}: section [node], key tub.port"
    descriptions, location = listening_endpoints(directory), directory.settings.tub_location
    if descriptions is None or location is None:
        raise ConfigError(f"{where}: this node must listen on a port")
    ports = []
    for description in descriptions:
        try:
            endpoint = serverFromString(reactor, description)
        except (ValueError, TypeError, KeyError):
            raise ConfigError(f"{where}: not a server endpoint") from None
        ports.append(await listen(tub, share_port(endpoint)))
    hints = location_hints(location, ports)
    set_location(tub, hints)
    return hints


def _start(settings: NodeSettings, certificate: bytes | None) -> Any:  # noqa: ANN401
    keepalive_s, disconnect_s = settings.keepalive_s, settings.disconnect_s
    tub = start_tub(
        certificate,
        keepalive_s=DEFAULT_KEEPALIVE_S if keepalive_s is None else keepalive_s,
        disconnect_s=DEFAULT_DISCONNECT_S if disconnect_s is None else disconnect_s,
    )
    if settings.tcp_handler == "disabled":
        tub.removeAllConnectionHintHandlers()
    return tub
