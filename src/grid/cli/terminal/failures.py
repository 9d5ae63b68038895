"""Reports a command's failure: one line for people, or an object for programs that asked for JSON.

Neither contains a capability or a secret. Both go to stderr, because stdout may be a file's contents.
docs/exit-codes.md documents both.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence

import click

from grid.caps import has_cap_prefix
from grid.cli.terminal.exit_codes import ExitCode, exit_code
from grid.cli.terminal.quoting import plain
from grid.errors import (
    AuthorityError,
    CancelledError,
    CapError,
    ChildOfWrongTypeError,
    ConfigError,
    ConflictError,
    DirectoryError,
    ExistingChildError,
    GridError,
    MayHoldError,
    NoInvitationError,
    NoSuchChildError,
    NotEnoughSharesError,
    NotHappyError,
)
from grid.node.redaction import one_line
from grid.plural import counted

_KINDS: tuple[tuple[type[BaseException], str], ...] = (
    (AuthorityError, "no-authority"),
    (CapError, "capability"),
    (ConfigError, "configuration"),
    (ConflictError, "conflict"),
    (ExistingChildError, "exists"),
    (ChildOfWrongTypeError, "wrong-type"),
    (NotEnoughSharesError, "not-enough-shares"),
    (MayHoldError, "may-hold"),
    (NotHappyError, "too-few-servers"),
    (click.UsageError, "usage"),
)
"""Names for errors, the first match counts. Other errors differ only in their exit code."""

_BY_CODE = {
    ExitCode.USAGE: "usage",
    ExitCode.NOT_FOUND: "not-found",
    ExitCode.UNREACHABLE: "unreachable",
    ExitCode.INTEGRITY: "integrity",
    ExitCode.NO_AUTHORITY: "no-authority",
    ExitCode.NO_SPACE: "no-space",
    ExitCode.INTERRUPTED: "interrupted",
}

_HINTS = {
    ExitCode.UNREACHABLE: "; `grid status` shows which servers answer",
    ExitCode.NOT_FOUND: "; `grid status` lists servers that are offline",
}
"""What to do next, for errors from code that knows no commands."""

_OFFLINE = "; `grid status` lists servers that are offline"

_SETTLE = (
    "; make room on servers that are full and start those that are offline, then run `grid check --repair` on the directory "
    "or file that was changed"
)

_RESTART = ": start them again"

_ROOM = "free space there or lower storage.reserved_space of that node"

_CHANGE = "change that there"

_REFUSED = "; servers answered but refused: ask their operators"

_FEWER = ", or choose smaller numbers: `grid config set client.shares.happy N`, and likewise client.shares.needed and client.shares.total"

_FEWER_BY_OPTION = ", or ask for fewer with `--happy {}`"

MAX_REASONS = 8

MAX_REASON = 120

MAX_NAMES = 4
"""Servers named for one reason."""

MAX_NAME = 30


def kind_of(error: BaseException) -> str:
    """A name for the error that programs can rely on."""
    code = exit_code(error)
    if code in (ExitCode.INTEGRITY, ExitCode.NO_SPACE):
        return _BY_CODE[code]
    for kind, word in _KINDS:
        if isinstance(error, kind):
            return word
    if code in _BY_CODE:
        return _BY_CODE[code]
    if isinstance(error, GridError | click.ClickException):
        return "failed"
    return "local" if isinstance(error, OSError) else "defect"


def describe_failure(
    message: str, *, kind: str, code: int, path: str | None = None, details: Mapping[str, object] | None = None
) -> dict[str, dict[str, object]]:
    """The JSON object for a failure. path: the path it concerns, as typed; None if it concerns none."""
    shown = None if path is None else one_line(path)
    return {"error": {"kind": kind, "message": message, "path": shown, "exit_code": int(code), **(details or {})}}


def tell_failure(
    error: BaseException,
    *,
    as_json: bool,
    has_happy_option: bool = False,
    about: str | None = None,
    details: Mapping[str, object] | None = None,
    is_dated: bool = False,
) -> ExitCode:
    """Print the error to stderr and return its exit code.

    has_happy_option: the command takes --happy. about: the path that the command concerns, if the error names none.
    details: what the JSON says besides. is_dated: begin the line with the time, for a log.
    """
    code = ExitCode.USAGE if isinstance(error, click.UsageError) else exit_code(error)
    if isinstance(error, click.ClickException):
        message = one_line(error.format_message())
    else:
        message = describe(error, has_happy_option=has_happy_option)
    lines = reasons(error)
    if as_json:
        message = "; ".join([message, *lines])
    if is_dated and not as_json:
        message = dated(message)
    tell_problem(message, kind=kind_of(error), code=code, path=_path_of(error, about), as_json=as_json, details=details)
    if not as_json:
        for line in lines:
            click.echo(f"  {line}", err=True)
    return code


def tell_problem(
    message: str,
    *,
    kind: str,
    code: int,
    path: str | None = None,
    as_json: bool,
    details: Mapping[str, object] | None = None,
) -> None:
    """Report a failure that is not an exception."""
    if as_json:
        click.echo(json.dumps(describe_failure(message, kind=kind, code=code, path=path, details=details)), err=True)
    else:
        click.echo(f"grid: {message}", err=True)


def dated(message: str) -> str:
    """The message with the time of now in UTC before it, for a log in which other lines give no time."""
    return f"{time.strftime('%Y-%m-%d %H:%M:%SZ', time.gmtime())}: {message}"


def tell_warning(message: str, *, as_json: bool) -> None:
    """Report something that the command goes on in spite of."""
    line = one_line(message)
    click.echo(json.dumps({"event": "warning", "message": line}) if as_json else f"grid: warning: {line}", err=True)


def tell_unread(lost: Sequence[tuple[str, GridError]], *, as_json: bool) -> None:
    """Report directories of a tree that could not be read: paths and reasons."""
    for path, error in lost:
        message = f"could not be read: {plain(path)}: {describe(error)}"
        tell_problem(message, kind=kind_of(error), code=exit_code(error), path=path, as_json=as_json)


def named_path(command: click.Command | None, arguments: Sequence[str]) -> str | None:
    """The only path in the arguments, preferring one on the grid to a local one; None if there are several.

    A capability alone is not a path, and a capability at the start of a path is omitted.
    """
    if command is None:
        return None
    context = command.make_context(command.name, list(arguments), resilient_parsing=True)
    given = [context.params.get(each.name) for each in command.params if isinstance(each, click.Argument) and each.name]
    texts = [text for value in given for text in (value if isinstance(value, tuple) else (value,)) if text]
    paths = [text for text in texts if isinstance(text, str) and text != "-"]
    remote = [text for text in paths if has_cap_prefix(text) or ":" in text.partition("/")[0]]
    found = remote or paths
    if len(found) != 1:
        return None
    if not has_cap_prefix(found[0]):
        return found[0]
    _, slash, below = found[0].partition("/")
    return f"URI:...{slash}{below}" if below else None


def _path_of(error: BaseException, about: str | None) -> str | None:
    """The path that the error names, unless it names nothing or only a part of the command's path; then that."""
    if isinstance(error, click.UsageError):
        return None
    if isinstance(error, DirectoryError) and error.name:
        is_part = about is not None and error.name in about.replace(":", "/", 1).split("/")
        return about if is_part else error.name
    if isinstance(error, OSError) and isinstance(error.filename, str | bytes):
        return error.filename if isinstance(error.filename, str) else error.filename.decode("utf-8", "replace")
    return about


