"""Measures how long the reactor's thread runs without a break: calls per turn, and the longest library calls."""

from __future__ import annotations

import cProfile
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

from attrs import define, field


@define
class Turns:
    """most: calls, of Python's functions and the library's, in the turn that had most. where: the functions that it called most, with the counts."""

    most: int = 0
    where: list[str] = field(factory=list)
    _profile: cProfile.Profile = field(factory=cProfile.Profile)

    def begin(self) -> None:
        """Reset all counts."""
        self.most, self.where = 0, []

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Count, in C: a Python function for each call would take longer than the calls."""
        self._profile.enable()
        try:
            yield
        finally:
            self._profile.disable()
            called = self._profile.getstats()
            self._profile.clear()
            count = sum(entry.callcount for entry in called)
            if count > self.most:
                called.sort(key=lambda entry: -entry.callcount)
                self.most, self.where = count, [f"{entry.callcount} x {_name(entry.code)}" for entry in called[:6]]


def _name(code: CodeType | str) -> str:
    if isinstance(code, str):
        return code
    return f"{code.co_filename.rpartition('/')[2]}:{code.co_qualname}"


@contextmanager
def watch_turns(reactor: Any) -> Iterator[Turns]:
    """Count the calls in each half of the reactor's turns: timers, and events of sockets and threads."""
    turns = Turns()

    def watched(half: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any) -> Any:
            with turns._turn():
                return half(*arguments)

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
