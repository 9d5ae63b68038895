"""Asks questions on the terminal while the event loop runs, so connections stay alive and Ctrl-C works."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from twisted.internet.defer import Deferred, DeferredLock
from twisted.internet.interfaces import IReadDescriptor
from zope.interface import implementer

MAX_LINE = 4096


class Confirmation:
    """Asks one question at a time; answers are lines from stdin."""

    def __init__(self, quiet: Callable[[], AbstractContextManager[object]] = nullcontext) -> None:
        """quiet: a context that hides the progress bar while a question is open."""
        self._quiet = quiet
        self._lock = DeferredLock()
        self._is_over = False

    async def confirm(self, question: str) -> bool:
        """Whether the answer was yes; anything else, including the end of stdin, means no."""
        await self._lock.acquire()
        try:
            if self._is_over:
                return False
            with self._quiet():
                print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
                line = await _read_line()
            self._is_over = not line
            return line.strip().lower() in (b"y", b"yes")
        finally:
            self._lock.release()


async def _read_line() -> bytes:
    """Read the next line of stdin, which a terminal delivers as a whole; empty at the end."""
    from twisted.internet import reactor as global_reactor

    reactor: Any = global_reactor
    line: Deferred[bytes] = Deferred()
    reader = _Stdin(line)
    reactor.addReader(reader)
    try:
        return await line
    finally:
        reactor.removeReader(reader)


@implementer(IReadDescriptor)
class _Stdin:
    def __init__(self, line: Deferred[bytes]) -> None:
        self._line = line

    def fileno(self) -> int:
        """The descriptor to watch."""
        return 0

    def logPrefix(self) -> str:  # noqa: N802
        """The name in log messages."""
        return "stdin"

    def doRead(self) -> None:  # noqa: N802
        """Read the available line."""
        try:
            data = os.read(0, MAX_LINE)
        except OSError:
            data = b""
        if not self._line.called:
            self._line.callback(data)

    def connectionLost(self, reason: object) -> None:  # noqa: N802
        """Stop: the event loop ends."""
