"""The whole exception tree of Grid.

Every error a caller may see descends from GridError. Messages say what happened, where, and what to do
next; they never hold a capability, a secret or a key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class GridError(Exception):
    """Something Grid was asked to do did not happen; the message says what and why."""


class FormatError(GridError):
    """These bytes cannot be what they are said to be."""


class UnknownVersionError(FormatError):
    """The bytes are of a version this code does not know: unusable, but not corrupt."""


class IntegrityError(GridError):
    """A proof failed: the bytes are not those the capability vouches for."""


class DamagedFileError(IntegrityError):
    """The file was damaged when it was uploaded: its proven parts contradict each other, on every server."""


class CapError(GridError):
    """The capability cannot serve this purpose: malformed, unknown, or without the authority."""


class AuthorityError(CapError):
    """The capability is sound but does not carry the authority that the operation needs."""


class NotWriteableError(AuthorityError):
    """A directory cannot be changed with this capability: it only reads, or the directory is immutable."""


class MustBeReadOnlyError(CapError):
    """A write capability came where only a read capability may be."""


class MustBeDeepImmutableError(CapError):
    """Something mutable came where only immutable things may be."""


class UnknownWriteCapError(CapError):
    """A write capability of an unknown kind came without its read capability."""


class PeerError(GridError):
    """A server refused, failed, timed out or misbehaved. reason: why, in words that do not name the server again."""

    def __init__(self, message: str, *, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason or message


class PeerTimeoutError(PeerError):
    """A server did not answer within its deadline."""


class PeerGoneError(PeerError):
    """A server could not be reached, or the connection to it was lost."""


class PeerUnreachableError(PeerGoneError):
    """No connection to a server could be made: whatever it was to be asked, it has not heard of it."""


class NobodyListensError(PeerUnreachableError):
    """A server's machine refuses connections at the place where the server should listen."""


class PeerRefusedError(PeerError):
    """A server answered with an error of its own.

    kind: the remote error's class name as the protocol carries it, without any module path (such as
    "NoSpace"); remote text is hostile and is kept out of the message's control characters by the wire.
    """

    def __init__(self, message: str, *, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


class ShareError(GridError):
    """A share of a file is unusable, and whose it is."""

    def __init__(self, server: str, share_number: int, cause: GridError) -> None:
        super().__init__(f"share {share_number} on server {server}: {cause}")
        self.server = server
        self.share_number = share_number
        self.cause = cause


class NotEnoughSharesError(GridError):
    """Fewer usable shares were found than the file needs."""

    def __init__(self, message: str, *, found: int, needed: int, causes: Sequence[GridError] = ()) -> None:
        super().__init__(message)
        self.found = found
        self.needed = needed
        self.causes = tuple(causes)


class NoServersError(GridError):
    """There is no server to ask, or none could be reached."""


class NotHappyError(GridError):
    """Too few distinct servers hold or would take shares; what was uploaded so far was aborted.

    reached: servers that did, where that says it all; happy: how many it takes. unreachable: ids of servers that are known
    and could not be reached, where the message counts them.
    """

    def __init__(
        self,
        message: str,
        *,
        causes: Sequence[GridError] = (),
        reached: int | None = None,
        happy: int = 0,
        unreachable: Sequence[str] = (),
    ) -> None:
        super().__init__(message)
        self.causes = tuple(causes)
        self.reached = reached
        self.happy = happy
        self.unreachable = tuple(unreachable)


class ConflictError(GridError):
    """Somebody else changed the same thing; read it again and retry.

    shown: server to (sequence number, root hash) of the newest version that it has proven to hold, where that is known.
    ours: the same of the version that gave way, of which some shares are stored.
    """

    def __init__(
        self,
        message: str,
        *,
        shown: Mapping[str, tuple[int, bytes]] | None = None,
        ours: tuple[int, bytes] | None = None,
    ) -> None:
        super().__init__(message)
        self.shown = dict(shown or {})
        self.ours = ours


class ConflictingWriteError(ConflictError):
    """A write to an unfinished immutable share differs from bytes already written there."""


class BadWriteEnablerError(ConflictError):
    """The write enabler does not match the one recorded with the mutable slot."""


class MustForceRepairError(GridError):
    """The repair would give up a version that cannot be read now, or one of two that compete; it takes force."""


class BusyError(GridError):
    """As much of this kind as fits is under way already; try again later."""


class DirectoryError(GridError):
    """A change to a directory, or a path in it, that does not fit what is there; name: of the child it is about."""

    def __init__(self, message: str, *, name: str) -> None:
        super().__init__(message)
        self.name = name


class ExistingChildError(DirectoryError):
    """There is a child of that name, which is not to be replaced."""


class NoSuchChildError(DirectoryError):
    """There is no child of that name."""


class LinkChangedError(DirectoryError):
    """A link on which a change relies is gone, or leads elsewhere."""


class ChildOfWrongTypeError(DirectoryError):
    """The child is a file where it takes a directory, or the other way around."""


class DataTooLargeError(GridError):
    """A write goes past the allocated or the permitted size of a share."""


class NoRoomError(GridError):
    """An answer does not fit into what a server's answers may hold just now; nothing of it was kept.

    size: bytes that it takes in all.
    """

    def __init__(self, size: int) -> None:
        super().__init__(f"an answer of {size} bytes has to wait for others to be sent")
        self.size = size


class NoSpaceError(GridError):
    """The disk, or the space a server may use, is full."""


class HoleError(GridError):
    """A write would begin past the end of the file, and no file has holes."""


class ConfigError(GridError):
    """A node's configuration cannot be used; the message names the file, the section and the key."""


class CancelledError(GridError):
    """The caller gave the operation up before it ended."""
