"""What a command says when it fails: one line that holds no capability and no secret. Pure."""

from __future__ import annotations

from grid.cli.exit_codes import ExitCode, exit_code
from grid.errors import CancelledError, GridError, NoSuchChildError, NotHappyError
from grid.node.redaction import one_line

_HINTS = {
    ExitCode.UNREACHABLE: "; `grid status` shows who answers",
    ExitCode.NOT_ENOUGH_SHARES: "; `grid status` shows who answers, and others may have the missing shares",
}
"""What to do next, where the message of an error, which knows of no commands, does not ask the right question."""

_REFUSED = "; servers answered but did not do as asked, and who runs them can see why"

_FEWER_SERVERS = (
    "; where there are no more servers, shares.happy under [client] in the client's configuration asks for fewer, "
    "as does `grid put --happy N`"
)


def describe(error: BaseException) -> str:
    """What happened and what to do, for a person."""
    match error:
        case KeyboardInterrupt() | CancelledError():
            return "interrupted"
        case NoSuchChildError():  # Its status is that of missing shares, and its cure is not.
            return one_line(str(error))
        case GridError():
            text = one_line(str(error)) or type(error).__name__
            code = exit_code(error)
            hint = _HINTS.get(code, "")
            if isinstance(error, NotHappyError) and code is not ExitCode.NO_SPACE:
                hint = (hint or _REFUSED) + _FEWER_SERVERS
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
