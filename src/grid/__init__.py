"""Grid: a secure, erasure-coded, distributed storage grid.

`open` is for scripts, `open_asyncio` and `open_twisted` are for programs that await. [docs/library.md]
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from grid.version import __version__

if TYPE_CHECKING:
    from grid.library.asynchronous import AsyncGrid
    from grid.library.blocking import BlockingGrid

__all__ = ["__version__", "open", "open_asyncio", "open_twisted"]


def open(node_directory: str | os.PathLike[str]) -> BlockingGrid:
    """A grid for scripts: every call waits for its result. ConfigError if this is not a client's node directory.

    RuntimeError on a thread that runs Twisted's reactor.
    """
    grid: BlockingGrid = _library("blocking").BlockingGrid(_directory(node_directory))
    return grid


def open_asyncio(node_directory: str | os.PathLike[str]) -> AsyncGrid:
    """A grid for asyncio: on Twisted's reactor if that runs the event loop, otherwise beside it. ConfigError."""
    grid: AsyncGrid = _library("asynchronous").open_asyncio(_directory(node_directory))
    return grid


def open_twisted(node_directory: str | os.PathLike[str], reactor: Any = None) -> AsyncGrid:  # noqa: ANN401
    """A grid for Twisted's coroutines; None: the global reactor. ConfigError."""
    grid: AsyncGrid = _library("asynchronous").open_twisted(_directory(node_directory), reactor)
    return grid


def _library(module: str) -> Any:  # noqa: ANN401
    """Import a module of the library, only in programs that use it."""
    return import_module(f"grid.library.{module}")


def _directory(path: str | os.PathLike[str]) -> Any:  # noqa: ANN401
    return _library("operations").open_client_directory(path)
