"""The port of a transfer: what its engine needs of a source or target of files.

Protocols, values, and errors that say whether retrying can help; no I/O. Ends run on asyncio, and pass tests/transfer/end_contract.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from typing import Protocol, runtime_checkable

from twisted.internet.defer import CancelledError as CancelledByTwisted

from grid.errors import ConfigError, GridError, NoSuchChildError
from grid.ports import Buffer
from grid.transfer.memory import BodyMemory
from grid.values import field, frozen

PIECE_SIZE = 2**20
"""Bytes of a piece of a stream, unless an end has reasons to differ."""

MAX_PATH_BYTES = 4096
MAX_NAME_BYTES = 255


class EndError(GridError):
    """An end cannot do what it was asked, and retrying does not help."""


class PassingError(EndError):
    """An end cannot do what it was asked now; retrying may help."""


class SourceChangedError(PassingError):
    """The source changed while it was read, or its length was wrong."""


class NotThereError(EndError, NoSuchChildError):
    """Nothing of this name exists; the message contains it."""

    def __init__(self, message: str) -> None:
        super().__init__(message, name="")


class NoBucketError(EndError, NoSuchChildError):
    """The bucket or container of an end does not exist, so nothing can be stored there either."""

    def __init__(self, message: str) -> None:
        super().__init__(message, name="")


class NoFileError(NotThereError):
    """What was listed turns out to be no file, so there is nothing to copy."""


class MissingExtraError(ConfigError):
    """The end needs a package that is not installed."""

    def __init__(self, what: str, package: str) -> None:
        super().__init__(
            f"{what} needs the package {package}: install Grid again with its extra: pipx install --force '.[transfer]'"
        )


@contextmanager
def cancelled_as_error(what: str) -> Iterator[None]:
    """Translate a cancellation by a library into PassingError. A task that is itself cancelled ends as usual.

    Libraries cancel requests that wait for a connection which they drop. A task group would take that for the end of a
    task that was asked to end, and report nothing: its file would have a hole.
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
    """A file of an end, as listed.

    name: its path below the end, with slashes, never empty. size: None if only reading it tells. tag: changes with the
    contents, if the end has such a thing; "" otherwise. attributes: content type and the user's own.
    """

    name: str
    size: int | None = None
    mtime_ns: int | None = None
    tag: str = ""
    mode: int | None = None
    attributes: Mapping[str, str] = field(factory=dict)

    @property
    def facts(self) -> tuple[int | None, int | None, str]:
        """The values that change when the contents change."""
        return self.size, self.mtime_ns, self.tag


@frozen
class LeftOut:
    """Something below an end that is not copied, and why. is_gap: the listing may lack files because of it.

    is_later: a later listing has it, so there is nothing to tell. is_file: the end has a file there, so a copy of it stays.
    is_lost: that file should have been copied, so it counts as failed.
    """

    name: str
    why: str
    is_gap: bool = False
    is_later: bool = False
    is_file: bool = False
    is_lost: bool = False


class OpenedSource(Protocol):
    """A file open for reading. Ranges may be read in parallel."""

    @property
    def entry(self) -> Entry:
        """The file when it was opened, with its size and everything that the listing left out."""

    @property
    def shortcut(self) -> object:
        """Something that a target of the same kind can take instead of the bytes; None if there is none."""

    def read(self, offset: int, length: int) -> AsyncIterator[Buffer]:
        """Yield bytes from the offset on, fewer if the file is shorter. Each piece stays as it is. SourceChangedError, EndError."""

    async def require_unchanged(self) -> None:
        """Raise SourceChangedError if the file is no longer the one that was opened."""

    async def close(self) -> None:
        """Close the file."""


@frozen(kw_only=True)
class KeptPart:
    """A range of a file that a target may still have from an interrupted attempt. token: identifies it at the target.

    digest: of the range's bytes, as the target computes it.
    """

    offset: int
    length: int
    token: str = field(repr=False)
    digest: bytes = field(repr=False)


class KeptParts(Protocol):
    """The recorded parts of one file, for the next attempt; they apply only while the file is unchanged."""

    def load(self) -> Sequence[KeptPart]:
        """The parts of earlier attempts, by offset. JournalError."""

    def outdated(self) -> Sequence[str]:
        """The tokens of parts of other versions of the file. JournalError."""

    def keep(self, part: KeptPart) -> None:
        """Record a part, durably even if this process is killed immediately. JournalError."""

    def forget(self) -> None:
        """Drop all parts. JournalError."""


class NoParts:
    """Records nothing: for small files, and for those whose changes could go unnoticed."""

    def load(self) -> Sequence[KeptPart]:
        """Return no parts."""
        return []

    def outdated(self) -> Sequence[str]:
        """Return no tokens."""
        return []

    def keep(self, part: KeptPart) -> None:
        """Ignore the part."""

    def forget(self) -> None:
        """Do nothing."""


class Body(Protocol):
    """The contents of one file in transit. A target may restart at any offset."""

    @property
    def size(self) -> int:
        """Total bytes."""

    @property
    def memory(self) -> BodyMemory:
        """What it may hold."""

    @property
    def parts(self) -> KeptParts:
        """The recorded parts of the file."""

    @property
    def scratch(self) -> str:
        """A name for incomplete contents at the target: secret, and the same in every attempt of one journal."""

    def resume(self, part: KeptPart) -> None:
        """Count a range as sent by an earlier attempt; `part.digest` is what `digests` returned for it."""

    def digests(self, offset: int, length: int) -> bytes:
        """The digests of a range's blocks of a MiB, once it has been read. Ranges begin at block boundaries."""

    def stream(self, offset: int = 0) -> AsyncIterator[Buffer]:
        """Yield all bytes from the offset to the end, in order, or raise."""

    def matches(self, part: KeptPart, read: Callable[[int, int], Buffer]) -> bool:
        """Whether `read`, given an offset and a length, returns what `part.digest` was computed of."""

    @property
    def is_ahead(self) -> bool:
        """Whether `stream` fetches ahead by itself, so that ranges in parallel are no faster, and hold more memory."""

    def ranges(self) -> Sequence[tuple[int, int]]:
        """(offset, length) of each range to fetch in parallel; empty if the file must be sent in order."""

    def fetch(self, offset: int, length: int) -> AsyncIterator[Buffer]:
        """Yield exactly the bytes of a range, or raise."""

    async def require_unchanged(self) -> None:
        """Raise SourceChangedError if the source has changed.

        A target calls this last, before the file becomes visible.
        """


