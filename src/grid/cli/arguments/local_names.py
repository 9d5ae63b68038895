"""Names of local files that look like aliases whose colon was forgotten: refused, never read or written by mistake.

Looks at whether such a file exists, and at nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

import click

from grid.cli.arguments.remote import with_colon
from grid.errors import NoSuchChildError


def require_local_target(name: str, aliases: Mapping[str, str]) -> None:
    """UsageError if writing to the name would make something here, and an alias is called so."""
    meant = _meant(name, aliases)
    if meant:
        raise click.UsageError(
            f"{name!r} is a name on this machine, and an alias has that name: write {meant!r} for the grid, or"
            f" './{name}' for this machine"
        )


def require_local_source(name: str, aliases: Mapping[str, str]) -> None:
    """NoSuchChildError if there is nothing of the name here, and an alias is called so."""
    meant = _meant(name, aliases)
    if meant:
        raise NoSuchChildError(f"{name}: there is no such file on this machine. Did you mean {meant!r}?", name=name)


def _meant(name: str, aliases: Mapping[str, str]) -> str:
    """The path with its colon; "" if no alias is called so, or something of the name is here."""
    return "" if os.path.lexists(name.partition("/")[0]) else with_colon(name, aliases)
