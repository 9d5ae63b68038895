"""What the command line says before the command, kept where every command finds it: the object of click's context."""

from __future__ import annotations

from collections.abc import Sequence

import click
from attrs import define, field

DEFAULT_DIRECTORY = "~/.grid"

DIRECT = "none"
"""What --gateway takes for no gateway, where GRID_GATEWAY names one."""


@define
class Invocation:
    """One run of `grid`. gateway: None for direct. as_json: the command was asked for JSON, of its failure too.

    has_happy_option: the command takes --happy. command, arguments: what runs, and what was written after its name.
    """

    node_directory: str = DEFAULT_DIRECTORY
    gateway: str | None = None
    gateway_ca: str | None = None
    as_json: bool = False
    has_happy_option: bool = False
    command: click.Command | None = None
    arguments: Sequence[str] = field(factory=tuple, repr=False)


def invocation(context: click.Context) -> Invocation:
    """The run that a command's context belongs to."""
    return context.find_root().ensure_object(Invocation)
