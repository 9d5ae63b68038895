"""The port of a transfer: what the engine needs of a place that files come from, or go to.

Protocols, the values that cross them, and the errors that say whether trying again can help. No I/O. Every end passes
the contract suite in tests/transfer/end_contract.py. Ends run on an asyncio event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol

from attrs import field, frozen
from twisted.internet.defer import CancelledError as CancelledByTwisted

from grid.errors import ConfigError, GridError, NoSuchChildError
from grid.ports import Buffer

PIECE_SIZE = 2**20
"""Bytes of a piece of a stream, unless an end has reasons of its own."""

MAX_PATH_BYTES = 4096
MAX_NAME_BYTES = 255


class EndError(GridError):
    """An end cannot do what it was asked; trying again does not help."""


class PassingError(EndError):
    """An end cannot do what it was asked now; trying again may help."""


class SourceChangedError(PassingError):
    """The source changed while it was read, or is not as long as it said."""


class NotThereError(EndError, NoSuchChildError):
    """There is nothing of that name; the message has it."""

    def __init__(self, message: str) -> None:
        super().__init__(message, name="")


class MissingExtraError(ConfigError):
    """A package that this end needs is not installed."""

    def __init__(self, what: str, package: str) -> None:
        super().__init__(
            f"{what} needs the package {package}: install Grid again with its extra: pipx install --force '.[transfer]'"
        )


@contextmanager
def cancelled_as_error(what: str) -> Iterator[None]:
    """PassingError where a library gave up what is awaited here. A task that is itself cancelled ends as ever.

    Libraries cancel what waits for a connection that they drop. A task group takes that for the end of a task that was
    asked to end, and says nothing: its file would have a hole.
    """
    try:
        yield
    except (asyncio.CancelledError, CancelledByTwisted):
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise PassingError(f"{what}: the connection was dropped before the answer came") from None


@frozen(kw_only=True)
class Entry:
    """A file of an end, and what its listing says.

    name: its path below the end, with slashes, never empty. size: None if only reading it says. tag: changes when the
    contents change, as far as the end has such a thing; "" otherwise. attributes: content type and the user's own.
    """

    name: str
    size: int | None = None
    mtime_ns: int | None = None
    tag: str = ""
    mode: int | None = None
    attributes: Mapping[str, str] = field(factory=dict)

    @property
    def facts(self) -> tuple[int | None, int | None, str]:
        """What differs once the contents differ."""
        return self.size, self.mtime_ns, self.tag


@frozen
class LeftOut:
    """Something below an end that is no file to copy, and why. is_gap: files may be missing from the listing for it."""

    name: str
    why: str
    is_gap: bool = False


class OpenedSource(Protocol):
    """A file that is open for reading. Ranges may be read at the same time."""

    @property
    def entry(self) -> Entry:
        """The file when it was opened, with its size and all that the listing did not say."""

    @property
    def shortcut(self) -> object:
        """What the same kind of target can take in place of the bytes; None if there is no such thing."""

    def read(self, offset: int, length: int) -> AsyncIterator[Buffer]:
        """The bytes from the offset on, in pieces: fewer if the file is shorter. SourceChangedError, EndError."""

    async def require_unchanged(self) -> None:
        """SourceChangedError if the file is not the one that was opened."""

    async def close(self) -> None:
        """Let go of it."""


@frozen(kw_only=True)
class KeptPart:
    """A range of a file that a target may have from an attempt that was stopped. token: what the target finds it by.

    digest: of the range's bytes, as the target computes it.
    """

    offset: int
    length: int
    token: str = field(repr=False)
    digest: bytes = field(repr=False)


class KeptParts(Protocol):
    """What is noted of the parts of one file, for the next attempt: of the file as it is now, not as it was."""

    def load(self) -> Sequence[KeptPart]:
        """Those of earlier attempts."""

    def keep(self, part: KeptPart) -> None:
        """Note one more, durably, even if this process is killed now. JournalError."""

    def forget(self) -> None:
        """Drop them all. JournalError."""


class NoParts:
    """Keeps nothing: of small files, and of those that would look the same if they changed."""

    def load(self) -> Sequence[KeptPart]:
        """None."""
        return []

    def keep(self, part: KeptPart) -> None:
        """Forget it at once."""

    def forget(self) -> None:
        """Nothing is there."""


class Body(Protocol):
    """The contents of one file on its way. A target may start over at any offset."""

    @property
    def size(self) -> int:
        """Bytes in all."""

    @property
    def parts(self) -> KeptParts:
        """What is noted of its parts."""

    def stream(self, offset: int = 0) -> AsyncIterator[Buffer]:
        """All bytes from the offset to the end, in order, or an error."""

    def ranges(self) -> Sequence[tuple[int, int]]:
        """(offset, length) of each range to be fetched side by side; empty if the file is to come in order."""

    def fetch(self, offset: int, length: int) -> AsyncIterator[Buffer]:
        """Exactly the bytes of a range, or an error."""

    async def require_unchanged(self) -> None:
        """SourceChangedError if the source is not what was read. A target asks this last, before the file can be seen."""


class SourceEnd(Protocol):
    """Where files come from. label: how messages name it, without secrets."""

    @property
    def label(self) -> str:
        """Its name in messages, and in the journal."""

    def entries(self) -> AsyncIterator[Entry | LeftOut]:
        """Every file below it, in bounded memory; a single file if it names one. NotThereError, EndError."""

    async def open(self, entry: Entry) -> OpenedSource:
        """Open a file. NotThereError, PassingError, EndError."""

    async def close(self) -> None:
        """End its connections."""


PENDING = "pending"
"""The token of a file that is not stored yet, because it waits for others."""


class TargetEnd(SourceEnd, Protocol):
    """Where files go. What it stores can be read from it again."""

    def refuse(self, name: str) -> str | None:
        """Why it cannot hold a file of this name; None if it can."""

    async def adopt(self, opened: OpenedSource) -> str | None:
        """A token if the file can be had without its bytes, None otherwise."""

    async def store(self, entry: Entry, body: Body) -> str:
        """Take the contents of a source that did not change meanwhile, or nothing; return the token with which `settle` shows the file.

        With no token ("") the file is in its place already; with PENDING it is stored together with others, later.
        PassingError, EndError, OSError, GridError.
        """

    def is_stored(self, name: str) -> bool:
        """Whether a file whose token is PENDING can be settled without waiting for more files."""

    async def settle(self, stored: Sequence[tuple[Entry, str]]) -> Mapping[str, GridError]:
        """Put files in their places by their tokens; those that failed, by name."""

    async def remove(self, name: str) -> None:
        """Remove a file; it is no error if it is gone."""


def refuse_name(name: str) -> str | None:
    """Why no local or remote file may have this path; None if one may."""
    if "\0" in name:
        return "it contains a zero byte"
    try:
        parts = [part.encode("utf-8", "surrogateescape") for part in name.split("/")]
    except UnicodeEncodeError:
        return "its characters cannot be encoded"
    if any(part in (b"", b".", b"..") for part in parts):
        return "it has an empty name, '.' or '..' in its path"
    if max(map(len, parts)) > MAX_NAME_BYTES:
        return f"it has a name longer than {MAX_NAME_BYTES} bytes"
    return (
        f"it is longer than {MAX_PATH_BYTES} bytes"
        if len(name.encode("utf-8", "surrogateescape")) > MAX_PATH_BYTES
        else None
    )


def first_error(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """What went wrong first in a group of tasks."""
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


async def listed(source: SourceEnd) -> AsyncIterator[Entry | LeftOut]:
    """What the source lists; PassingError as well where its library gives up."""
    with cancelled_as_error(source.label):
        async for found in source.entries():
            yield found


@contextmanager
def as_end_errors(label: str) -> Iterator[None]:
    """Errors of sockets and files as those of ends."""
    try:
        yield
    except FileNotFoundError:
        raise NotThereError(f"{label}: there is no such file") from None
    except (ConnectionError, TimeoutError) as error:
        raise PassingError(f"{label}: {error.strerror or type(error).__name__}") from None
