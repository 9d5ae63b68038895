"""No image of a node's memory ever reaches a disk: it would hold keys and plaintext."""

from __future__ import annotations

import ctypes
import resource
import sys
from contextlib import suppress

_PR_SET_DUMPABLE = 4
"""The number by which Linux's prctl knows it."""


def forbid_core_dumps() -> None:
    """Have the system write no core file when this process crashes, nor hand one to a program that collects them.

    The limit alone does not count where crashes are piped to such a program. Other processes of the same user cannot
    attach to this one from then on; root still can.
    """
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
