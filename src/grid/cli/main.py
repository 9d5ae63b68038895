"""The `grid` command: finds the subcommand, runs it, and turns whatever ends it into one line and an exit status.

It imports a command's module only when that command is asked for, or for its line in the help.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from importlib import import_module

import click

from grid import __version__
from grid.cli.terminal.descriptors import fill_standard_descriptors
from grid.cli.terminal.exit_codes import ExitCode
from grid.cli.terminal.failures import named_path, tell_failure
from grid.cli.terminal.invocation import DEFAULT_DIRECTORY, DIRECT, Invocation, invocation
from grid.node.redaction import one_line, redact

_COMMANDS = {
    "up": "grid.cli.commands.local:up",
    "down": "grid.cli.commands.local:down",
    "create": "grid.cli.commands.create:create",
    "run": "grid.cli.commands.run:run",
    "gateway": "grid.cli.commands.run:gateway",
    "stop": "grid.cli.commands.run:stop",
    "put": "grid.cli.commands.put:put",
    "get": "grid.cli.commands.get:get",
    "cp": "grid.cli.commands.cp:cp",
    "backup": "grid.cli.commands.backup:backup",
    "restore": "grid.cli.commands.backup:restore",
    "ls": "grid.cli.commands.ls:ls",
    "mkdir": "grid.cli.commands.links:mkdir",
    "mv": "grid.cli.commands.links:mv",
    "ln": "grid.cli.commands.links:ln",
    "unlink": "grid.cli.commands.links:unlink",
    "rm": "grid.cli.commands.links:unlink",
    "create-alias": "grid.cli.commands.aliases:create_alias",
    "add-alias": "grid.cli.commands.aliases:add_alias_command",
    "list-aliases": "grid.cli.commands.aliases:list_aliases",
    "manifest": "grid.cli.commands.manifest:manifest",
    "stats": "grid.cli.commands.stats:stats",
    "check": "grid.cli.commands.check:check",
    "deep-check": "grid.cli.commands.deep_check:deep_check",
    "repair": "grid.cli.commands.check:repair",
    "status": "grid.cli.commands.status:status",
}
_OTHER_NAMES = {
    "help": "grid --help",
    "version": "grid --version",
    "start": "grid run",
    "remove": "grid unlink",
    "create-introducer": "grid create introducer",
    "create-node": "grid create storage",
    "create-client": "grid create client",
    "webopen": "grid gateway",
}
"""What was meant by names that Tahoe-LAFS or other programs have."""
_GLOBAL_OPTIONS = {
    "-d": "-d NODEDIR",
    "--node-directory": "-d NODEDIR",
    "--gateway": "--gateway URL",
    "-u": "--gateway URL",
    "--node-url": "--gateway URL",
}
"""What to write before the command for options that were written after it."""


class _LazyGroup(click.Group):
    """Commands whose modules are imported when they are needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        where = _COMMANDS.get(cmd_name)
        if where is None:
            return None
        module, _, name = where.partition(":")
        command = getattr(import_module(module), name)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in _COMMANDS and args[0].replace("-", "").isalnum():
            ctx.fail(f"there is no command {args[0]!r}; {_meant(args[0])}")
        name, command, rest = super().resolve_command(ctx, args)
        run = invocation(ctx)
        if command is not None and ctx.params.get("as_json") and not _asks_for_json(command, rest):
            if not _takes(command, "--json"):
                ctx.fail(f"`grid {name}` has no --json")
            rest = ["--json", *rest]
        run.command, run.arguments = command, tuple(rest)
        run.as_json = command is not None and _asks_for_json(command, rest)
        run.has_happy_option = command is not None and _takes(command, "--happy")
        return name, command, rest


def _takes(command: click.Command, option: str) -> bool:
    return any(option in param.opts for param in command.params)


