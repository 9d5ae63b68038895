"""`grid tree`: draws everything below a directory as a tree."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

from grid.cli.arguments.completion import complete_remote
from grid.cli.commands.find import size_of, type_of, walk_path
from grid.cli.terminal.invocation import examples, json_option
from grid.cli.terminal.quoting import encodable, plain
from grid.plural import counted
from grid.values import define, field

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from grid.caps import KnownCap
    from grid.cli.arguments.tree import Tree
    from grid.directory.pack import Child, Target
    from grid.directory.walk import Visited

    Path = tuple[str, ...]

_LINES = ("├── ", "└── ", "│   ", "    ")
_ASCII = ("|-- ", "`-- ", "|   ", "    ")


@click.command(
    epilog=examples(
        "grid tree work:", "grid tree --depth 2 work:photos", "grid tree --json work: | jq 'select(.bytes > 1e9).path'"
    )
)
@click.argument("path", metavar="[PATH]", required=False, default="", shell_complete=complete_remote)
@click.option("--depth", metavar="N", type=click.IntRange(1, 1000), help="How many levels to show; default: all.")
@click.option("--directories", "only_directories", is_flag=True, help="Leave out files.")
@json_option("Print a line of JSON for each entry, and one with the totals.")
@click.pass_context
def tree(ctx: click.Context, *, path: str, depth: int | None, only_directories: bool, as_json: bool) -> int:
    """Draw everything below PATH as a tree: in each directory, first its files, then its directories.

    Without PATH: the alias `tahoe`, if you have one.
    A directory linked in several places is drawn in each, but its contents only in the first. Directories that
    cannot be read are named on stderr, and the exit code is 1.
    """
    drawing = _Drawing(as_json, only_directories, depth, _pieces())

    async def operation(visits: AsyncIterator[Visited], _: Tree) -> None:
        if not as_json:
            click.echo(plain(path or "."))
        async for visited in visits:
            if visited.children is not None:
                drawing.show(visited)

    status = walk_path(
        ctx,
        path,
        operation,
        as_json=as_json,
        prints_paths=sys.stdout.isatty(),
        depth=None if depth is None else depth - 1,
    )
    if as_json:
        click.echo(json.dumps({"event": "tree", "directories": drawing.directories, "files": drawing.files}))
    else:
        files = "" if only_directories else f", {counted(drawing.files, 'file')}"
        click.echo(f"\n{counted(drawing.directories, 'directory', 'directories')}{files}")
    return status


@define
class _Drawing:
    """Prints the entries of each directory that a walk visits.

    A walk visits subdirectories in the order of their names, each followed by everything below it. The line of a
    directory is printed when the walk visits it; all other entries are printed with their directory.
    """

    _as_json: bool
    _only_directories: bool
    _depth: int | None
    _pieces: tuple[str, str, str, str]
    directories: int = 0
    files: int = 0
    _waiting: dict[Path, tuple[str, str]] = field(factory=dict)
    """For each directory not yet visited: the start of its line, and the indentation of its entries."""
    _seen: set[KnownCap] = field(factory=set)

    def show(self, visited: Visited) -> None:
        """Print the line of a directory, and those of its entries that will not be visited."""
        begin, above = self._waiting.pop(visited.path, ("", ""))
        if visited.path:
            self._say(begin, visited.path, visited.target, "/")
        else:
            self._is_new(visited.target)
        leaves, directories = self._sort(visited.path, visited.children or {})
        branch, last, through, blank = self._pieces
        left = len(leaves) + len(directories)
        for name, child, mark in leaves:
            left -= 1
            self._say(above + (branch if left else last), (*visited.path, name), child.target, mark)
        for name in directories:
            left -= 1
            self._waiting[(*visited.path, name)] = (
                above + (branch if left else last),
                above + (through if left else blank),
            )

    def _sort(self, path: Path, children: Mapping[str, Child]) -> tuple[list[tuple[str, Child, str]], list[str]]:
        """The entries to print at once, with their suffixes, and the directories to visit later."""
        files: list[tuple[str, Child, str]] = []
        known: list[tuple[str, Child, str]] = []
        visited = []
        for name, child in children.items():
            kind = type_of(child.target)
            if kind != "directory":
                if not self._only_directories:
                    files.append((name, child, "" if kind == "file" else "  (of an unknown kind)"))
            elif not self._is_new(child.target):
                known.append((name, child, "/  (shown above)"))
            elif self._depth is not None and len(path) + 1 >= self._depth:
                known.append((name, child, "/"))
            else:
                visited.append(name)
        return files + known, visited

    def _is_new(self, target: Target) -> bool:
        """Whether the walk has not met the directory yet; one without a verify capability always counts as new."""
        from grid.caps import DirectoryCap

        assert isinstance(target, DirectoryCap)
        mark = target.verify_cap()
        is_new = mark is None or mark not in self._seen
        if mark is not None:
            self._seen.add(mark)
        return is_new

    def _say(self, begin: str, path: Path, target: Target, mark: str) -> None:
        kind = type_of(target)
        self.directories += kind == "directory"
        self.files += kind != "directory"
        if self._as_json:
            line = {"event": "entry", "path": "/".join(path), "type": kind, "bytes": size_of(target)}
            click.echo(json.dumps(line))
        else:
            click.echo(f"{begin}{plain(path[-1])}{mark}")


def _pieces() -> tuple[str, str, str, str]:
    """The characters that draw the tree, limited to those that the output can encode."""
    return _LINES if encodable("".join(_LINES), sys.stdout.encoding or "ascii") else _ASCII
