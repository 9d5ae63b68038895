"""`grid get`: read a file, or a part of it."""

from __future__ import annotations

import json
import re
import sys
import time
from typing import TYPE_CHECKING

import click

from grid.cli.cap_argument import cap_file_option

if TYPE_CHECKING:
    from grid.node.client import Client

_RANGE = re.compile(r"([0-9]{1,19})?-([0-9]{1,19})?", re.ASCII)


@click.command(short_help="Read the file of a capability.")
@click.argument("arguments", metavar="CAP|- [FILE|-]", nargs=-1)
@cap_file_option
@click.option(
    "--range", "span", metavar="A-B", help="Only octets A to B, counted from 0; A- to the end, -N the last N."
)
@click.option("--json", "as_json", is_flag=True, help="Progress and the result as JSON lines on stderr.")
@click.pass_context
def get(
    ctx: click.Context, *, arguments: tuple[str, ...], cap_file: str | None, span: str | None, as_json: bool
) -> int:
    """Read the file of CAP into FILE (default and -: stdout).

    FILE appears when it is whole and proven to be what was put; a get that fails leaves it as it was. A capability on
    the command line is seen by all who may list processes: --cap-file FILE or - (stdin) keep it secret.
    """
    from grid.cli.cap_argument import take_cap
    from grid.cli.client_command import open_client_directory, require_immutable, run_with_client
    from grid.cli.progress import ProgressDisplay
    from grid.cli.targets import DescriptorSink, open_target
    from grid.node.reading import read_file

    parsed, rest = take_cap(arguments, cap_file)
    if len(rest) > 1:
        raise click.UsageError("one target at most: the name of a file, or - for stdout")
    cap = require_immutable(parsed, to_read=True)
    offset, length = _parse_range(span, cap.size)
    directory = open_client_directory(ctx)
    target = rest[0] if rest else None
    with open_target(target) as descriptor, ProgressDisplay(as_json=as_json) as display:
        began_at = time.monotonic()

        async def operation(client: Client) -> int:
            sink = DescriptorSink(descriptor, client.runtime.cpu)
            return (await read_file(client, cap, sink, offset, length, display)).size

        size = run_with_client(directory, operation)
    if as_json:
        line = {"event": "get", "size": size, "seconds": round(time.monotonic() - began_at, 3)}
        print(json.dumps(line), file=sys.stderr)
    return 0


def _parse_range(text: str | None, size: int) -> tuple[int, int | None]:
    """Offset and length of a range in a file of so many octets, as HTTP reads it; click.UsageError if it is outside."""
    if text is None:
        return 0, None
    match = _RANGE.fullmatch(text)
    if match is None or (match[1] is None and match[2] is None):
        raise click.UsageError("--range takes A-B, A- or -N")
    if match[1] is None:
        length = min(int(match[2]), size)
        return size - length, length
    first = int(match[1])
    last = size - 1 if match[2] is None else min(int(match[2]), size - 1)
    if match[2] is not None and int(match[2]) < first:
        raise click.UsageError("--range ends before it begins")
    if first >= size:
        raise click.UsageError(f"--range begins after the file's {size} octets")
    return first, last - first + 1
