"""Where a web gateway listens, the host names it accepts, and its URL. [spec webapi 1.1, 12]

It listens on this machine only, unless an interface is named. Requests for other host names are refused: a foreign page
can make its own name resolve to this address, and would then look like one of ours. IP addresses cannot be redirected.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from ipaddress import ip_address
from typing import Any
from urllib.parse import quote, urlsplit

from grid.errors import ConfigError
from grid.gateway.shared.services import LOOPBACK_HOSTS, AllowedHosts
from grid.node.config import NodeSettings
from grid.node.quantities import parse_hosts


class PortInUseError(ConfigError):
    """Something already listens on the port."""

    def __init__(self, port: int, cure: str) -> None:
        super().__init__(f"Port {port} is already in use; {cure}")
        self.port = port


DEFAULT_PORT = "tcp:3456:interface=127.0.0.1"

_LOOPBACK = {"tcp:": "127.0.0.1", "ssl:": "127.0.0.1", "tcp4:": "127.0.0.1", "tcp6:": r"\:\:1"}
"""The default interface of each kind of endpoint."""


def place_to_listen(text: str) -> str:
    """An endpoint's description, with an interface if its kind has one.

    text: such a description, or just a port number.
    """
    text = text.strip()
    if text.isascii() and text.isdigit():
        text = f"tcp:{text}"
    kind = text.partition(":")[0] + ":"
    if kind in _LOOPBACK and _interface(text) is None:
        text = f"{text}:interface={_LOOPBACK[kind]}"
    return text


def allowed_hosts(description: str, settings: NodeSettings) -> AllowedHosts | None:
    """The Host names that a gateway which listens there accepts; None for any.

    On loopback, its local names; elsewhere every IP address, the names of this machine and those in tub.location; in
    both cases also `[node] web.allowed_hosts`. A Unix socket, which no browser opens, accepts any name unless that key
    lists some.
    """
    given = settings.web_hosts
    if "*" in given or (description.startswith("unix:") and not given):
        return None
    names = LOOPBACK_HOSTS.names.union(given)
    interface = _interface(description)
    if interface is not None and _is_loopback(interface):
        return AllowedHosts(names.union(parse_hosts(interface)))
    public = next(iter(given), None) or _public_name(interface)
    return AllowedHosts(names.union(_own_names(), _located(settings)), any_address=True, public=public)


def url_for_others(url: str, hosts: AllowedHosts | None) -> str | None:
    """The address of the gateway with this URL for other machines; None if they cannot reach it, or nobody knows how."""
    parts = urlsplit(url)
    return None if hosts is None or not hosts.public else f"{parts.scheme}://{hosts.public}:{parts.port}/"


def is_on_loopback(url: str) -> bool:
    """Whether the URL leads to this machine alone. Only there does `grid web` make a browser known to the gateway."""
    return _is_loopback(urlsplit(url).hostname or "")


def url_of(description: str, address: Any) -> str | None:  # noqa: ANN401 - Twisted's
    """The URL at which this machine reaches the endpoint; None for a Unix socket.

    address: the address to which it is bound.
    """
    number = getattr(address, "port", None)
    if number is None:
        return None
    scheme = "https" if description.startswith("ssl:") else "http"
    bound = ip_address(address.host.partition("%")[0])
    if bound.is_unspecified:
        # It listens on every interface; use loopback, which no other machine can take over.
        return f"{scheme}://[::1]:{number}/" if bound.version == 6 else f"{scheme}://127.0.0.1:{number}/"
    host = f"[{quote(address.host, safe=':')}]" if bound.version == 6 else address.host
    return f"{scheme}://{host}:{number}/"


def _interface(description: str) -> str | None:
    """The value of `interface=` in a description, unescaped."""
    fields = description.replace("\\\\", "\0").replace("\\:", "\1").split(":")
    found = [field.partition("=")[2] for field in fields if field.startswith("interface=")]
    return found[-1].replace("\1", ":").replace("\0", "\\") if found else None


def _is_loopback(interface: str) -> bool:
    try:
        return interface == "localhost" or ip_address(interface).is_loopback
    except ValueError:
        return False


def _public_name(interface: str | None) -> str:
    """The interface's address if it is one, otherwise the machine's name."""
    try:
        address = ip_address(interface or "")
    except ValueError:
        return socket.gethostname().lower()
    if address.is_unspecified:
        return socket.gethostname().lower()
    return f"[{address}]" if address.version == 6 else str(address)


def _own_names() -> Iterator[str]:
    """The machine's names as it knows them itself, without a DNS query, including the short name's local form."""
    name = socket.gethostname().lower()
    short = name.partition(".")[0]
    yield from (name, short, f"{short}.local")


def _located(settings: NodeSettings) -> Iterator[str]:
    """The hosts of the location hints that the node announces."""
    for hint in settings.tub_location or ():
        parts = hint.removeprefix("tcp:").rpartition(":")
        try:
            yield from parse_hosts(parts[0])
        except ValueError:
            continue
