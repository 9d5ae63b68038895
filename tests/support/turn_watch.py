"""How much the reactor's thread does without a break: calls counted per turn, and the longest calls of the library."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from attrs import define, field

SAMPLED = 500
"""Calls between two looks at where the interpreter is."""


@define
class Turns:
    """most: calls, of Python's functions and the library's, in the turn that had most. where: it was, now and then."""

    most: int = 0
    where: list[str] = field(factory=list)
    _count: int = 0
    _samples: list[str] = field(factory=list)

    def begin(self) -> None:
        """Forget what was before."""
        self.most, self.where = 0, []

    def _enter(self) -> None:
        self._count, self._samples = 0, []

    def _leave(self) -> None:
        if self._count > self.most:
            self.most, self.where = self._count, self._samples

    def _note(self, frame: FrameType, event: str, argument: object) -> None:
        if event in ("call", "c_call"):
            self._count += 1
            if self._count % SAMPLED == 0:
                self._samples.append(_place(frame))


@contextmanager
def watch_turns(reactor: Any) -> Iterator[Turns]:
    """Count the calls in each half of the reactor's turns: its timers, and what sockets and threads bring."""
    turns = Turns()

    def watched(half: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any) -> Any:
            turns._enter()
            sys.setprofile(turns._note)
            try:
                return half(*arguments)
            finally:
                sys.setprofile(None)
                turns._leave()

        return run

    halves = ("runUntilCurrent", "doIteration")
    for name in halves:
        setattr(reactor, name, watched(getattr(reactor, name)))
    try:
        yield turns
    finally:
        for name in halves:
            delattr(reactor, name)


def longest_call(function: Callable[..., object], *arguments: object) -> tuple[float, str]:
    """Seconds of processor time that the longest single call of the library took, which no other thread can interrupt."""
    longest = (0.0, "")
    begun: list[float] = []

    def note(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal longest
        if event == "c_call":
            begun.append(time.thread_time())
        elif event in ("c_return", "c_exception") and begun:
            took = time.thread_time() - begun.pop()
            # A call that calls Python's functions again lets others in there.
            if took > longest[0] and argument.__name__ not in _CALLS_BACK:
                longest = took, f"{argument!r} in {_place(frame)}"

    def body() -> None:
        sys.setprofile(note)
        try:
            function(*arguments)
        finally:
            sys.setprofile(None)

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    return longest


_CALLS_BACK = frozenset({"run", "join", "extend", "sum", "list", "sorted", "setprofile", "next", "any", "all"})


def _place(frame: FrameType | None) -> str:
    names: list[str] = []
    while frame is not None and len(names) < 6:
        names.append(f"{frame.f_code.co_filename.rpartition('/')[2]}:{frame.f_code.co_name}")
        frame = frame.f_back
    return " < ".join(names)
