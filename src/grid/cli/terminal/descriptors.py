"""The three standard descriptors, made sure of before anything is opened.

A command started with one of them closed would get that number for the next file or socket it opens, and then
write a file's content or a message into it.
"""

from __future__ import annotations

import os
import sys

_WRONG_WAY = {0: os.O_WRONLY, 1: os.O_RDONLY, 2: os.O_RDWR}
"""How a closed descriptor is filled: using stdin or stdout is still an error, stderr goes nowhere."""


def fill_standard_descriptors() -> None:
    """Open what is closed of stdin, stdout and stderr; using stdin or stdout then fails with EBADF, as it should."""
    for number, flags in _WRONG_WAY.items():
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, flags)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
    # Python has None for those which were closed when it began.
    if sys.stdin is None:
        sys.stdin = os.fdopen(0, "w", closefd=False)
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", closefd=False)
