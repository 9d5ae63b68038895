"""The command line as a whole: the table of commands, how they are found, and the global options.

A command's module is imported only when that command runs; the table holds its line of `grid --help`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TypeVar

import click
from click.shell_completion import CompletionItem

from grid.values import define, field, frozen

F = TypeVar("F", bound=Callable[..., object])

DEFAULT_DIRECTORY = "~/.grid"

COMPLETE_VARIABLE = "_GRID_COMPLETE"
"""The environment variable with which a shell requests completions."""

DIRECT = "none"
"""The value of --gateway that ignores GRID_GATEWAY and uses no gateway."""


@frozen
class CommandEntry:
    """One command. where: `module:name` below grid.cli.commands. help: its line in the list."""

    where: str
    help: str


SECTIONS: dict[str, dict[str, CommandEntry]] = {
    "Files": {
        "put": CommandEntry("put:put", "Store a file and print its capability."),
        "get": CommandEntry("get:get", "Read a file, or part of it."),
        "cat": CommandEntry("cat:cat", "Write files to stdout, one after the other."),
        "cp": CommandEntry("cp:cp", "Copy files and directories to, from and within the grid."),
        "sync": CommandEntry("sync:sync", "Copy what changed from one directory to another."),
        "transfer": CommandEntry("transfer:transfer", "Copy many files between disks, S3, SFTP and the grid."),
        "watch": CommandEntry("watch:watch", "Store every file that appears in a folder."),
    },
    "Directories": {
        "ls": CommandEntry("ls:ls", "List a directory."),
        "find": CommandEntry("find:find", "Find files and directories by name or type."),
        "tree": CommandEntry("tree:tree", "Draw a directory as a tree."),
        "du": CommandEntry("find:du", "Show how large directories are."),
        "mkdir": CommandEntry("links:mkdir", "Create a directory."),
        "mv": CommandEntry("links:mv", "Move or rename a file or directory."),
        "ln": CommandEntry("links:ln", "Link a file or directory at another path."),
        "rm": CommandEntry("links:unlink", "Remove a file or directory."),
        "unlink": CommandEntry("links:unlink", "The same as rm."),
        "undo": CommandEntry("undo:undo", "Undo a removal, a replacement or a move."),
        "create-alias": CommandEntry("aliases:create_alias", "Create a directory and give it a name."),
        "add-alias": CommandEntry("aliases:add_alias_command", "Give an existing directory a name."),
        "list-aliases": CommandEntry("aliases:list_aliases", "List your aliases, the names of directories."),
        "alias": CommandEntry("alias:alias", "Export or import your aliases, encrypted."),
    },
    "Sharing": {
        "share": CommandEntry("share:share", "Make a link for people with a browser, which ends."),
        "shares": CommandEntry("share:shares", "List your share links."),
        "unshare": CommandEntry("share:unshare", "Take a share link back."),
        "block": CommandEntry("block:block", "Let your gateway show something to nobody."),
        "blocks": CommandEntry("block:blocks", "List what is blocked."),
        "unblock": CommandEntry("block:unblock", "Let your gateway show it again."),
    },
    "Backup and maintenance": {
        "backup": CommandEntry("backup:backup", "Store a snapshot of a local directory."),
        "restore": CommandEntry("restore:restore", "Restore a snapshot to this machine."),
        "snapshots": CommandEntry("snapshots:snapshots", "List the snapshots of a backup."),
        "diff": CommandEntry("diff:diff", "Compare two snapshots, or any two directories."),
        "forget": CommandEntry("snapshots:forget", "Remove old snapshots from a backup."),
        "check": CommandEntry("check:check", "Check the health of files and directories."),
        "deep-check": CommandEntry("deep_check:deep_check", "Check the health of everything below a directory."),
        "repair": CommandEntry("check:repair", "Recreate missing and damaged shares."),
        "pack": CommandEntry("packs:pack", "Put small files below a directory into packs."),
        "unpack": CommandEntry("packs:unpack", "Store packed files separately again."),
        "repack": CommandEntry("packs:repack", "Rewrite packs that are mostly unused."),
        "manifest": CommandEntry("manifest:manifest", "List everything below a directory."),
        "stats": CommandEntry("stats:stats", "Count files and sizes below a directory."),
    },
    "Nodes": {
        "up": CommandEntry("local:up", "Start a grid on this machine, to try things out."),
        "down": CommandEntry("local:down", "Stop the grid on this machine; its data stays."),
        "df": CommandEntry("df:df", "Show how much space the servers have."),
        "status": CommandEntry("status:status", "Show which introducers and servers can be reached."),
        "init": CommandEntry("init:init", "Create a client and a first directory, step by step."),
        "create": CommandEntry("create:create", "Create a client, a storage node or an introducer."),
        "invite": CommandEntry("invite:invite", "Invite a new node to the grid, by a one-time code."),
        "config": CommandEntry("config:config", "Show and change the settings of a node."),
        "run": CommandEntry("run:run", "Run a node in the foreground."),
        "gateway": CommandEntry("run:gateway", "Serve the grid over HTTP, with pages for a browser."),
        "s3": CommandEntry("s3:s3", "Manage the keys and public buckets of the S3 interface."),
        "web": CommandEntry("web:web", "Open the gateway's pages in a browser."),
        "stop": CommandEntry("run:stop", "Stop a running node."),
        "completion": CommandEntry("completion:completion", "Print the code for completion in your shell."),
    },
}
"""Every command, in the groups and the order of the help."""

COMMANDS = {name: entry for section in SECTIONS.values() for name, entry in section.items()}

_OTHER_NAMES = {
    "version": ("--version",),
    "start": ("run", "up"),
    "remove": ("rm",),
    "delete": ("rm",),
    "rmdir": ("rm",),
    "download": ("get", "cp"),
    "upload": ("put", "cp"),
    "undelete": ("undo",),
    "compare": ("diff",),
    "prune": ("forget",),
    "copy": ("cp",),
    "move": ("mv",),
    "rename": ("mv",),
    "mirror": ("sync",),
    "rsync": ("sync",),
    "list": ("ls", "list-aliases"),
    "verify": ("check --verify",),
    "create-introducer": ("create introducer",),
    "create-node": ("create storage",),
    "create-client": ("create client",),
    "webopen": ("web",),
    "publish": ("share",),
    "revoke": ("unshare", "block"),
    "join": ("create client --join CODE", "create storage --join CODE"),
}
"""Commands of Tahoe-LAFS or other programs, and their names here."""


@define
class Invocation:
    """One run of `grid`. gateway: None for direct. as_json: the command prints JSON, also on failure.

    has_happy_option: the command takes --happy. packs: whether --pack or --no-pack was given. is_quiet: print only
    results, warnings and errors. is_dated: messages of failures begin with the time, because they go to a log. command,
    arguments: the command that runs, and the words after its name. error_details: what a failure's JSON says beyond its
    message.
    """

    node_directory: str = DEFAULT_DIRECTORY
    gateway: str | None = None
    gateway_ca: str | None = None
    as_json: bool = False
    has_happy_option: bool = False
    is_quiet: bool = False
    is_dated: bool = False
    hides_progress: bool = False
    packs: bool | None = None
    command: click.Command | None = None
    arguments: Sequence[str] = field(factory=tuple, repr=False)
    error_details: dict[str, object] = field(factory=dict, repr=False)

    @property
    def uses_default_directory(self) -> bool:
        """Whether the default node directory applies because -d was not given."""
        from os import environ

        return self.node_directory in (DEFAULT_DIRECTORY, environ.get("GRID_NODE_DIR"))


def invocation(context: click.Context) -> Invocation:
    """The run that a command's context belongs to."""
    return context.find_root().ensure_object(Invocation)


