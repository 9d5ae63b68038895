"""The SFTP door of a node directory: its host key, accounts, listening and shutdown, beside the web gateway."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from twisted.conch.ssh.keys import BadKeyError, EncryptedKeyError, Key
from twisted.internet.endpoints import serverFromString
from twisted.internet.error import CannotListenError
from twisted.logger import Logger

from grid.errors import ConfigError
from grid.gateway.shared.node_view import DoorUser, DoorView
from grid.gateway.shared.services import Services
from grid.node.directory import NodeDirectory
from grid.node.files import expand_home, read_text
from grid.node.redaction import one_line
from grid.node.web_address import place_to_listen
from grid.plural import counted
from grid.sftp.accounts import Account, Accounts, parse_accounts
from grid.sftp.door import Door
from grid.sftp.server import LEAST_RSA_BITS, SIGNATURES, SftpFactory
from grid.wire.connections.connection_limit import ConnectionLimit
from grid.wire.connections.limited_factory import deepen_backlog

MOST_SKIPPED = 20
"""Lines of the accounts file that are named in the log."""

_log = Logger("grid.sftp")


class AccountFile:
    """The accounts of a running door, reloaded when the file changes."""

    def __init__(self, path: Path) -> None:
        """ConfigError if the file cannot be used now."""
        self._path = path
        self._mark = self._look()
        self._accounts = read_accounts(path)

    @property
    def is_exposed(self) -> bool:
        """Whether others can read the capabilities in it: neither the file's mode nor its directory's prevents that."""
        return bool(self._path.stat().st_mode & 0o044 and self._path.parent.stat().st_mode & 0o011)

    def find(self, name: str, key: bytes) -> Account | None:
        """The account of this name and public key; None while the file cannot be read."""
        return self.accounts().get((name, key))

    def accounts(self) -> Accounts:
        """All accounts; empty while the file cannot be read."""
        mark = self._look()
        if mark != self._mark:
            self._mark = mark
            try:
                self._accounts = read_accounts(self._path)
            except (ConfigError, OSError) as problem:
                self._accounts = {}
                _log.warn("nobody can log in: {problem}", problem=str(problem))
        return self._accounts

    def _look(self) -> tuple[int, ...] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_ino, found.st_size, found.st_mtime_ns


def read_accounts(path: Path) -> Accounts:
    """Read the accounts file, and log which lines are skipped; ConfigError if it is missing or not text."""
    text = read_text(path)
    if text is None:
        raise ConfigError(f"{path}: no such file; it has one line for each account: NAME KEY-TYPE KEY CAPABILITY")
    skipped: list[str] = []
    accounts = parse_accounts(text, str(path), skipped.append, _require_key)
    for problem in skipped[:MOST_SKIPPED]:
        _log.warn("an SFTP account is skipped: {problem}", problem=problem)
    if len(skipped) > MOST_SKIPPED:
        _log.warn("{count} more lines are skipped", count=len(skipped) - MOST_SKIPPED)
    return accounts


def _require_key(blob: bytes) -> None:
    """Raise ConfigError for a public key that is damaged or too short."""
    try:
        key = Key.fromString(blob)
    except Exception:  # noqa: BLE001 - Conch's parsing raises whatever it meets
        raise ConfigError("the public key is damaged") from None
    if key.type() == "RSA" and key.size() < LEAST_RSA_BITS:
        raise ConfigError(f"the RSA key has fewer than {LEAST_RSA_BITS} bits")


def read_host_key(public: Path, private: Path) -> Key:
    """The host key by which clients recognize the door; ConfigError."""
    found: list[Key] = []
    for path in (private, public):
        text = read_text(path)
        if text is None:
            raise ConfigError(f"{path}: no such file; make a host key with `ssh-keygen -t ed25519 -N '' -f {private}`")
        try:
            found.append(Key.fromString(text.encode("utf-8")))
        except EncryptedKeyError:
            raise ConfigError(f"{path}: the host key has a passphrase; make one without") from None
        except (BadKeyError, ValueError, TypeError, KeyError, IndexError):
            raise ConfigError(f"{path}: not a key that ssh-keygen makes") from None
    key, shown = found
    if key.isPublic() or key.public().blob() != shown.public().blob():
        raise ConfigError(f"{private}, {public}: not the two halves of one host key")
    if not set(key.supportedSignatureAlgorithms()) & set(SIGNATURES):
        raise ConfigError(f"{private}: a {key.type()} key is not supported; make one with `ssh-keygen -t ed25519`")
    if key.type() == "RSA" and key.size() < LEAST_RSA_BITS:
        raise ConfigError(f"{private}: the RSA key has fewer than {LEAST_RSA_BITS} bits; make a longer one")
    return key


@asynccontextmanager
async def running_sftp_door(
    directory: NodeDirectory,
    services: Services,
    connection_limit: ConnectionLimit,
    reactor: Any,  # noqa: ANN401
    say: Callable[[str], None],
) -> AsyncIterator[Door]:
    """Serve the node's SFTP door while the context lasts. ConfigError.

    services: of the web gateway, whose grid and limits the door shares. connection_limit: on the connections of this
    process.
    """
    settings = directory.settings.sftp
    assert settings.port is not None
    where = f"{directory.config_file}: section [sftpd]"
    public, private, listed = (
        directory.path / expand_home(file) for file in (settings.public_key, settings.private_key, settings.accounts)
    )
    key = read_host_key(public, private)
    accounts = AccountFile(listed)
    if accounts.is_exposed:
        say(f"warning: others can read the capabilities in {listed}; run `chmod 600` on it")
    door = Door(services, accounts.find)
    factory = SftpFactory(door, [key], reactor, connection_limit)
    try:
        listening = serverFromString(reactor, place_to_listen(settings.port))
        port = deepen_backlog(await listening.listen(factory))
    except (ValueError, TypeError, KeyError) as problem:
        raise ConfigError(
            f"{where}, key port: not a place to listen, such as 8022 or tcp:8022:interface=0.0.0.0"
        ) from problem
    except (OSError, OverflowError, CannotListenError) as problem:
        raise ConfigError(f"{where}, key port: cannot listen there: {one_line(str(problem))}") from problem
    address = port.getHost()
    shown = f"sftp://{getattr(address, 'host', '')}:{getattr(address, 'port', '')}"
    view = DoorView(
        name="SFTP", address=shown, users=lambda: _users(door, accounts), active=services.sftp_traffic.active
    )
    services.doors.append(view)
    try:
        say(f"SFTP interface at {shown}")
        yield door
    finally:
        services.doors.remove(view)
        await port.stopListening()
        await factory.drain(services.settings.drain_s)
        door.close()


def _users(door: Door, accounts: AccountFile) -> list[DoorUser]:
    """The names of the accounts, and whether each may write."""
    found = []
    for account in accounts.accounts().values():
        access = "reads and writes" if account.root.authority == "write" else "reads only"
        connected = door.connections[account.name]
        found.append(DoorUser(account.name, f"{access}; {counted(connected, 'connection')}"))
    return found
