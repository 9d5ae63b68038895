"""Where a web gateway listens, what it may be called, and the URL that it has. [spec webapi 1.1, 12]

Of this machine alone unless an interface is named. What asks by a name that is not the gateway's own is refused: the page of
a stranger can make its own name lead here, and would then be taken for ours. An address is nobody's to redirect.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from ipaddress import ip_address
from typing import Any
from urllib.parse import quote

from grid.errors import ConfigError
from grid.gateway.shared.services import LOOPBACK_HOSTS, AllowedHosts
from grid.node.config import NodeSettings
from grid.node.quantities import parse_hosts


class PortInUseError(ConfigError):
    """Something listens on the port already."""

    def __init__(self, port: int, cure: str) -> None:
        super().__init__(f"Port {port} is already in use; {cure}")
        self.port = port


DEFAULT_PORT = "tcp:3456:interface=127.0.0.1"

_LOOPBACK = {"tcp:": "127.0.0.1", "ssl:": "127.0.0.1", "tcp4:": "127.0.0.1", "tcp6:": r"\:\:1"}
"""What each kind of endpoint listens on unless it says so itself."""


def place_to_listen(text: str) -> str:
    """An endpoint's description, with an interface if it can have one.

    text: such a description, or the number of a port alone.
    """
    text = text.strip()
    if text.isascii() and text.isdigit():
        text = f"tcp:{text}"
    kind = text.partition(":")[0] + ":"
    if kind in _LOOPBACK and _interface(text) is None:
        text = f"{text}:interface={_LOOPBACK[kind]}"
    return text


def allowed_hosts(description: str, settings: NodeSettings) -> AllowedHosts | None:
    """What a gateway that listens there may be called; None for anything.

    On loopback its names only; elsewhere every IP address, the names of this machine and those in tub.location; and on
    both what `[node] web.allowed_hosts` has. A socket in the file system, which no browser opens, is called anything
    unless that key has names.
    """
    given = settings.web_hosts
    if "*" in given or (description.startswith("unix:") and not given):
        return None
    names = LOOPBACK_HOSTS.names.union(given)
    interface = _interface(description)
    if interface is not None and _is_loopback(interface):
        return AllowedHosts(names.union(parse_hosts(interface)))
    return AllowedHosts(names.union(_own_names(), _located(settings)), any_address=True)


def url_of(description: str, address: Any) -> str | None:  # noqa: ANN401 - Twisted's
    """The URL of what listens there, as this machine reaches it; None for a socket in the file system.

    address: what it is bound to.
    """
    number = getattr(address, "port", None)
    if number is None:
        return None
    scheme = "https" if description.startswith("ssl:") else "http"
    bound = ip_address(address.host.partition("%")[0])
    if bound.is_unspecified:
        # Every interface is one of this machine: the one that nobody else can be on.
        return f"{scheme}://[::1]:{number}/" if bound.version == 6 else f"{scheme}://127.0.0.1:{number}/"
    host = f"[{quote(address.host, safe=':')}]" if bound.version == 6 else address.host
    return f"{scheme}://{host}:{number}/"


def _interface(description: str) -> str | None:
    """What follows `interface=` in a description, without the escapes."""
    fields = description.replace("\\\\", "\0").replace("\\:", "\1").split(":")
    found = [field.partition("=")[2] for field in fields if field.startswith("interface=")]
    return found[-1].replace("\1", ":").replace("\0", "\\") if found else None


def _is_loopback(interface: str) -> bool:
    try:
        return interface == "localhost" or ip_address(interface).is_loopback
    except ValueError:
        return False


def _own_names() -> Iterator[str]:
    """As this machine itself has them, without a question to anybody; the short one also as it is found without DNS."""
    name = socket.gethostname().lower()
    short = name.partition(".")[0]
    yield from (name, short, f"{short}.local")


def _located(settings: NodeSettings) -> Iterator[str]:
    """The hosts of the hints that the node announces."""
    for hint in settings.tub_location or ():
        parts = hint.removeprefix("tcp:").rpartition(":")
        try:
            yield from parse_hosts(parts[0])
        except ValueError:
            continue
