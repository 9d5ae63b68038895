"""What the command line says before the command, kept where every command finds it: the object of click's context."""

from __future__ import annotations

import click
from attrs import define

DEFAULT_DIRECTORY = "~/.grid"


@define
class Invocation:
    """One run of `grid`. gateway: None for direct. as_json: the command was asked for JSON, of its failure too.

    has_happy_option: the command takes --happy.
    """

    node_directory: str = DEFAULT_DIRECTORY
    gateway: str | None = None
    gateway_ca: str | None = None
    as_json: bool = False
    has_happy_option: bool = False


def invocation(context: click.Context) -> Invocation:
    """The run that a command's context belongs to."""
    return context.find_root().ensure_object(Invocation)
