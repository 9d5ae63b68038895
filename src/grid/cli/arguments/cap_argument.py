"""Where a command gets a capability from: its argument, a file, or stdin.

An argument is seen by everybody who may list processes, and kept by the shell; a file or stdin is not.
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
    """The capability, and the arguments after it. `-` is stdin. CapError, OSError or click.UsageError."""
    from grid.caps import parse_cap

    text, rest = take_text(arguments, cap_file)
    return parse_cap(text), rest


def take_text(arguments: tuple[str, ...], cap_file: str | None) -> tuple[str, tuple[str, ...]]:
    """What stands where a capability or a path does, and the arguments after it.

    A file holds a capability, or a path below one: CapError if not, which shows nothing of it. OSError, click.UsageError.
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
