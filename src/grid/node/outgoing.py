"""What a configuration allows of connections from here. Pure. [spec cli 6.1]"""

from __future__ import annotations

from grid.errors import ConfigError
from grid.node.config import NodeSettings


def require_plain_tcp(settings: NodeSettings) -> None:
    """Never connect directly where the configuration asks for something that hides the address."""
    if settings.tcp_handler == "tor":
        raise ConfigError("section [connections], key tcp: Tor is not supported by this version; nothing is sent")
    if not settings.reveal_address and settings.tcp_handler != "disabled":
        raise ConfigError("section [node], key reveal-IP-address: cannot be false while [connections] tcp is tcp")