def prints_json() -> bool:
    """Whether the command that is running prints JSON; False outside commands."""
    context = click.get_current_context(silent=True)
    return context is not None and invocation(context).as_json


def progress_options(command: F) -> F:
    """Add `--quiet` and `--no-progress` to a command that shows progress."""

    def note(context: click.Context, parameter: click.Parameter, value: bool) -> None:
        run = invocation(context)
        run.hides_progress = run.hides_progress or value
        run.is_quiet = run.is_quiet or (value and parameter.name == "quiet")

    for names, text in (
        (("--no-progress",), "Do not show progress, either as a bar or as JSON."),
        (("-q", "--quiet"), "Print results, warnings and errors only."),
    ):
        command = click.option(*names, is_flag=True, expose_value=False, callback=note, help=text)(command)
    return command


def pack_option(command: F) -> F:
    """Add `--pack` and `--no-pack` to a command that stores local files."""

    def note(context: click.Context, parameter: click.Parameter, value: bool | None) -> None:
        invocation(context).packs = value

    text = (
        "Store small new files together in packs, which is faster and takes less space, but Tahoe-LAFS clients cannot read "
        "them; default: `pack` in the configuration, or no."
    )
    return click.option("--pack/--no-pack", default=None, expose_value=False, callback=note, help=text)(command)


