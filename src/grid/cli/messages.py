"""What a command says when it fails: one line that holds no capability and no secret. Pure."""

from __future__ import annotations

from grid.errors import CancelledError, GridError
from grid.node.redaction import one_line


def describe(error: BaseException) -> str:
    """What happened and what to do, for a person."""
    match error:
        case KeyboardInterrupt() | CancelledError():
            return "interrupted"
        case GridError():
            return one_line(str(error)) or type(error).__name__
        case OSError() if error.strerror:
            where = f"{error.filename}: " if isinstance(error.filename, str) else ""
            return one_line(f"{where}{error.strerror}")
        case _:
            return f"unexpected {type(error).__name__}; this is a defect, and GRID_DEBUG=1 shows where"
