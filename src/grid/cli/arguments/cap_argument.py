"""Reads a capability from an argument, a file, or stdin.

Anybody who can list processes sees an argument, and the shell's history keeps it; files and stdin stay private.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from grid.limits import MAX_CAP_LENGTH

if TYPE_CHECKING:
    from grid.caps import Cap

F = TypeVar("F", bound=Callable[..., object])


def cap_file_option(command: F) -> F:
    """The option `--cap-file`."""
    return click.option(
        "--cap-file", metavar="FILE", type=click.Path(dir_okay=False), help="Read the capability from a file."
    )(command)


def take_cap(arguments: tuple[str, ...], cap_file: str | None) -> tuple[Cap, tuple[str, ...]]:
    """Return the capability and the remaining arguments. `-` reads stdin. CapError, OSError or click.UsageError."""
    from grid.caps import parse_cap

    text, rest = take_text(arguments, cap_file)
    return parse_cap(text), rest


def take_text(arguments: tuple[str, ...], cap_file: str | None) -> tuple[str, tuple[str, ...]]:
    """Return the capability or path, as text, and the remaining arguments.

    A file must hold a capability or a path below one; otherwise CapError, which quotes nothing of it. OSError,
    click.UsageError.
    """
    rest = arguments
    if cap_file is not None:
        with Path(cap_file).open(encoding="ascii", errors="replace") as file:
            text = file.read(MAX_CAP_LENGTH + 2)
    elif not arguments:
        raise click.UsageError("no capability given: pass it as an argument, with --cap-file FILE, or as - for stdin")
    else:
        text, rest = arguments[0], arguments[1:]
        if text == "-":
            text = sys.stdin.read(MAX_CAP_LENGTH + 2)
    if not text.strip():
        raise click.UsageError("the capability is empty")
    if cap_file is not None:
        _require_cap(text, cap_file)
    return text.strip(), rest


def _require_cap(text: str, cap_file: str) -> None:
    from grid.caps import has_cap_prefix
    from grid.errors import CapError

    if not has_cap_prefix(text.strip()):
        raise CapError(
            f"{cap_file} does not hold a capability, which begins with URI:; pass the name of an alias as an argument"
        )
