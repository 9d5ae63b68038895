"""The HTTP side of a storage node, on the port and with the certificate of its Tub. [spec wire 12, 13]

If `[storage] plaintext_reads` is set, shares can also be read unencrypted at a separate port.
"""

from __future__ import annotations

from typing import Any

from grid.errors import ConfigError
from grid.node.directory import NodeDirectory
from grid.ports import StorageServer
from grid.wire.budget.server_memory import ServerMemory
from grid.wire.connections.connection_limit import ConnectionLimit
from grid.wire.connections.limited_factory import deepen_backlog
from grid.wire.foolscap.negotiation import FoolscapEndpoint
from grid.wire.foolscap.tub import node_certificate
from grid.wire.http.format.announced import nurls_of
from grid.wire.http.format.tls import server_context, spki_hash_of_pem
from grid.wire.http.server.listeners import HttpOffer, PlainFactory, SharedEndpoint
from grid.wire.locators import Furl


class SharedHttp:
    """The store over HTTP, unless the configuration reserves the port for Foolscap."""

    def __init__(
        self, directory: NodeDirectory, server: StorageServer, memory: ServerMemory, connection_limit: ConnectionLimit
    ) -> None:
        """Refuses everybody until `open_to`; ConfigError if the certificate cannot be used."""
        settings = directory.settings.storage
        self._where = f"{directory.config_file}: section [storage], key plaintext_reads"
        self._plain_endpoint = settings.plaintext_reads
        self._plain_port: Any = None
        if settings.plaintext_reads is not None and (settings.force_foolscap or not settings.anonymous):
            raise ConfigError(f"{self._where}: needs HTTP, which force_foolscap or anonymous turns off")
        self._clock = memory.clock
        self._connection_limit = connection_limit
        self._certificate_file = directory.private / "node.pem"
        self._offer = HttpOffer(server, memory) if settings.anonymous and not settings.force_foolscap else None

    def share_port(self, endpoint: Any) -> Any:  # noqa: ANN401 - foolscap and endpoints have no types
        """The endpoint to give to the Tub."""
        if self._offer is None:
            return FoolscapEndpoint(endpoint, self._connection_limit)
        context = server_context(self._certificate_file)
        return SharedEndpoint(endpoint, context, self._offer.connections, self._clock, self._connection_limit)

    async def listen_in_the_clear(self, reactor: Any) -> None:  # noqa: ANN401
        """Listen for unencrypted readers, if configured; ConfigError if that is impossible."""
        if self._offer is None or self._plain_endpoint is None:
            return
        from twisted.internet.endpoints import serverFromString
        from twisted.internet.error import CannotListenError

        text = self._plain_endpoint
        try:
            endpoint = serverFromString(reactor, f"tcp:{text}" if text.isascii() and text.isdigit() else text)
        except (ValueError, TypeError, KeyError):
            raise ConfigError(f"{self._where}: not a server endpoint") from None
        try:
            listening = await endpoint.listen(PlainFactory(self._offer.plain_connections, self._connection_limit))
            self._plain_port = deepen_backlog(listening)
        except (CannotListenError, OSError, OverflowError) as error:  # OverflowError: the port number is out of range.
            raise ConfigError(f"{self._where}: cannot listen: {error}") from None

    def plain_hints(self, furl: Furl) -> tuple[str, ...]:
        """The addresses for unencrypted readers: each TCP host of the FURL."""
        if self._plain_port is None:
            return ()
        port = self._plain_port.getHost().port
        # The port follows the last colon, even if the host is an IPv6 address in brackets.
        hosts = [hint.rpartition(":")[0] for hint in furl.hints if hint.startswith("tcp:")]
        return tuple(f"{host}:{port}" for host in hosts)

    def open_to(self, furl: Furl) -> tuple[str, ...]:
        """Admit clients that know the FURL, and return the NURLs to announce."""
        if self._offer is None:
            return ()
        self._offer.open_to(furl.swissnum)
        spki_hash = spki_hash_of_pem(node_certificate(self._certificate_file))
        return tuple(nurl.to_string() for nurl in nurls_of(furl, spki_hash))

    async def close(self) -> None:
        """Close all connections now, and the separate port."""
        if self._plain_port is not None:
            await self._plain_port.stopListening()
            self._plain_port = None
        if self._offer is not None:
            self._offer.close()
