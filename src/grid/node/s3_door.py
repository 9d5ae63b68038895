"""The S3 door of a node directory: assembled, listening, and shut down in order, beside the web gateway."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from OpenSSL import SSL, crypto
from twisted.internet.endpoints import serverFromString
from twisted.internet.error import CannotListenError
from twisted.internet.ssl import CertificateOptions
from twisted.protocols.tls import TLSMemoryBIOFactory

from grid.errors import ConfigError
from grid.gateway.shared.node_view import DoorUser, DoorView
from grid.gateway.shared.services import Services
from grid.node.config import NodeSettings
from grid.node.directory import NodeDirectory
from grid.node.files import expand_home
from grid.node.redaction import one_line
from grid.node.s3_keys import KeyFile
from grid.node.web_address import place_to_listen
from grid.s3.accounts import PUBLIC
from grid.s3.door import Door
from grid.s3.server import S3Factory
from grid.wire.connections.connection_limit import ConnectionLimit
from grid.wire.connections.limited_factory import deepen_backlog

_END = b"-----END CERTIFICATE-----"


@asynccontextmanager
async def running_s3_door(
    directory: NodeDirectory,
    services: Services,
    connection_limit: ConnectionLimit,
    reactor: Any,  # noqa: ANN401
    say: Callable[[str], None],
) -> AsyncIterator[Door | None]:
    """Serve the node's S3 door, if configured, while the context lasts. ConfigError.

    services: of the web gateway, whose grid and limits the door shares. connection_limit: on the connections of this
    process.
    """
    settings = directory.settings.s3
    if settings.port is None:
        yield None
        return
    where = f"{directory.config_file}: section [s3]"
    keys = KeyFile(directory.private)
    door = Door(services, keys.find, settings.domain, keys.public, packs_objects(directory.settings))
    factory = S3Factory(door, reactor, connection_limit)
    listening: Any = factory
    if settings.certificate is not None:
        key = settings.private_key or settings.certificate
        options = certificate_options(
            directory.path / expand_home(settings.certificate), directory.path / expand_home(key)
        )
        factory.is_below_tls = True
        listening = TLSMemoryBIOFactory(options, False, factory)
    description = place_to_listen(settings.port)
    try:
        port = deepen_backlog(await serverFromString(reactor, description).listen(listening))
    except (ValueError, TypeError, KeyError) as problem:
        raise ConfigError(
            f"{where}, key port: not a place to listen, such as 9000 or tcp:9000:interface=0.0.0.0"
        ) from problem
    except (OSError, OverflowError, CannotListenError) as problem:
        raise ConfigError(f"{where}, key port: cannot listen there: {one_line(str(problem))}") from problem
    scheme = "http" if settings.certificate is None else "https"
    address = port.getHost()
    shown = f"{scheme}://{getattr(address, 'host', '')}:{getattr(address, 'port', '')}"
    view = DoorView(name="S3", address=shown, users=lambda: _users(keys), active=services.s3_traffic.active)
    services.doors.append(view)
    try:
        say(f"S3 interface at {shown}")
        yield door
    finally:
        services.doors.remove(view)
        await port.stopListening()
        await factory.drain(services.settings.drain_s)
        door.close()


def packs_objects(settings: NodeSettings) -> bool:
    """Whether the door stores small objects in packs."""
    return settings.client.pack if settings.s3.pack is None else settings.s3.pack


def _users(keys: KeyFile) -> list[DoorUser]:
    """The access keys and the buckets that they open, and the public buckets."""
    found = []
    for account in keys.accounts().values():
        if account.access_key == PUBLIC:
            found.append(DoorUser("everybody", f"{', '.join(sorted(account.buckets))}; reads only"))
            continue
        buckets = ", ".join(sorted(account.buckets)) or "no bucket by name"
        home = "; buckets made with it" if account.home is not None else ""
        found.append(DoorUser(account.access_key, f"{buckets}{home}{'; reads only' if account.is_read_only else ''}"))
    return found


def certificate_options(file: Path, key_file: Path) -> CertificateOptions:
    """The certificate with its chain and key; ConfigError."""
    try:
        blocks = [part + _END for part in file.read_bytes().split(_END)[:-1]]
        first, *chain = [crypto.load_certificate(crypto.FILETYPE_PEM, block) for block in blocks]
        key = crypto.load_privatekey(crypto.FILETYPE_PEM, key_file.read_bytes())
        options = CertificateOptions(privateKey=key, certificate=first, extraCertChain=chain)
        options.getContext().check_privatekey()
    except OSError as problem:
        raise ConfigError(f"{problem.filename}: {problem.strerror}") from None
    except (ValueError, crypto.Error, SSL.Error):
        raise ConfigError(f"{file}, {key_file}: not a certificate and its key in PEM, without a password") from None
    return options
