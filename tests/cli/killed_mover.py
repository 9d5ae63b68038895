"""A `grid` that is killed: killed_mover STEP ARGUMENT... ends with SIGKILL before or after a write to a slot.

At step 0 before the first write, at step 1 after it.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from grid.cli.main import main
from grid.wire.foolscap.client.server import FoolscapServer
from grid.wire.http.client.server import HttpServer

left = [int(sys.argv.pop(1))]


def step() -> None:
    """Count a step, or be killed at it."""
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    left[0] -= 1


def watched(write: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """The same, with a step before it and one after it."""

    async def body(*arguments: Any, **named: Any) -> Any:
        step()
        try:
            return await write(*arguments, **named)
        finally:
            step()

    return body


for kind in (FoolscapServer, HttpServer):
    kind.test_and_write = watched(kind.test_and_write)  # type: ignore[assignment, method-assign]

sys.exit(main())
