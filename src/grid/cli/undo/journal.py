"""The journal of changes that `grid undo` can revert: JSON lines in a private file.

It owns the file `$XDG_STATE_HOME/grid/undo`: at most MAX_CHANGES changes of one or several lines each, appended under a
lock. A line torn by a kill is dropped. Old changes are removed by rewriting the file atomically. It never trusts the
file: one that others can read or write, or that contains anything else, is refused.
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click
from attrs import evolve

from grid.cli.terminal.invocation import invocation
from grid.cli.undo.changes import Change, ChangedLink, pack_change, parse_change
from grid.errors import ConfigError, FormatError
from grid.node.files import expand_home, make_private_directory, state_directory, write_atomically
from grid.values import frozen

MAX_CHANGES = 100
"""Changes kept."""

MAX_JOURNAL = 64 * 1024 * 1024
"""Bytes kept; the oldest changes go first."""

MAX_LINKS = 10_000
"""Links kept of one change."""

LOCK_TRIES, LOCK_WAIT_S = 250, 0.02
"""How often and how long to wait for another process, which holds the lock for milliseconds."""

_NO_LINKS = b'"links": []}'
"""How a line ends that keeps a number, and is no change."""

_NUMBER = re.compile(rb'\{"number": ([1-9][0-9]{0,15}), ')


def journal_path() -> Path:
    """The path of the journal."""
    return state_directory() / "undo"


@frozen
class Journal:
    """A journal file, which need not exist yet. Each method may raise ConfigError, which names the file."""

    path: Path

    def changes(self) -> list[Change]:
        """All changes, the oldest first."""
        with self._locked():
            lines, _ = self._read()
        found: dict[int, Change] = {}
        for number, line in enumerate(lines, 1):
            change = self._parse(line, number)
            before = found.get(change.number)
            found[change.number] = change if before is None else evolve(before, links=[*before.links, *change.links])
        return [found[number] for number in sorted(found) if found[number].links]

    def begin(self, change: Change) -> int:
        """Add a change and return its new number, which replaces the given one."""
        with self._locked():
            lines, is_torn = self._read()
            number = max(self._numbers(lines), default=0) + 1
            left = [line for line in lines if not line.endswith(_NO_LINKS)]
            self._append(left, is_torn or len(left) < len(lines), pack_change(evolve(change, number=number)))
        return number

    def add(self, change: Change) -> None:
        """Add links to a change begun earlier."""
        line = pack_change(change)
        with self._locked():
            if self._has_room(len(line)):
                self._append_line(line)
                return
            lines, is_torn = self._read()
            self._append(lines, is_torn, line)

    def drop(self, change: Change) -> None:
        """Remove a change as it was read. What its command has added meanwhile stays.

        A line without links keeps the last number, so that it is never given to another change.
        """
        with self._locked():
            lines, _ = self._read()
            numbers = self._numbers(lines)
            last = max([change.number, *numbers])
            kept: list[bytes] = []
            links: list[ChangedLink] = []
            for index, (number, line) in enumerate(zip(numbers, lines, strict=True), 1):
                if number == change.number:
                    links += self._parse(line, index).links
                elif number == last or not line.endswith(_NO_LINKS):
                    kept.append(line)
            count = len(change.links)
            left = links[count:] if links[:count] == list(change.links) else links
            if left or change.number == last:
                kept.append(pack_change(evolve(change, links=left)).removesuffix(b"\n"))
            self._write(kept)

    def _parse(self, line: bytes, number: int) -> Change:
        try:
            return parse_change(line)
        except FormatError as error:
            raise self._damaged(f"line {number} is not a change ({error})") from None

    def _append(self, lines: Sequence[bytes], is_torn: bool, line: bytes) -> None:
        """Append a line, or rewrite the file if old lines must go."""
        kept = self._trim([*lines, line.removesuffix(b"\n")])
        if is_torn or len(kept) <= len(lines):
            self._write(kept)
            return
        self._append_line(line)

    def _has_room(self, size: int) -> bool:
        """Whether a line of this size can be appended to the file without reading it."""
        with self._reporting():
            try:
                with self._open(os.O_RDONLY) as descriptor:
                    end = os.fstat(descriptor).st_size
                    return 0 < end <= MAX_JOURNAL - size and os.pread(descriptor, 1, end - 1) == b"\n"
            except FileNotFoundError:
                return False

    def _append_line(self, line: bytes) -> None:
        with self._reporting(), self._open(os.O_WRONLY | os.O_APPEND | os.O_CREAT) as descriptor:
            view = memoryview(line)
            while view:
                view = view[os.write(descriptor, view) :]

    def _trim(self, lines: Sequence[bytes]) -> list[bytes]:
        """The lines without the oldest changes, down to the limits."""
        numbers = self._numbers(lines)
        sizes = dict.fromkeys(sorted(set(numbers)), 0)
        for number, line in zip(numbers, lines, strict=True):
            sizes[number] += len(line) + 1
        while len(sizes) > MAX_CHANGES or sum(sizes.values()) > MAX_JOURNAL:
            del sizes[min(sizes)]
        return [line for number, line in zip(numbers, lines, strict=True) if number in sizes]

    def _write(self, lines: Sequence[bytes]) -> None:
        with self._reporting():
            write_atomically(self.path, b"".join(line + b"\n" for line in lines))

    def _numbers(self, lines: Sequence[bytes]) -> list[int]:
        """The number of each line's change."""
        found = [_NUMBER.match(line) for line in lines]
        if None in found:
            raise self._damaged("it holds something else")
        return [int(each[1]) for each in found if each is not None]

    def _read(self) -> tuple[list[bytes], bool]:
        """The complete lines, and whether a torn one follows them because its writer was killed."""
        with self._reporting():
            try:
                with self._open(os.O_RDONLY) as descriptor, os.fdopen(descriptor, "rb", closefd=False) as file:
                    data = file.read(MAX_JOURNAL + 1)
            except FileNotFoundError:
                return [], False
        if len(data) > MAX_JOURNAL:
            raise self._damaged("it is too large")
        *lines, rest = data.split(b"\n")
        return lines, bool(rest)

    @contextmanager
    def _open(self, flags: int) -> Iterator[int]:
        """Open the file; ConfigError if it may belong to somebody else. O_NONBLOCK: opening a pipe must not block."""
        descriptor = os.open(self.path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
        try:
            about = os.fstat(descriptor)
            if not stat.S_ISREG(about.st_mode):
                raise self._damaged("it is not a regular file")
            if about.st_uid != os.geteuid() or about.st_mode & 0o077:
                raise self._damaged("others can read or change it")
            yield descriptor
        finally:
            os.close(descriptor)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock, so other processes wait."""
        with self._reporting():
            make_private_directory(self.path.parent)
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            descriptor = os.open(self.path.with_name(f"{self.path.name}.lock"), flags, 0o600)
        try:
            self._lock(descriptor)
            yield
        finally:
            os.close(descriptor)

    def _lock(self, descriptor: int) -> None:
        for _ in range(LOCK_TRIES):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                time.sleep(LOCK_WAIT_S)
        raise ConfigError(f"{self.path}: another process keeps the journal locked")

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        """Report errors of the file system as ConfigError."""
        try:
            yield
        except OSError as error:
            raise ConfigError(f"{self.path}: {error.strerror}") from None

    def _damaged(self, why: str) -> ConfigError:
        return ConfigError(f"{self.path} is not a journal of changes: {why}; remove it to start over")


class Recorder:
    """Records what one command changes, up to MAX_LINKS links."""

    def __init__(self, journal: Journal, change: Change) -> None:
        """change: without links."""
        self._journal = journal
        self._change = change
        self._room = MAX_LINKS

    def record(self, links: Sequence[ChangedLink]) -> None:
        """Record links that have just been changed; ConfigError, also beyond the limit."""
        kept = links[: self._room]
        if kept:
            change = evolve(self._change, links=kept)
            if change.number:
                self._journal.add(change)
            else:
                self._change = evolve(change, links=(), number=self._journal.begin(change))
        self._room -= len(kept)
        if len(kept) < len(links):
            raise ConfigError(f"a change of more than {MAX_LINKS} links is recorded only in part")


def open_recorder(context: click.Context) -> Recorder:
    """A recorder for the command of this context."""
    command = context.info_name or ""
    change = Change(number=0, time=time.time(), command=command, client=client_of(context), links=())
    return Recorder(Journal(journal_path()), change)


def client_of(context: click.Context) -> str:
    """The client directory of the command line, even if it does not exist: it identifies the grid."""
    return str(expand_home(invocation(context).node_directory).resolve())