def _asks_for_json(command: click.Command, arguments: list[str]) -> bool:
    """Whether the arguments, which may be wrong otherwise, have the option that makes the command print JSON."""
    names = {name for param in command.params if "--json" in param.opts for name in param.opts}
    given = arguments[: arguments.index("--")] if "--" in arguments else arguments
    short = {name[1] for name in names if not name.startswith("--")}
    return any(
        text in names or (text.startswith("-") and not text.startswith("--") and bool(short & set(text[1:])))
        for text in given
    )


def _meant(name: str) -> str:
    """What to try in place of a command that does not exist."""
    if name in _OTHER_NAMES:
        return f"try `{_OTHER_NAMES[name]}`"
    from difflib import get_close_matches

    close = get_close_matches(name, _COMMANDS, n=1)
    return f"did you mean `grid {close[0]}`?" if close else "`grid --help` lists them"


def _usage_message(error: click.UsageError) -> str:
    """What is wrong with a command line, and what to write instead where that is known."""
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
    cls=_LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="To begin, `grid up --detach` makes a grid on this machine and says what to do with it. "
    "`grid COMMAND --help` says more of a command.",
)
@click.option(
    "-d", "--node-directory", "node_directory", metavar="NODEDIR", envvar="GRID_NODE_DIR",
    help="The client directory to use (or GRID_NODE_DIR; default ~/.grid).",
)  # fmt: skip
@click.option(
    "--gateway", metavar="URL|node|none", envvar="GRID_GATEWAY",
    help="Reach the grid through a web gateway, of Grid or of Tahoe-LAFS, and not directly (or GRID_GATEWAY): its URL,"
    " or `node` for the one of the client directory (its node.url). The gateway learns every capability used.",
)  # fmt: skip
@click.option(
    "--gateway-ca", "gateway_ca", metavar="FILE", envvar="GRID_GATEWAY_CA", type=click.Path(dir_okay=False),
    help="Certificates in PEM that vouch for an https gateway, in place of this machine's (or GRID_GATEWAY_CA).",
)  # fmt: skip
@click.option(
    "--json", "as_json", is_flag=True, is_eager=True, help="As JSON: what --version prints, or what COMMAND does."
)
@click.option("--version", is_flag=True, callback=_show_version, expose_value=False, help="Show the version and exit.")
@click.pass_context
def cli(
    ctx: click.Context, node_directory: str | None, gateway: str | None, gateway_ca: str | None, as_json: bool
) -> None:
    """Keep files on a grid of storage servers: encrypted, signed for, and safe from the loss of most of them."""
    run = invocation(ctx)
    run.node_directory = node_directory or DEFAULT_DIRECTORY
    run.gateway, run.gateway_ca = None if gateway in (None, DIRECT) else gateway, gateway_ca


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status; errors are one line on stderr, and a traceback if GRID_DEBUG=1."""
    fill_standard_descriptors()
    # What imports make stays: looking through it for garbage takes a tenth of the time that a small read does.
    gc.disable()
    run = Invocation()
    try:
        given = None if arguments is None else list(arguments)
        status = cli.main(given, prog_name="grid", standalone_mode=False, obj=run)
        sys.stdout.flush()
        return int(status or 0)
    except BaseException as error:
        return _fail(error, run)
    finally:
        gc.enable()


def _fail(error: BaseException, run: Invocation) -> int:
    """Tell of the error, and return the exit status."""
    if isinstance(error, SystemExit | GeneratorExit):
        raise error
    if isinstance(error, OSError):
        _give_up_output()
    if isinstance(error, BrokenPipeError):
        # Whoever read the output has seen enough.
        return ExitCode.OTHER
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        click.echo(error.format_message(), err=True)
        return ExitCode.USAGE
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
    return tell_failure(error, as_json=run.as_json, has_happy_option=run.has_happy_option, about=about)


def _give_up_output() -> None:
    """Where stdout takes no more, let what is left go nowhere: Python flushes it once more when it ends."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
