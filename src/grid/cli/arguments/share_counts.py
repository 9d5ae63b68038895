"""The three numbers of shares that fit a grid, as the options and the commands that choose them."""

from __future__ import annotations

from os import environ
from pathlib import Path
from shlex import quote

from grid.cli.terminal.invocation import DEFAULT_DIRECTORY
from grid.plural import counted

NAMES = ("needed", "happy", "total")


def fitting_options(server_count: int) -> str:
    """Options of put and invite with numbers that fit that many servers, at least one."""
    return " ".join(f"--{name} {number}" for name, number in _fitting(server_count))


def fitting_commands(directory: Path, server_count: int) -> str:
    """The commands that give the client in this directory numbers that fit that many servers, at least one.

    In this order, so that no number is ever larger than the total.
    """
    grid = f"grid{_option(directory)} config set client.shares"
    return ", ".join(f"`{grid}.{name} {number}`" for name, number in _fitting(server_count))


def how_to_ask_for_fewer(directory: Path, server_count: int) -> str:
    """What a put that needs more servers than there are should do; "" without any server."""
    if not server_count:
        return ""
    return (
        f"choose numbers for {counted(server_count, 'server')}: `{fitting_options(server_count)}` for one file, or "
        f"{fitting_commands(directory, server_count)} for all"
    )


def _fitting(server_count: int) -> list[tuple[str, int]]:
    from grid.node.local_grid import share_counts

    return list(zip(NAMES, share_counts(server_count), strict=True))


def _option(directory: Path) -> str:
    """The option that names the directory, unless it is the one that commands use without it."""
    usual = Path(environ.get("GRID_NODE_DIR") or DEFAULT_DIRECTORY).expanduser().absolute()
    return "" if directory == usual else f" -d {quote(str(directory))}"
