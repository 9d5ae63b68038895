"""The HTTP side of a storage node: on the port and with the certificate of its Tub. [spec wire 12, 13]"""

from __future__ import annotations

from typing import Any

from grid.node.directory import NodeDirectory
from grid.ports import Clock, StorageServer
from grid.wire.foolscap.tub import node_certificate
from grid.wire.http.announced import nurls_of
from grid.wire.http.listeners import HttpOffer, SharedEndpoint
from grid.wire.http.tls import server_context, spki_hash_of_pem
from grid.wire.locators import Furl


class SharedHttp:
    """The store over HTTP, unless the configuration leaves Foolscap alone on its port."""

    def __init__(self, directory: NodeDirectory, server: StorageServer, clock: Clock) -> None:
        """Nobody is let in before `open_to`; ConfigError if the certificate cannot be used."""
        settings = directory.settings.storage
        self._clock = clock
        self._certificate_file = directory.private / "node.pem"
        self._offer = HttpOffer(server, clock) if settings.anonymous and not settings.force_foolscap else None

    def share_port(self, endpoint: Any) -> Any:  # noqa: ANN401 - foolscap and endpoints have no types
        """The endpoint to give to the Tub."""
        if self._offer is None:
            return endpoint
        context = server_context(self._certificate_file)
        return SharedEndpoint(endpoint, context, self._offer.connections, self._clock)

    def open_to(self, furl: Furl) -> tuple[str, ...]:
        """Let those in who know the FURL, and the NURLs to announce to them."""
        if self._offer is None:
            return ()
        self._offer.open_to(furl.swissnum)
        spki_hash = spki_hash_of_pem(node_certificate(self._certificate_file))
        return tuple(nurl.to_string() for nurl in nurls_of(furl, spki_hash))

    def close(self) -> None:
        """Close all connections now."""
        if self._offer is not None:
            self._offer.close()
