"""Completes arguments: aliases, and paths below them on the grid.

Completion prints no errors, asks no questions, and gives up after a few seconds, because a shell waits for it.
"""

from __future__ import annotations

from contextlib import redirect_stderr
from io import StringIO
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from grid.cli.arguments.tree import Tree

PATIENCE_S = 5.0
"""Seconds allowed for listing a directory of the grid."""

MAX_ITEMS = 1000

PREFIX = "prefix"
"""The type of an item that may be continued, so the shell appends no space."""


def complete_local_or_remote(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete aliases, paths below them, and local files."""
    found = complete_remote(context, parameter, incomplete)
    return found if ":" in incomplete.partition("/")[0] else [*found, CompletionItem(incomplete, type="file")]


def complete_file(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete local files, for an option that may also take something else."""
    return [CompletionItem(incomplete, type="file")]


def complete_remote(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete aliases and paths below them."""
    with redirect_stderr(StringIO()):
        try:
            return _complete(_with_options(context), incomplete)
        except (Exception, SystemExit):
            return []


def complete_kept(
    context: click.Context, incomplete: str, read: Callable[[Path], Iterable[str]]
) -> list[CompletionItem]:
    """Complete words that a file of the client directory holds; nothing if it cannot be read. read: takes the directory."""
    from grid.cli.terminal.invocation import DEFAULT_DIRECTORY
    from grid.node.files import expand_home

    try:
        words = set(read(expand_home(context.find_root().params.get("node_directory") or DEFAULT_DIRECTORY)))
    except (Exception, SystemExit):
        return []
    return [CompletionItem(word) for word in sorted(words) if word and word.startswith(incomplete)]


def _with_options(context: click.Context) -> click.Context:
    """Apply the options before the command to the context, since a completion runs no command that would."""
    from grid.cli.terminal.invocation import DEFAULT_DIRECTORY, DIRECT, invocation

    given = context.find_root().params
    run = invocation(context)
    run.node_directory = given.get("node_directory") or DEFAULT_DIRECTORY
    run.gateway = None if given.get("gateway") in (None, DIRECT) else given["gateway"]
    run.gateway_ca = given.get("gateway_ca")
    return context


def _complete(context: click.Context, incomplete: str) -> list[CompletionItem]:
    from grid.caps import has_cap_prefix
    from grid.cli.arguments.remote import parse_remote
    from grid.cli.arguments.tree import open_tree_directory, run_in_tree
    from grid.directory.pack import Child

    home, aliases = open_tree_directory(context)
    if ":" not in incomplete:
        return [CompletionItem(f"{name}:", type=PREFIX) for name in sorted(aliases) if name.startswith(incomplete)]
    above, slash, begun = incomplete.rpartition("/")
    if not slash:
        above, slash, begun = *incomplete.partition(":")[:2], incomplete.partition(":")[2]
    if has_cap_prefix(incomplete) and slash == ":":
        return []
    remote = parse_remote(above + slash, aliases)

    async def operation(tree: Tree) -> dict[str, Child]:
        from grid.errors import PeerTimeoutError
        from grid.runtime import with_deadline

        async def list_children() -> dict[str, Child]:
            return dict(await (await tree.find_directory(remote)).list())

        clock = tree.store.runtime.clock
        return await with_deadline(clock, list_children(), PATIENCE_S, lambda: PeerTimeoutError("no answer"))

    children = run_in_tree(home, operation)
    return [
        _item(above + slash + name, child)
        for name, child in sorted(children.items())
        if name.startswith(begun) and name.isprintable()
    ][:MAX_ITEMS]


def _item(path: str, child: object) -> CompletionItem:
    from grid.caps import DirectoryCap

    is_directory = isinstance(getattr(child, "target", None), DirectoryCap)
    return CompletionItem(f"{path}/", type=PREFIX) if is_directory else CompletionItem(path)
