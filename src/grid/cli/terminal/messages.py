"""What a command says when it fails: one line that holds no capability and no secret. Pure."""

from __future__ import annotations

from grid.cli.terminal.exit_codes import ExitCode, exit_code
from grid.errors import CancelledError, GridError, NoSuchChildError, NotHappyError
from grid.node.redaction import one_line
from grid.plural import counted

_HINTS = {
    ExitCode.UNREACHABLE: "; `grid status` shows who answers",
    ExitCode.NOT_FOUND: "; `grid status` lists servers that are offline",
}
"""What to do next, where the message of an error, which knows of no commands, does not ask the right question."""

_OFFLINE = "; `grid status` lists servers that are offline"
_RESTART = ": start them again"
_REFUSED = "; servers answered but refused: ask whoever runs them"
_FEWER = ", or lower shares.happy in tahoe.cfg"
_FEWER_BY_OPTION = ", or ask for fewer with `--happy N`"

MAX_REASONS = 8
MAX_REASON = 120


def describe(error: BaseException, *, has_happy_option: bool = False) -> str:
    """What happened and what to do, for a person. has_happy_option: the command takes --happy."""
    match error:
        case KeyboardInterrupt() | CancelledError():
            return "interrupted"
        case NoSuchChildError():  # Its status is that of missing shares, and its cure is not.
            return one_line(str(error))
        case NotHappyError():
            return _describe_unhappy(error, has_happy_option)
        case GridError():
            text = one_line(str(error)) or type(error).__name__
            hint = _HINTS.get(exit_code(error), "")
            return text.removesuffix(".") + hint if hint and not text.endswith("?") else text
        case OSError() if error.strerror:
            where = f"{error.filename}: " if isinstance(error.filename, str) else ""
            if not where and exit_code(error) is ExitCode.NO_SPACE:
                where = "on this machine: "  # Servers run out of room too, and say so in other words.
            return one_line(f"{where}{error.strerror}")
        case MemoryError():
            return "there is not enough memory for this"
        case _:
            return f"unexpected {type(error).__name__}; this is a defect, and GRID_DEBUG=1 shows where"


def reasons(error: BaseException) -> list[str]:
    """Why servers did not take part, a line for each reason; empty where the message says it all."""
    if not isinstance(error, NotHappyError):
        return []
    found: dict[str, set[str]] = {}
    for cause in error.causes:
        reason = one_line(getattr(cause, "reason", "") or str(cause))[:MAX_REASON]
        found.setdefault(reason, set()).add(str(cause))
    lines = [f"{reason} ({counted(len(causes), 'server')})" for reason, causes in found.items() if reason]
    return lines[:MAX_REASONS]


def _describe_unhappy(error: NotHappyError, has_happy_option: bool) -> str:
    text = one_line(str(error))
    if error.reached is not None:
        took = f"only {counted(error.reached, 'server')}" if error.reached else "no server"
        text = f"{took} took shares, and {error.happy} are needed"
    elif error.causes:
        text = text.removesuffix(f" ({one_line(str(error.causes[-1]))})")
    code = exit_code(error)
    if code is ExitCode.NO_SPACE:
        return text
    hint = _OFFLINE + _RESTART if code is ExitCode.UNREACHABLE else _REFUSED
    return text.removesuffix(".") + hint + (_FEWER_BY_OPTION if has_happy_option else _FEWER)
