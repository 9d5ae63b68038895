"""The options --include and --exclude, and their effect on a tree."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import TypeVar, cast

import click

from grid.cli.transfer.tree import Branch
from grid.transfer.selection import Selection
from grid.transfer.selection import parse_selection as parse_patterns

F = TypeVar("F", bound=Callable[..., object])


def selection_options(verb: str) -> Callable[[F], F]:
    """Add --include and --exclude; the command gets them as `selection`. verb: what the command does with a file."""

    def add(command: F) -> F:
        @click.option(
            "--include", "include", metavar="PATTERN", multiple=True,
            help=f"{verb} only what matches: a name, or a path such as /letters/*.txt; repeat for more.",
        )  # fmt: skip
        @click.option("--exclude", "exclude", metavar="PATTERN", multiple=True,
                      help="Leave out what matches; repeat for more.")  # fmt: skip
        @wraps(command)
        def run(*arguments: object, include: Sequence[str], exclude: Sequence[str], **options: object) -> object:
            return command(*arguments, selection=parse_selection(include, exclude), **options)

        return cast(F, run)

    return add


def parse_selection(include: Iterable[str], exclude: Iterable[str]) -> Selection:
    """Parse the patterns; UsageError for an empty one."""
    try:
        return parse_patterns(include, exclude)
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def prune(root: Branch, selection: Selection) -> int:
    """Remove what is not selected from the tree, and emptied directories; return the number of files left."""
    for path, branch in reversed(list(root.walk())):
        for name in [name for name in branch.leaves if not selection.takes("/".join((*path, name)))]:
            del branch.leaves[name]
        for name, below in list(branch.branches.items()):
            shown = "/".join((*path, name))
            is_empty = not below.leaves and not below.branches
            if selection.excludes(shown, is_directory=True) or (
                is_empty and not selection.includes(shown, is_directory=True)
            ):
                del branch.branches[name]
    return root.count()[0]
