"""Foolscap's ends of connections as a node's configuration wants them."""

from __future__ import annotations

from typing import Any

from grid.errors import ConfigError
from grid.node.addresses import listening_endpoints, location_hints
from grid.node.config import NodeSettings
from grid.node.directory import NodeDirectory
from grid.node.files import make_private_directory
from grid.node.identity import write_node_id
from grid.wire.foolscap.tub import listen, node_certificate, set_location, start_tub, stop_tub

DEFAULT_KEEPALIVE_S = 60
DEFAULT_DISCONNECT_S = 600


def client_tub(settings: NodeSettings) -> Any:  # noqa: ANN401 - foolscap has no types
    """A Tub with a throw-away certificate, for connections from here; ConfigError if none may be made."""
    _require_plain_tcp(settings)
    return _start(settings, None)


async def listening_tub(directory: NodeDirectory, reactor: Any) -> Any:  # noqa: ANN401 - as are reactors
    """The node's own Tub, listening where its configuration says; ConfigError if it cannot, or must not."""
    from twisted.internet.endpoints import serverFromString

    settings = directory.settings
    descriptions = listening_endpoints(directory)
    if descriptions is None or settings.tub_location is None:
        raise ConfigError(f"{directory.config_file}: section [node], key tub.port: this node has to listen somewhere")
    _require_plain_tcp(settings)
    make_private_directory(directory.private)
    tub = _start(settings, node_certificate(directory.private / "node.pem"))
    ready = False
    try:
        ports = []
        for description in descriptions:
            try:
                endpoint = serverFromString(reactor, description)
            except (ValueError, TypeError, KeyError):
                raise ConfigError(
                    f"{directory.config_file}: section [node], key tub.port: not a server endpoint"
                ) from None
            ports.append(await listen(tub, endpoint))
        set_location(tub, location_hints(settings.tub_location, ports))
        write_node_id(directory, str(tub.tubID))
        ready = True
    finally:
        if not ready:
            await stop_tub(tub)
    return tub


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


def _require_plain_tcp(settings: NodeSettings) -> None:
    """Never connect directly where the configuration asks for something that hides the address."""
    if settings.tcp_handler == "tor":
        raise ConfigError("section [connections], key tcp: Tor is not supported by this version; nothing is sent")
    if not settings.reveal_address and settings.tcp_handler != "disabled":
        raise ConfigError("section [node], key reveal-IP-address: cannot be false while [connections] tcp is tcp")
