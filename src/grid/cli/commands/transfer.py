"""`grid transfer`: copies files between this machine, object stores, SFTP servers, web servers and the grid."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import wraps
from itertools import islice
from typing import TYPE_CHECKING, TypeVar, cast

import click

from grid.cli.arguments.completion import complete_local_or_remote
from grid.cli.commands.cp import JobsType, conclude
from grid.cli.terminal.failures import describe
from grid.cli.terminal.invocation import examples, invocation, pack_option, progress_options
from grid.cli.terminal.quoting import plain
from grid.cli.transfer.selection import selection_options
from grid.cli.transfer.throttle import bwlimit_option
from grid.errors import CancelledError, ConfigError
from grid.plural import counted

if TYPE_CHECKING:
    from grid.cli.terminal.progress import TransferDisplay
    from grid.cli.undo.keeping import Keeper
    from grid.transfer.ends import TargetEnd
    from grid.transfer.grid_session import GridSession
    from grid.transfer.opening import Request
    from grid.transfer.outcome import Observer, Outcome

F = TypeVar("F", bound=Callable[..., object])

PRINTED_TOGETHER = 500
"""Pieces of a result that are printed in one call."""

_COMPARISONS = {
    "checksum": ("--checksum", "Compare contents if times differ."),
    "size": ("--size-only", "Compare sizes only."),
    "update": ("--update", "Skip files that are newer in TARGET."),
}


def comparison_options(*words: str) -> Callable[[F], F]:
    """Add the options for these ways to compare files; the command gets one as `comparison`, `time` by default.

    UsageError for two of them.
    """

    def add(command: F) -> F:
        @wraps(command)
        def run(*arguments: object, **options: object) -> object:
            given = [word for word in words if options.pop(word)]
            if len(given) > 1:
                names = " and ".join(_COMPARISONS[word][0] for word in given[:2])
                raise click.UsageError(f"{names} contradict each other: give only one")
            return command(*arguments, comparison=given[0] if given else "time", **options)

        for word in reversed(words):
            name, text = _COMPARISONS[word]
            run = click.option(name, word, is_flag=True, help=text)(run)
        return cast(F, run)

    return add


class _Size(click.ParamType[int | str]):
    """A size in bytes, or `auto` where that is permitted."""

    name = "size"

    def __init__(self, *, permits_auto: bool = False) -> None:
        self._permits_auto = permits_auto

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        """The size in bytes; UsageError."""
        from grid.node.quantities import parse_size

        if isinstance(value, int):
            return value
        if self._permits_auto and value == "auto":
            return "auto"
        try:
            size = parse_size(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if size < 2**20:
            self.fail("expected at least 1MiB", param, ctx)
        return size


@click.command(
    epilog=examples(
        "grid transfer s3://instrument/run-7 work:runs/7",
        "grid transfer work:runs/7 sftp://me@host/data/run-7",
        "grid transfer --bwlimit '08:00,2M 19:00,off' ~/data work:data",
    )
)
@click.argument(
    "arguments", metavar="SOURCE... TARGET", nargs=-1, required=True, shell_complete=complete_local_or_remote
)
@click.option("--mode", type=click.Choice(["auto", "stream", "chunked", "chunked-stream"]), default="auto",
              show_default=True, help="How to read a large file. stream: from start to end; chunked: in parallel ranges;"
              " chunked-stream: in parallel ranges, delivered in order; auto: what suits the ends and the size.")  # fmt: skip
@click.option("--chunk-size", metavar="SIZE", type=_Size(permits_auto=True), default="20MiB", show_default=True,
              help="Size of each range; auto: choose by the size of the file.")  # fmt: skip
@click.option("--transfers", "--jobs", "transfers", metavar="N", type=JobsType(), default=8, show_default=True,
              help="How many files to copy at once; auto: add more as long as that speeds up the transfer.")  # fmt: skip
@click.option("--streams", metavar="N", type=JobsType(64), default=4, show_default=True,
              help="How many ranges of one file to read at once; auto: choose by source and target.")  # fmt: skip
@click.option("--max-memory", metavar="SIZE", type=_Size(), default="96MiB", show_default=True,
              help="The most file data to hold in memory; ranges that are delivered in order become shorter if they "
              "would need more.")  # fmt: skip
@bwlimit_option
@click.option("--retries", metavar="N", type=click.IntRange(0, 100), default=4, show_default=True,
              help="How many times to retry a file.")  # fmt: skip
@selection_options("Copy and remove")
@comparison_options("checksum", "size", "update")
@click.option("--verify", is_flag=True, help="Read every file back and compare it.")
@click.option(
    "--delete",
    is_flag=True,
    help="Remove files of the target that no source has; on the grid, `grid undo` brings them back.",
)
@click.option("--dry-run", is_flag=True, help="Print what would be sent and removed, and change nothing.")
@pack_option
@click.option("--convergent/--unique", "convergent", default=False,
              help="On the grid, store equal files once, which reads each file twice; by default, each gets a random "
              "key.")  # fmt: skip
@progress_options
@click.option(
    "--json", "as_json", is_flag=True, help="Print progress as JSON lines on stderr, and the result as one on stdout."
)
@click.pass_context
def transfer(
    ctx: click.Context, /, *, arguments: tuple[str, ...], as_json: bool, convergent: bool, **options: object
) -> int:
    """Copy new and changed files below each SOURCE into TARGET.

    TARGET is always a directory. A source or target is a local path, ALIAS:PATH, a capability, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX,
    az://CONTAINER/PREFIX or sftp://USER@HOST/PATH; http:// and https:// name a single file as a source. Object stores
    and SFTP need the extra `transfer`.

    Run the same command again to resume after an interruption. Finished files are sent again only if they have
    changed. If a file fails, the others are still copied, and the exit code is 1.

    PATTERN uses .gitignore syntax: a name matches at any depth; a path such as /letters/*.txt is relative to each
    SOURCE and to TARGET. Files that the patterns leave out are neither sent nor removed. --exclude wins over --include.
    """
    from grid.cli.terminal.progress import TransferDisplay

    if len(arguments) < 2:
        raise click.UsageError("give at least one source and a target")
    require_meant(ctx, arguments[:-1], arguments[-1])
    request = _request(arguments, options)
    with TransferDisplay(as_json=as_json, hidden=invocation(ctx).hides_progress) as display:
        outcome = run_request(ctx, request, display, unique=not convergent)
    if as_json:
        print_as_json(describe_outcome("transfer", outcome))
    elif not invocation(ctx).is_quiet:
        show_outcome(outcome)
    return conclude(display, as_json=as_json)


def run_request(ctx: click.Context, request: Request, display: TransferDisplay, *, unique: bool) -> Outcome:
    """Carry out the request; failures of single files go to the display's tally.

    ConfigError if there is nothing to copy and everything in the target would be deleted. CancelledError after SIGTERM.
    """
    try:
        outcome = asyncio.run(_run(ctx, request, display, unique=unique))
    except asyncio.CancelledError:
        raise CancelledError("interrupted") from None
    for name, error in outcome.failures:
        text = describe(error)
        is_named = name in text or repr(name) in text
        display.fail(text if is_named else f"{plain(name)}: {text}", is_kept=False)
    if request.plan.delete and not outcome.found:
        raise ConfigError(f"{', '.join(request.sources)}: no files here, so nothing was removed from {request.target}")
    return outcome


def show_outcome(outcome: Outcome) -> None:
    """Print what was done, or what would be done."""
    for what, name in outcome.planned:
        click.echo(f"would {what} {plain(name)}")
    click.echo(_summary(outcome))


def _request(arguments: tuple[str, ...], options: dict[str, object]) -> Request:
    from grid.transfer.opening import Request, choose_streams
    from grid.transfer.outcome import Plan

    schedule = options.pop("bwlimit")
    sources, target = arguments[:-1], arguments[-1]
    if options["chunk_size"] == "auto":
        options["chunk_size"] = None
    if options["streams"] == "auto":
        options["streams"] = choose_streams(sources, target, is_remote)
    return Request(sources=sources, target=target, plan=Plan(**options), schedule=schedule)  # type: ignore[arg-type]


async def _run(ctx: click.Context, request: Request, display: TransferDisplay, *, unique: bool) -> Outcome:
    from grid.allocator import use_huge_pages
    from grid.runtime import collect_garbage
    from grid.transfer.opening import transfer as run_transfer

    use_huge_pages()
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    opener = EndOpener(ctx, unique=unique, retries=request.plan.retries)
    # Runs at the first wait, when the ends are open and everything is imported.
    asyncio.get_running_loop().call_soon(collect_garbage)
    try:
        return await run_transfer(request, opener.open, observer_of(display))
    finally:
        await opener.close()


def observer_of(display: TransferDisplay) -> Observer:
    """An observer that shows progress on the display."""
    from grid.transfer.outcome import Observer

    tally = display.tally

    def found(size: int) -> None:
        tally.total_files += 1
        tally.total_bytes += size

    def sent(count: int) -> None:
        tally.advance(count)
        display.update()

    def ended(size: int) -> None:
        tally.finish(size, size)
        display.update()

    return Observer(found=found, sent=sent, ended=ended, warn=display.warn)


def is_remote(text: str) -> bool:
    """Whether an argument that is not a URL names something on the grid."""
    from grid.caps import has_cap_prefix

    before, colon, _ = text.partition(":")
    return has_cap_prefix(text) or (bool(colon) and "/" not in before)


def require_meant(ctx: click.Context, sources: Sequence[str], target: str) -> None:
    """Raise UsageError or NoSuchChildError for a local name that is an alias without its colon, or an unknown kind of URL."""
    from grid.cli.arguments.aliases import read_aliases
    from grid.cli.arguments.remote import require_local_source, require_local_target
    from grid.cli.connection import open_client_directory
    from grid.transfer.opening import SCHEMES, scheme_of

    try:
        aliases = read_aliases(open_client_directory(ctx))
    except ConfigError:  # There is no client directory: nothing on the grid can be meant.
        aliases = {}
    for text in (*sources, target):
        scheme, mark, _ = text.partition("://")
        if scheme_of(text):
            continue
        if mark and scheme.isalnum() and scheme not in aliases:
            raise click.UsageError(f"{scheme}:// is no kind of source or target; there are {', '.join(SCHEMES)}")
        if not is_remote(text):
            (require_local_target if text == target else require_local_source)(text, aliases)


class EndOpener:
    """Opens local and grid ends of a transfer. Starts a client when the first end needs it."""

    def __init__(self, ctx: click.Context, *, unique: bool, packs: bool = True, retries: int = 1) -> None:
        """packs: whether small files may go into packs, if the user wants that. retries: of a pack.

        Make it before there are threads.
        """
        from grid.allocator import keep_freed_memory

        keep_freed_memory()
        self._ctx, self._unique, self._packs, self._retries = ctx, unique, packs, retries
        self._session: GridSession | None = None
        self._keeper: Keeper | None = None

    def open(self, text: str, *, is_target: bool) -> TargetEnd:
        """The end of a path."""
        if not is_remote(text):
            from grid.transfer.local_end import LocalEnd

            return LocalEnd(text, is_target=is_target)
        from grid.cli.arguments.aliases import read_aliases
        from grid.cli.arguments.remote import parse_remote, require_new_names
        from grid.cli.connection import open_client_directory
        from grid.library.reactor_thread import running_reactor
        from grid.transfer.grid_end import GridEnd
        from grid.transfer.grid_session import GridSession

        if invocation(self._ctx).gateway is not None:
            raise click.UsageError(f"`grid {self._ctx.info_name}` works only without --gateway")
        directory = open_client_directory(self._ctx)
        remote = parse_remote(text, read_aliases(directory))
        if is_target:
            require_new_names(remote.names, remote.shown)
        if self._session is None:
            self._session = GridSession(directory, running_reactor(), unique=self._unique)
        given = invocation(self._ctx).packs
        packs = is_target and self._packs and (directory.settings.client.pack if given is None else given)
        keep = self._open_keeper().below(remote.shown) if is_target else None
        return GridEnd(
            self._session, remote.root, remote.names, remote.shown, packs=packs, on_replaced=keep,
            retries=self._retries,
        )  # fmt: skip

    def _open_keeper(self) -> Keeper:
        from grid.cli.undo.keeping import Keeper

        self._keeper = self._keeper or Keeper(self._ctx)
        return self._keeper

    def end_change(self) -> None:
        """Let `grid undo` undo what follows separately."""
        if self._keeper is not None:
            self._keeper.end_change()

    async def close(self) -> None:
        """Close the client's connections."""
        if self._session is not None:
            await self._session.close()


def _summary(outcome: Outcome) -> str:
    if outcome.is_dry_run:
        sent = f"{counted(outcome.to_send, 'file')} would be sent"
        return f"{sent}, {outcome.unchanged} unchanged, {outcome.to_remove} would be removed"
    parts = [f"{counted(outcome.copied, 'file')} copied"]
    for count, word in ((outcome.linked, "linked"), (outcome.unchanged, "unchanged"), (outcome.removed, "removed")):
        if count:
            parts.append(f"{count} {word}")
    if outcome.left_out:
        parts.append(f"{len(outcome.left_out)} left out")
    return ", ".join(parts)


def describe_outcome(event: str, outcome: Outcome) -> dict[str, object]:
    """The outcome for `print_as_json`."""
    return {
        "event": event,
        "files_copied": outcome.copied,
        "files_linked": outcome.linked,
        "files_unchanged": outcome.unchanged,
        "files_removed": outcome.removed,
        "bytes": outcome.sent_bytes,
        "planned": ({"do": what, "name": name} for what, name in outcome.planned),
        **describe_faults(outcome),
    }


def describe_faults(outcome: Outcome) -> dict[str, object]:
    """What was not copied, and why, for `print_as_json`."""
    from grid.node.redaction import one_line

    return {
        "left_out": ({"name": each.name, "why": each.why} for each in outcome.left_out),
        "failures": ({"name": name, "why": one_line(describe(error))} for name, error in outcome.failures),
    }


def print_as_json(fields: Mapping[str, object]) -> None:
    """Print an object on one line, whose iterators become lists; only a few of their items are in memory."""
    line = _json_pieces(fields)
    while some := "".join(islice(line, PRINTED_TOGETHER)):
        click.echo(some, nl=False)
    click.echo()


def _json_pieces(fields: Mapping[str, object]) -> Iterator[str]:
    between = "{"
    for name, value in fields.items():
        yield f"{between}{json.dumps(name)}: "
        between = ", "
        if not isinstance(value, Iterator):
            yield json.dumps(value)
            continue
        yield "["
        for number, item in enumerate(value):
            yield f"{', ' if number else ''}{json.dumps(item)}"
        yield "]"
    yield "}"
