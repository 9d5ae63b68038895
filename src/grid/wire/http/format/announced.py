"""The HTTP part of an announcement: where to reach the server, and where to read from it unencrypted. Pure.

An unusable address does not affect the others; those of future versions are skipped. [spec wire 8.1]
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from grid.errors import FormatError
from grid.limits import MAX_NURLS
from grid.wire.locators import Furl, Nurl, parse_nurl

NURLS_FIELD = "anonymous-storage-NURLs"
PLAIN_FIELD = "grid-plaintext-reads"
"""Field with the hints (`tcp:HOST:PORT`) for unencrypted reads of shares; 1.20 ignores it."""


def announced_nurls(fields: Mapping[str, Any]) -> tuple[Nurl, ...]:
    """The usable addresses, in the announced order."""
    texts = fields.get(NURLS_FIELD)
    nurls = []
    for text in texts[:MAX_NURLS] if isinstance(texts, list) else ():
        try:
            nurls.append(parse_nurl(text) if isinstance(text, str) else None)
        except FormatError:
            continue
    return tuple(nurl for nurl in nurls if nurl is not None and not nurl.over_tor)


def announced_plain(fields: Mapping[str, Any]) -> tuple[str, int] | None:
    """Host and port of the first usable hint for unencrypted reads."""
    hints = fields.get(PLAIN_FIELD)
    for hint in hints[:MAX_NURLS] if isinstance(hints, list) else ():
        address = _tcp_hint(hint) if isinstance(hint, str) else None
        if address is not None:
            return address
    return None


def nurls_of(furl: Furl, spki_hash: str) -> tuple[Nurl, ...]:
    """One address per TCP hint of a storage server that serves both protocols on one port."""
    addresses = [_tcp_hint(hint) for hint in furl.hints]
    return tuple(
        Nurl(spki_hash=spki_hash, host=address[0], port=address[1], swissnum=furl.swissnum)
        for address in addresses
        if address is not None
    )


def tcp_addresses(furl: Furl) -> frozenset[tuple[str, int]]:
    """The hosts and ports in a FURL; none if it also has hints of any other kind."""
    addresses = [_tcp_hint(hint) for hint in furl.hints]
    return frozenset(address for address in addresses if address is not None) if None not in addresses else frozenset()


def _tcp_hint(hint: str) -> tuple[str, int] | None:
    kind, _, rest = hint.partition(":")
    if kind != "tcp":
        return None
    try:
        nurl = parse_nurl(f"pb://{'A' * 43}@{rest}/x#v=1")
    except FormatError:
        return None
    return nurl.host, nurl.port
