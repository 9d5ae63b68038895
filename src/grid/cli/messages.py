"""What a command says when it fails: one line that holds no capability and no secret. Pure."""

from __future__ import annotations

import re

from grid.errors import CancelledError, GridError

_SECRETS = re.compile(r"(?:URI(?::|%3[Aa])|pb(?:\+tor)?://|priv-v0-)[^\s'\"()<>,]*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def redact(text: str) -> str:
    """The text with every capability, furl and private key in it replaced by its first letters."""
    return _SECRETS.sub(lambda match: f"{match[0][:4].rstrip(':%')}:...", text)


def one_line(text: str) -> str:
    """The text on one line, without control characters and without secrets."""
    return redact(_CONTROL.sub(" ", text)).strip()


def describe(error: BaseException) -> str:
    """What happened and what to do, for a person."""
    match error:
        case KeyboardInterrupt() | CancelledError():
            return "interrupted"
        case GridError():
            return one_line(str(error)) or type(error).__name__
        case BrokenPipeError():
            return "whoever read the output has stopped reading"
        case OSError() if error.strerror:
            where = f"{error.filename}: " if isinstance(error.filename, str) else ""
            return one_line(f"{where}{error.strerror}")
        case _:
            return f"unexpected {type(error).__name__}; this is a defect, and GRID_DEBUG=1 shows where"
