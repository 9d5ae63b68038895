"""The `grid` command: runs a subcommand, and turns any error into one line and an exit code."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Sequence
from contextlib import suppress

import click

from grid.cli.terminal.exit_codes import ExitCode
from grid.cli.terminal.failures import named_path, tell_failure
from grid.cli.terminal.invocation import COMPLETE_VARIABLE, DEFAULT_DIRECTORY, DIRECT, Invocation, LazyGroup, invocation
from grid.node.redaction import one_line, redact
from grid.version import __version__

_GLOBAL_OPTIONS = {
    "-d": "-d NODEDIR",
    "--node-directory": "-d NODEDIR",
    "--gateway": "--gateway URL",
    "-u": "--gateway URL",
    "--node-url": "--gateway URL",
}
"""The correct place of options that were written after the command."""


_WRONG_WAY = {0: os.O_WRONLY, 1: os.O_RDONLY, 2: os.O_RDWR}
"""Modes for filling closed descriptors: using stdin or stdout still fails, and stderr is discarded."""


def _usage_message(error: click.UsageError) -> str:
    """Explain a usage error and, if known, what to write instead."""
    text = one_line(error.format_message())
    if isinstance(error, click.NoSuchOption) and error.option_name in _GLOBAL_OPTIONS:
        return f"{text.rstrip('.')}; it goes before the command: grid {_GLOBAL_OPTIONS[error.option_name]} COMMAND"
    return text


def _show_version(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if not value or ctx.resilient_parsing:
        return
    from grid.codec.erasure import codec_name
    from grid.crypto.hashing import hash_name

    if ctx.params.get("as_json"):
        import json

        click.echo(json.dumps({"version": __version__, "erasure_codec": codec_name(), "hashing": hash_name()}))
    else:
        click.echo(f"grid {__version__} (erasure codec: {codec_name()}; hashing: {hash_name()})")
    ctx.exit()


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="To begin, run `grid up --detach`: it starts a grid on this machine and suggests what to try. `grid "
    "COMMAND --help` explains a command, with examples.",
)
@click.option(
    "-d", "--node-directory", "node_directory", metavar="NODEDIR", envvar="GRID_NODE_DIR",
    type=click.Path(file_okay=False), help="The client directory to use (or GRID_NODE_DIR; default ~/.grid).",
)  # fmt: skip
@click.option(
    "--gateway", metavar="URL|node|none", envvar="GRID_GATEWAY",
    help="Reach the grid through a web gateway, Grid's or Tahoe-LAFS's (or GRID_GATEWAY): its URL, `node` for the "
    "gateway of the client directory, or `none` for no gateway, the default. The gateway sees every capability you "
    "use.",
)  # fmt: skip
@click.option(
    "--gateway-ca", "gateway_ca", metavar="FILE", envvar="GRID_GATEWAY_CA", type=click.Path(dir_okay=False),
    help="PEM certificates to trust for an https gateway, instead of the system's (or GRID_GATEWAY_CA).",
)  # fmt: skip
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    is_eager=True,
    help="Print results and failures as JSON; the same as --json after COMMAND. Also for --version.",
)
@click.option("--version", is_flag=True, callback=_show_version, expose_value=False, help="Show the version and exit.")
@click.pass_context
def cli(
    ctx: click.Context, node_directory: str | None, gateway: str | None, gateway_ca: str | None, as_json: bool
) -> None:
    """Store files on a grid of servers: encrypted, verified, and safe even if most servers are lost."""
    run = invocation(ctx)
    run.node_directory = node_directory or DEFAULT_DIRECTORY
    run.gateway, run.gateway_ca = None if gateway in (None, DIRECT) else gateway, gateway_ca


def run() -> int:
    """The `grid` program: `main`, and an end without the work of freeing what the system frees anyway.

    Python would free 800 modules, one by one. Threads and everything else that `atexit` ends have ended by then.
    """
    ended: list[int] = []

    def leave() -> None:
        if ended:
            for stream in (sys.stdout, sys.stderr):
                with suppress(OSError, ValueError):
                    stream.flush()
            os._exit(ended[0])

    atexit.register(leave)  # What is registered first is called last.
    ended.append(main())
    return ended[0]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    An error prints one line on stderr, plus a traceback if GRID_DEBUG=1.
    """
    fill_standard_descriptors()
    # Imports create nothing to collect; scanning it would take a tenth of the time of a small read.
    gc.disable()
    run = Invocation()
    if COMPLETE_VARIABLE in os.environ:
        from grid.cli.commands.completion import add_shells

        add_shells()
    try:
        given = sys.argv[1:] if arguments is None else list(arguments)
        run.as_json = "--json" in given  # Provisional, until we know whose option it is.
        status = cli.main(given, prog_name="grid", standalone_mode=False, obj=run, complete_var=COMPLETE_VARIABLE)
        sys.stdout.flush()
        return int(status or 0)
    except BaseException as error:
        return _fail(error, run)
    finally:
        gc.enable()


def _fail(error: BaseException, run: Invocation) -> int:
    """Report the error and return the exit code."""
    if isinstance(error, SystemExit | GeneratorExit):
        raise error
    if isinstance(error, OSError):
        _give_up_output()
    if isinstance(error, BrokenPipeError):
        # The reader of the output has closed it.
        return ExitCode.OTHER
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        if not run.as_json:
            click.echo(error.format_message(), err=True)
            return ExitCode.USAGE
        error = click.UsageError("a command is missing; --help lists them")
    if isinstance(error, click.Abort):
        error = KeyboardInterrupt()
    elif isinstance(error, click.UsageError):
        if error.ctx is not None and not run.as_json:
            click.echo(redact(error.ctx.get_usage()), err=True)
        error = click.UsageError(_usage_message(error))
    elif os.environ.get("GRID_DEBUG") == "1":
        import traceback

        click.echo(redact("".join(traceback.format_exception(error))), err=True)
    about = named_path(run.command, run.arguments) if run.as_json else None
    return tell_failure(
        error,
        as_json=run.as_json,
        has_happy_option=run.has_happy_option,
        about=about,
        details=run.error_details,
        is_dated=run.is_dated,
    )


def _give_up_output() -> None:
    """Discard the rest of stdout: Python flushes it again when it exits."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def fill_standard_descriptors() -> None:
    """Open closed standard descriptors; using stdin or stdout then fails with EBADF, as it should.

    Otherwise the next file or socket would get that number, and a message or a file's content would be written to it.
    """
    for number, flags in _WRONG_WAY.items():
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, flags)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
    # Python sets those to None that were closed at its start.
    if sys.stdin is None:
        sys.stdin = os.fdopen(0, "w", closefd=False)
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", closefd=False)
