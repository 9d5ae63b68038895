"""What a command says when it fails: one line that holds no capability and no secret. Pure."""

from __future__ import annotations

from grid.cli.exit_codes import ExitCode, exit_code
from grid.errors import CancelledError, GridError, NoSuchChildError, NotHappyError
from grid.node.redaction import one_line

_HINTS = {
    ExitCode.UNREACHABLE: "; `grid status` shows who answers",
    ExitCode.NOT_FOUND: "; `grid status` lists servers that are offline",
}
"""What to do next, where the message of an error, which knows of no commands, does not ask the right question."""

_OFFLINE = "; `grid status` lists servers that are offline"
_REFUSED = "; servers answered but refused, and who runs them can see why"
_FEWER_SERVERS = ", `grid put --happy N` asks for fewer"

MAX_REASONS = 8
MAX_REASON = 120


def describe(error: BaseException) -> str:
    """What happened and what to do, for a person."""
    match error:
        case KeyboardInterrupt() | CancelledError():
            return "interrupted"
        case NoSuchChildError():  # Its status is that of missing shares, and its cure is not.
            return one_line(str(error))
        case NotHappyError():
            return _describe_unhappy(error)
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
    lines = [f"{reason} ({_servers(len(causes))})" for reason, causes in found.items() if reason]
    return lines[:MAX_REASONS]


def _describe_unhappy(error: NotHappyError) -> str:
    text = one_line(str(error))
    if error.reached is not None:
        took = f"only {_servers(error.reached)}" if error.reached else "no server"
        text = f"{took} took shares, and {error.happy} are needed"
    elif error.causes:
        text = text.removesuffix(f" ({one_line(str(error.causes[-1]))})")
    code = exit_code(error)
    if code is ExitCode.NO_SPACE:
        return text
    return text.removesuffix(".") + (_OFFLINE if code is ExitCode.UNREACHABLE else _REFUSED) + _FEWER_SERVERS


def _servers(count: int) -> str:
    return "1 server" if count == 1 else f"{count} servers"