class SourceEnd(Protocol):
    """Where files come from. label: its name in messages, without secrets."""

    @property
    def label(self) -> str:
        """Its name in messages and in the journal."""

    def entries(self) -> AsyncIterator[Entry | LeftOut]:
        """Yield every file below it, in bounded memory, or the single file that it names. NotThereError, EndError."""

    async def open(self, entry: Entry) -> OpenedSource:
        """Open a file. NoFileError, NotThereError, PassingError, EndError."""

    async def close(self) -> None:
        """Close its connections."""


@runtime_checkable
class StreamedFile(Protocol):
    """An opened file of which one read fetches ahead by itself, so that several side by side are no faster."""

    def stream(self, offset: int) -> AsyncIterator[Buffer]:
        """Yield all bytes from the offset on. Each is lent until the next one is asked for. SourceChangedError, EndError."""


@runtime_checkable
class SmallSource(Protocol):
    """A source that can read many small files in one call."""

    def reads_together(self, entry: Entry) -> bool:
        """Whether a file may be among those of `read_together`."""

    def gives_shortcuts(self, target: object) -> bool:
        """Whether the target can adopt its files, so that none should be read."""

    async def read_together(self, entries: Sequence[Entry]) -> Sequence[Buffer | None]:
        """The whole contents of each file; None for one that failed or is not as listed. It is to be sent by itself."""


@runtime_checkable
class Located(Protocol):
    """An end that can tell whether another one lies in it."""

    @property
    def location(self) -> Sequence[str]:
        """Names from the top: an end lies in another one if its names begin with those of the other one. Not for messages."""


PENDING = "pending"
"""The token of a file that is not stored yet, because it waits for others."""


class TargetEnd(SourceEnd, Protocol):
    """Where files go. Stored files can be read from it again."""

    def spare(self, tokens: Set[str], mark: str) -> None:
        """Keep incomplete contents with these tokens, which the transfer can resume; others that begin with the mark may go."""

    def refuse(self, name: str) -> str | None:
        """Why it cannot hold a file of this name; None if it can."""

    def place_of(self, name: str) -> str:
        """What it tells files apart by: files whose names have the same place are one file there."""

    def memory_of(self, size: int) -> int:
        """Bytes that it may hold while it stores a file of this size, besides those that the body holds."""

    async def adopt(self, opened: OpenedSource) -> str | None:
        """Return a token if the file can be stored without its bytes, else None."""

    async def store(self, entry: Entry, body: Body) -> str:
        """Store all contents of a source that does not change meanwhile, or nothing; return the token for `settle`.

        With no token ("") the file is already in place; with PENDING it will be stored later, together with others.
        PassingError, EndError, OSError, GridError.
        """

    def is_stored(self, name: str) -> bool:
        """Whether a file with the token PENDING can be settled without waiting for more files."""

    async def settle(self, stored: Sequence[tuple[Entry, str]]) -> Mapping[str, GridError]:
        """Move files into place by their tokens; return the errors of those that failed, by name."""

    async def remove(self, name: str) -> None:
        """Remove a file; succeeds even if it is gone."""


@runtime_checkable
class OverlappingTarget(Protocol):
    """A target that can begin to store a large file while it still waits for the end of another one."""

    def edges_of(self, size: int) -> tuple[int, int]:
        """Bytes that it holds of a file of this size before it calls `body.memory.rest`, and after `body.memory.ended`."""


@runtime_checkable
class SmallTarget(Protocol):
    """A target that can store many small files in one call."""

    def stores_together(self, size: int) -> bool:
        """Whether a file of this size may be among those of `store_together`."""

    async def store_together(
        self, files: Sequence[tuple[Entry, Buffer]], scratch: Callable[[str], str]
    ) -> Sequence[str | None]:
        """The token of each file, as `store` returns it; None for one that failed. It is to be sent by itself.

        scratch: returns `Body.scratch` for a name, on any thread.
        """


_NO_NAMES = frozenset({"", ".", ".."})


def refuse_name(name: str) -> str | None:
    """Why no local or remote file may have this path; None if it may."""
    if (
        "/" not in name
        and "\0" not in name
        and name.isascii()
        and len(name) <= MAX_NAME_BYTES
        and name not in _NO_NAMES
    ):
        return None  # Most names: what follows takes longer.
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
    """The first error in a group of tasks."""
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


async def listed(source: SourceEnd) -> AsyncIterator[Entry | LeftOut]:
    """Yield the source's listing; raise PassingError if its library gives up."""
    with cancelled_as_error(source.label):
        async for found in source.entries():
            yield found


@contextmanager
def as_end_errors(label: str) -> Iterator[None]:
    """Translate errors of sockets and files to those of ends."""
    try:
        yield
    except FileNotFoundError:
        raise NotThereError(f"{label}: there is no such file") from None
    except (ConnectionError, TimeoutError) as error:
        raise PassingError(f"{label}: {error.strerror or type(error).__name__}") from None
