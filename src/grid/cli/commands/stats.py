"""`grid stats`: counts the objects below a directory and sums up their sizes. [spec cli 2.12]"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from grid.cli.arguments.completion import complete_remote
from grid.cli.terminal.invocation import examples, invocation, progress_options

if TYPE_CHECKING:
    from grid.cli.arguments.remote import RemotePath
    from grid.cli.arguments.tree import Tree
    from grid.cli.terminal.survey_progress import SurveyDisplay

_PREFIXES = "kMGTPE"

_KEYS = (
    "count-immutable-files",
    "count-mutable-files",
    "count-literal-files",
    "count-files",
    "count-directories",
    "size-immutable-files",
    "size-mutable-files",
    "size-literal-files",
    "size-directories",
    "largest-directory",
    "largest-immutable-file",
    "count-slices",
    "count-sequences",
    "count-packs",
    "size-packs",
    "live-bytes-packs",
    "dead-bytes-packs",
)


@click.command(epilog=examples("grid stats work:", "grid stats work:docs", "grid stats --json work:docs"))
@click.argument("path", metavar="[PATH]", required=False, default="", shell_complete=complete_remote)
@progress_options
@click.option("-r", "--raw", "--json", "raw", is_flag=True, help="Print JSON.")
@click.pass_context
def stats(ctx: click.Context, *, path: str, raw: bool) -> int:
    """Count files and directories below PATH, and add up their sizes.

    Without PATH: the alias `tahoe`, if you have one.
    """
    from grid.cli.arguments.remote import parse_remote
    from grid.cli.arguments.tree import open_tree_directory, run_in_tree
    from grid.cli.terminal.survey_progress import SurveyDisplay

    directory, aliases = open_tree_directory(ctx)
    remote = parse_remote(path, aliases)

    async def operation(tree: Tree) -> Mapping[str, object]:
        with SurveyDisplay("counting", hidden=invocation(ctx).hides_progress) as display:
            return await _collect(tree, remote, display)

    counted = run_in_tree(directory, operation)
    click.echo(json.dumps({**counted, "finished": True}, indent=1) if raw else "\n".join(describe_stats(counted)))
    return 0


async def _collect(tree: Tree, remote: RemotePath, display: SurveyDisplay) -> Mapping[str, object]:
    counted: list[Mapping[str, object]] = []
    root = await tree.find_directory(remote)
    async for _ in display.watch(tree.survey.visit(root.cap, counted.append)):
        pass
    return counted[0]


def describe_stats(counted: Mapping[str, object]) -> list[str]:
    """The statistics as text."""
    lines = ["Counts and Total Sizes:"]
    for key in _KEYS:
        value = counted.get(key)
        if isinstance(value, int):
            shown = f"    {_both_sizes(value)}" if value > 1000 and not key.startswith("count") else ""
            lines.append(f"{key:>22}: {value}{shown}")
    histogram = counted.get("size-files-histogram")
    if isinstance(histogram, Sequence) and histogram:
        lines += ["Size Histogram:", *_describe_histogram(histogram)]
    return lines


def _describe_histogram(histogram: Sequence[Sequence[int]]) -> list[str]:
    width = max(len(str(most)) for _, most, _ in histogram)
    count_width = max(len(str(count)) for _, _, count in histogram)
    lines = []
    previous: int | None = None
    for least, most, count in histogram:
        if previous is not None and least != previous + 1:
            lines.append(" " * (width - 1) + "...")
        previous = most
        lines.append(f"{least:>{width}}-{most:<{width}} : {count:<{count_width}}    {_both_sizes(most)}")
    return lines


def _both_sizes(size: int) -> str:
    return f"({_scaled(size, 1000, 'B')}, {_scaled(size, 1024, 'iB')})"


def _scaled(size: int, base: int, suffix: str) -> str:
    if size < 1024:
        return f"{size} B"
    power = 1
    while power < len(_PREFIXES) and size >= base ** (power + 1):
        power += 1
    return f"{size / base**power:.2f} {_PREFIXES[power - 1]}{suffix}"