def json_option(text: str = "Print the result as one line of JSON.") -> Callable[[F], F]:
    """Add `--json`, which the command gets as `as_json`. Every command has it."""
    return click.option("--json", "as_json", is_flag=True, help=text)


def examples(*lines: str) -> str:
    """An epilog with example command lines, printed verbatim."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])


class LazyGroup(click.Group):
    """A group that imports the modules of its commands when needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command of this name; None if there is none."""
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        module, _, name = entry.where.partition(":")
        command = getattr(import_module(f"grid.cli.commands.{module}"), name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands by section, without importing any."""
        for section, entries in SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl([(name, entry.help) for name, entry in entries.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete commands and options without importing any command."""
        found = [CompletionItem(name, help=e.help) for name, e in COMMANDS.items() if name.startswith(incomplete)]
        return found + click.Command.shell_complete(self, ctx, incomplete)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the arguments start with, and the rest; records both for error messages."""
        if args[:1] == ["help"]:
            if len(args) == 1:
                click.echo(ctx.get_help())
                ctx.exit()
            args = [*args[1:], "--help"]
        if args and args[0] not in COMMANDS and args[0].replace("-", "").isalnum():
            ctx.fail(f"unknown command {args[0]!r}; {_meant(args[0])}")
        name, command, rest = super().resolve_command(ctx, args)
        if command is None:
            return name, command, rest
        run = invocation(ctx)
        run.as_json = bool(ctx.params.get("as_json"))
        leaf, words, given = _leaf(ctx, command, rest)
        if run.as_json and not _asks_for_json(leaf, given) and not isinstance(leaf, click.Group):
            given = ["--json", *given]
        run.command, run.arguments = leaf, tuple(given)
        run.as_json = run.as_json or _asks_for_json(leaf, given)
        run.has_happy_option = _takes(leaf, "--happy")
        return name, command, [*words, *given]


def _leaf(ctx: click.Context, command: click.Command, rest: list[str]) -> tuple[click.Command, list[str], list[str]]:
    """The subcommand that actually runs, the words that lead to it, and its arguments."""
    below = command.get_command(ctx, rest[0]) if isinstance(command, click.Group) and rest else None
    if below is None:
        return command, [], rest
    leaf, words, given = _leaf(ctx, below, rest[1:])
    return leaf, [rest[0], *words], given


def _takes(command: click.Command, option: str) -> bool:
    return any(option in param.opts for param in command.params)


def _asks_for_json(command: click.Command, arguments: list[str]) -> bool:
    """Whether the arguments, which may otherwise be invalid, ask the command for JSON."""
    names = {name for param in command.params if "--json" in param.opts for name in param.opts}
    given = arguments[: arguments.index("--")] if "--" in arguments else arguments
    short = {name[1] for name in names if not name.startswith("--")}
    return any(
        text in names or (text.startswith("-") and not text.startswith("--") and bool(short & set(text[1:])))
        for text in given
    )


def _meant(name: str) -> str:
    """Suggest a command for a name that does not exist."""
    if name in _OTHER_NAMES:
        return f"try {_any_of(_OTHER_NAMES[name])}"
    from difflib import get_close_matches

    close = get_close_matches(name, COMMANDS, n=3)
    return f"did you mean {_any_of(close)}?" if close else "`grid --help` lists them"


def _any_of(names: Sequence[str]) -> str:
    *most, last = (f"`grid {name}`" for name in names)
    return f"{', '.join(most)} or {last}" if most else last
