"""Chooses where a node listens and what it announces: free ports, and this machine's addresses.

It leaves nothing open. [spec wire 1; cli 6.1]
"""

from __future__ import annotations

import random
import socket
from collections.abc import Iterable
from ipaddress import ip_address

from grid.errors import ConfigError
from grid.node.directory import NodeDirectory
from grid.node.files import PUBLIC_MODE, read_text, write_atomically

_PORTS = range(20000, 32000)
"""Below the ports that Linux uses for outgoing connections, which could otherwise take one before the node does."""
_TRIES = 500
LOOPBACK = "127.0.0.1"


def free_port(interface: str = "", taken: Iterable[int] = ()) -> int:
    """Find a TCP port that nothing listens on, outside `taken`; ConfigError if there is none."""
    avoid = frozenset(taken)
    for _ in range(_TRIES):
        port = random.choice(_PORTS)
        if port in avoid:
            continue
        with socket.socket() as probe:
            try:
                probe.bind((interface, port))
            except OSError:
                continue
            return port
    raise ConfigError("no free TCP port was found; name one with --port and --location")


def local_addresses() -> list[str]:
    """The machine's IP addresses that others can reach, loopback last and link-local ones omitted."""
    import psutil

    found: dict[str, None] = {}
    for interface in psutil.net_if_addrs().values():
        for address in interface:
            if address.family in (socket.AF_INET, socket.AF_INET6) and "%" not in address.address:
                found[address.address] = None
    usable = [text for text in found if not ip_address(text).is_link_local]
    return sorted(usable, key=lambda text: ip_address(text).is_loopback) or [LOOPBACK]


def listening_endpoints(directory: NodeDirectory) -> tuple[str, ...] | None:
    """The endpoint descriptions a node listens on; None if it does not. A port chosen here is saved and reused."""
    configured = directory.settings.tub_port
    if configured is None or configured:
        return configured
    file = directory.path / f"{directory.kind.value}.port"
    kept = (read_text(file) or "").strip()
    if not kept:
        kept = f"tcp:{free_port()}"
        write_atomically(file, f"{kept}\n".encode(), PUBLIC_MODE)
    return (f"tcp:{kept}" if kept.isascii() and kept.isdigit() else kept,)


def location_hints(location: Iterable[str], ports: Iterable[int]) -> tuple[str, ...]:
    """The location hints to announce. `AUTO` expands to every local address with every port."""
    hints: list[str] = []
    for item in location:
        if item == "AUTO":
            addresses = [f"[{text}]" if ":" in text else text for text in local_addresses()]
            hints += [f"tcp:{address}:{port}" for port in ports for address in addresses]
        else:
            hints.append(item)
    return tuple(dict.fromkeys(hints))
