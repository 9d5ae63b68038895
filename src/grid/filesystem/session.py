"""An open grid, a client or a gateway, shared by all file systems of a process that use the same one.

It owns the calls from asyncio, on any thread, to the reactor. It stays open until the reactor ends.
"""

from __future__ import annotations

import asyncio
import copyreg
import os
import sys
import warnings
from collections.abc import Callable, Coroutine, Mapping
from threading import Lock
from types import MethodType
from typing import TYPE_CHECKING, Any, TypeVar

from twisted.internet.defer import Deferred
from twisted.persisted.styles import pickleMethod
from twisted.python import threadable

from grid.cli.arguments.aliases import read_aliases
from grid.directory.file_store import FileStore
from grid.errors import ConfigError
from grid.filesystem.tree import Tree
from grid.library.operations import open_client_directory
from grid.library.reactor_thread import running_reactor, submit
from grid.node.client import Client, LiveServers
from grid.node.directory import NodeDirectory
from grid.node.files import expand_home, read_text
from grid.runtime import ReactorClock, RealRuntime, SystemEntropy, ThreadCpuPool
from grid.values import frozen

if TYPE_CHECKING:
    # Programs without a gateway do not pay for this import.
    from grid.cli.webapi.home import GatewayHome

T = TypeVar("T")

DEFAULT_DIRECTORY = "~/.grid"

NO_GATEWAY = "none"
"""Overrides a gateway named by the environment."""


@frozen(kw_only=True)
class GridAddress:
    """Identifies a grid. gateway: a URL, `node` for the one that runs in the directory, or None for our own client."""

    directory: str
    gateway: str | None = None
    gateway_ca: str | None = None

    @classmethod
    def chosen(cls, directory: str | None, gateway: str | None, gateway_ca: str | None) -> GridAddress:
        """The given address, or else the environment's, as for commands. A directory alone means no gateway."""
        if gateway is None and directory is None:
            gateway = os.environ.get("GRID_GATEWAY") or None
        named = directory or os.environ.get("GRID_NODE_DIR") or DEFAULT_DIRECTORY
        return cls(directory=named, gateway=None if gateway == NO_GATEWAY else gateway, gateway_ca=gateway_ca)


class Session:
    """An open grid. Any thread may use it."""

    def __init__(self, address: GridAddress) -> None:
        """ConfigError."""
        self._home = _open_home(address)
        self._client: Client | None = None
        self._tree: Tree | None = None

    def aliases(self) -> Mapping[str, str]:
        """Aliases by name, as commands know them; ConfigError."""
        return read_aliases(self._home)

    async def run(self, operation: Callable[[Tree], Coroutine[Any, Any, T]]) -> T:
        """Run the operation on the reactor's thread and return its result.

        Raises its errors; NoServersError, ConfigError.
        """
        if on_reactor_thread():
            here = Deferred.fromCoroutine(self._run(sys.modules["twisted.internet.reactor"], operation))
            return await here.asFuture(asyncio.get_running_loop())
        reactor = running_reactor()
        return await asyncio.wrap_future(submit(reactor, self._run(reactor, operation)))

    async def _run(self, reactor: Any, operation: Callable[[Tree], Coroutine[Any, Any, T]]) -> T:  # noqa: ANN401
        if self._tree is None:
            _pickle_methods_as_python_does()
            self._tree = self._open(reactor)
        if self._client is not None:
            await self._client.servers()
        return await operation(self._tree)

    def _open(self, reactor: Any) -> Tree:  # noqa: ANN401
        pool = ThreadCpuPool(reactor)
        runtime = RealRuntime(clock=ReactorClock(reactor), cpu=pool, entropy=SystemEntropy())
        reactor.addSystemEventTrigger("during", "shutdown", pool.stop)
        if not isinstance(self._home, NodeDirectory):
            from grid.cli.webapi.http import GatewayClient
            from grid.cli.webapi.store import GatewayStore

            gateway = GatewayClient(self._home.address, runtime, reactor)
            _close_before_the_end(reactor, gateway.close)
            return Tree(GatewayStore(client=gateway))
        client = self._client = Client(self._home, runtime, reactor)
        _close_before_the_end(reactor, client.close)
        is_mdmf = self._home.settings.client.mutable_format == "MDMF"
        store = FileStore(grid=client.grid(LiveServers(client)), mutable_format="mdmf" if is_mdmf else "sdmf")
        client.start_probing()
        return Tree(store)


class _Sessions:
    """The sessions of this process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._pid = 0
        self._open: dict[GridAddress, Session] = {}

    def get(self, address: GridAddress) -> Session:
        """The session of this address, opened if necessary. ConfigError; RuntimeError after a fork."""
        with self._lock:
            if self._open and self._pid != os.getpid():
                raise RuntimeError(
                    "this process was forked from one that had a grid open: start processes with 'spawn' or 'forkserver',"
                    " or use the grid only after the fork"
                )
            session = self._open.get(address)
            if session is None:
                session = Session(address)
                self._open[address], self._pid = session, os.getpid()
            return session


_sessions = _Sessions()


def open_session(address: GridAddress) -> Session:
    """The only session of this process with this address. ConfigError; RuntimeError if it was opened before a fork."""
    return _sessions.get(address)


def on_reactor_thread() -> bool:
    """Whether this thread runs Twisted's reactor, without importing one."""
    reactor = sys.modules.get("twisted.internet.reactor")
    return bool(getattr(reactor, "running", False)) and threadable.isInIOThread()


def _pickle_methods_as_python_does() -> None:
    """Let class methods be pickled, which dask sends to its workers: Twisted registers a way that cannot restore them."""
    if copyreg.dispatch_table.get(MethodType) is pickleMethod:
        del copyreg.dispatch_table[MethodType]


def _open_home(address: GridAddress) -> NodeDirectory | GatewayHome:
    if address.gateway is None:
        return open_client_directory(expand_home(address.directory))
    from grid.cli.webapi.address import parse_address
    from grid.cli.webapi.home import GatewayHome

    path = expand_home(address.directory)
    exists = path.is_dir()
    text, named = address.gateway, "gateway"
    if address.gateway == "node":
        named = str(path / "node.url")
        text = (read_text(path / "node.url") if exists else None) or ""
        if not text:
            raise ConfigError(
                f"{named} does not exist: no gateway is running in this directory; `grid gateway` starts one"
            )
    found = parse_address(text, named, address.gateway_ca)
    if not found.is_secure and not found.is_loopback:
        warnings.warn(
            f"everyone between here and {found.host} can read what you send, including capabilities: use https",
            stacklevel=2,
        )
    return GatewayHome(address=found, path=path.absolute(), is_lasting=exists)


def _close_before_the_end(reactor: Any, close: Callable[[], Coroutine[Any, Any, None]]) -> None:  # noqa: ANN401
    reactor.addSystemEventTrigger("before", "shutdown", lambda: Deferred.fromCoroutine(close()))
