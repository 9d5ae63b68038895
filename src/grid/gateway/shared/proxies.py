"""What trusted proxies say of a request: from which address it came, and whether over TLS. Pure. (decision 476)

Anyone can send these headers. They count only if the connection comes from a configured proxy, and of a list of
addresses, only what such proxies have added to its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from grid.values import frozen

UNIX = "unix"
"""Stands for all that connect through a socket in the file system."""

_FOR = b"x-forwarded-for"
_PROTO = b"x-forwarded-proto"


@frozen
class TrustedProxies:
    """The proxies of a gateway. is_unix: whether those that connect through a socket in the file system are trusted."""

    networks: tuple[IPv4Network | IPv6Network, ...] = ()
    is_unix: bool = False

    @classmethod
    def of(cls, texts: Iterable[str]) -> TrustedProxies:
        """The proxies at these addresses, in these networks, or behind a socket (`unix`). ValueError for anything else."""
        every = tuple(texts)
        return cls(tuple(ip_network(text) for text in every if text != UNIX), UNIX in every)

    def trust(self, peer: str) -> bool:
        """Whether what comes from this address counts. peer: "" for a socket in the file system."""
        if not peer:
            return self.is_unix
        address = _address(peer)
        return address is not None and any(
            address in network for network in self.networks if network.version == address.version
        )

    def behind(self, scheme: str, peer: str, headers: Iterable[tuple[bytes, Sequence[bytes]]]) -> tuple[str, str]:
        """The scheme and the address of a request, given those of its connection. headers: the values of all lines, by name."""
        if not self.trust(peer):
            return scheme, peer
        lines: dict[bytes, list[str]] = {_FOR: [], _PROTO: []}
        for name, values in headers:
            if name.lower() in lines:
                lines[name.lower()] += [value.decode("latin-1") for value in values]
        return self.scheme_behind(peer, scheme, lines[_PROTO]), self.peer_behind(peer, lines[_FOR])

    def peer_behind(self, peer: str, addresses: Sequence[str]) -> str:
        """The address that the last trusted proxy got the request from; that of the connection if none says it.

        addresses: the values of all `X-Forwarded-For` lines.
        """
        found = peer
        for text in reversed(",".join(addresses).split(",")):
            if not self.trust(found):
                break
            before = _address(_without_port(text.strip()))
            if before is None:
                break
            found = str(before)
        return found

    def scheme_behind(self, peer: str, scheme: str, protocols: Sequence[str]) -> str:
        """`https` or `http`, as a trusted proxy says of its own connection; `scheme` if none says it.

        protocols: the values of all `X-Forwarded-Proto` lines.
        """
        last = ",".join(protocols).rpartition(",")[2].strip().lower()
        return last if last in ("http", "https") and self.trust(peer) else scheme


NO_PROXIES = TrustedProxies()


def _without_port(text: str) -> str:
    """The address of `ADDRESS`, `1.2.3.4:PORT`, `[ADDRESS]` or `[ADDRESS]:PORT`."""
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0] if text.count(":") == 1 else text


def _address(text: str) -> IPv4Address | IPv6Address | None:
    """The address, without its zone, and as IPv4 if it stands for one; None if it is none."""
    try:
        found = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found