def describe(error: BaseException, *, has_happy_option: bool = False) -> str:
    """What happened and what to do, for people. has_happy_option: the command takes --happy."""
    match error:
        case KeyboardInterrupt() | CancelledError():
            return "interrupted"
        case (
            NoSuchChildError() | NoInvitationError()
        ):  # They share their exit code with missing shares, but not the remedy.
            return one_line(str(error))
        case MayHoldError():
            return one_line(str(error)).removesuffix(".") + _SETTLE
        case NotHappyError():
            return _describe_unhappy(error, has_happy_option)
        case GridError():
            text = one_line(str(error)) or type(error).__name__
            hint = _HINTS.get(exit_code(error), "")
            return text.removesuffix(".") + hint if hint and not text.endswith("?") else text
        case OSError() if error.strerror:
            where = f"{error.filename}: " if isinstance(error.filename, str) else ""
            if not where and exit_code(error) is ExitCode.NO_SPACE:
                where = "on this machine: "  # Servers run out of space too, but with another message.
            return one_line(f"{where}{error.strerror}")
        case MemoryError():
            return "not enough memory"
        case _:
            return f"unexpected {type(error).__name__}; this is a bug in Grid, and GRID_DEBUG=1 shows where"


def reasons(error: BaseException) -> list[str]:
    """Why servers did not take part, one line per reason; empty if the message says it all."""
    if not isinstance(error, NotHappyError):
        return []
    found: dict[str, dict[str, str]] = {}
    for cause in error.causes:
        reason = one_line(getattr(cause, "reason", "") or str(cause))[:MAX_REASON]
        found.setdefault(reason, {})[str(cause)] = getattr(cause, "server", "")
    lines = [f"{reason} ({_who(list(names.values()))})" for reason, names in found.items() if reason]
    return lines[:MAX_REASONS]


def _who(servers: Sequence[str]) -> str:
    """The names of some servers, as messages have them; how many there are, if some are unknown or there are too many."""
    names = sorted({one_line(name.removeprefix("server "))[:MAX_NAME] for name in servers})
    return counted(len(servers), "server") if "" in names or len(names) > MAX_NAMES else ", ".join(names)


def _describe_unhappy(error: NotHappyError, has_happy_option: bool) -> str:
    text = one_line(str(error))
    if error.reached is not None:
        took = f"only {counted(error.reached, 'server')}" if error.reached else "no server"
        text = f"{took} took shares, and {error.happy} are needed"
    elif error.causes:
        text = text.removesuffix(f" ({one_line(str(error.causes[-1]))})")
    text = text.removesuffix(".")
    code = exit_code(error)
    if error.full:
        names = one_line(", ".join(error.full))
        hint = f"; {names}: {_ROOM if ' is full' in names or ' has no space' in names else _CHANGE}"
    elif code is ExitCode.NO_SPACE:
        return text
    else:
        hint = _OFFLINE + _RESTART if code is ExitCode.UNREACHABLE else _REFUSED
    if error.fewer:
        return f"{text}{hint}, or {error.fewer}"
    if text.startswith("no server "):
        return text + hint  # A smaller number would not help.
    return text + hint + (_FEWER_BY_OPTION.format(error.reached or "N") if has_happy_option else _FEWER)
