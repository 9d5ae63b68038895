"""All exception classes of Grid.

Every error that callers may see is a GridError. Messages say what happened, where, and what to do
next; they never contain a capability, a secret or a key.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence

DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
"""What the operating system answers when a local disk has no room."""


class GridError(Exception):
    """Grid did not do what it was asked to do; the message says what and why."""


class FormatError(GridError):
    """The bytes do not have the expected format."""


class UnknownVersionError(FormatError):
    """The bytes are of a version that this code does not know: unusable, but not corrupt."""


class IntegrityError(GridError):
    """A proof failed: the bytes are not those that the capability names."""


class DamagedFileError(IntegrityError):
    """The file was damaged when it was uploaded: its proven parts contradict each other, on every server."""


class CapError(GridError):
    """The capability cannot serve this purpose: it is malformed, unknown, or lacks the authority."""


class AuthorityError(CapError):
    """The capability is valid but lacks the authority that the operation needs."""


class WrongCodeError(AuthorityError):
    """A code of an invitation is wrong. One attempt ends the code, right or wrong."""


class NotWriteableError(AuthorityError):
    """A directory cannot be changed with this capability: it only reads, or the directory is immutable."""


class MustBeReadOnlyError(CapError):
    """A write capability was given where only a read capability may be."""


class MustBeDeepImmutableError(CapError):
    """Something mutable was given where only immutable things may be."""


class UnknownWriteCapError(CapError):
    """A write capability of an unknown kind was given without its read capability."""


class PeerError(GridError):
    """A server refused, failed, timed out or misbehaved. reason: why, without the server's name. server: that name, if known."""

    def __init__(self, message: str, *, reason: str = "", server: str = "") -> None:
        super().__init__(message)
        self.reason = reason or message
        self.server = server


class PeerTimeoutError(PeerError):
    """A server did not answer within its deadline."""


class PeerGoneError(PeerError):
    """A server could not be reached, or the connection to it was lost."""


class PeerUnreachableError(PeerGoneError):
    """No connection to a server could be made, so it has not received the request."""


class NobodyListensError(PeerUnreachableError):
    """A server's machine refuses connections on the server's port."""


class PeerRefusedError(PeerError):
    """A server answered with an error of its own.

    kind: the remote error's class name from the protocol, without its module path (such as
    "NoSpace"). Remote text is hostile; wire/ removes its control characters.
    """

    def __init__(self, message: str, *, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


class ShareError(GridError):
    """A share of a file is unusable. Says which server has it."""

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
    """There are no servers, or none could be reached."""


class NotHappyError(GridError):
    """Too few distinct servers hold or accept shares; what was uploaded so far was aborted, or does not count.

    reached: how many servers did, if that says everything; happy: how many are needed. unreachable: ids of known servers that
    could not be reached, if the message counts them. full: names of servers that answered but have no room, each with what is
    known of it. fewer: how to ask for fewer servers, if there are not as many.
    """

    def __init__(
        self,
        message: str,
        *,
        causes: Sequence[GridError] = (),
        reached: int | None = None,
        happy: int = 0,
        unreachable: Sequence[str] = (),
        full: Sequence[str] = (),
        fewer: str = "",
    ) -> None:
        super().__init__(message)
        self.causes = tuple(causes)
        self.reached = reached
        self.happy = happy
        self.unreachable = tuple(unreachable)
        self.full = tuple(full)
        self.fewer = fewer


class MayHoldError(NotHappyError):
    """Too few servers took a change of a mutable file for it to be safe, but the change may hold: nothing was taken back.

    holds: whether enough servers have it to read it, so that it is in force. Otherwise servers that did not answer may have it.
    previous: of a directory, the children that the change replaced or removed, by name; None if that is unknown.
    """

    def __init__(
        self,
        message: str,
        *,
        causes: Sequence[GridError] = (),
        unreachable: Sequence[str] = (),
        holds: bool = False,
        previous: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(message, causes=causes, unreachable=unreachable)
        self.holds = holds
        self.previous = previous


class ConflictError(GridError):
    """Somebody else changed the same thing; read it again and retry.

    shown: server to (sequence number, root hash) of the newest version it has proven to hold, if known.
    ours: the same for the version that gave way, of which some shares are stored.
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
    """A write to an unfinished immutable share differs from bytes that were written there before."""


class BadWriteEnablerError(ConflictError):
    """The write enabler does not match the one stored with the mutable slot."""


class MustForceRepairError(GridError):
    """The repair would give up a version that cannot be read now, or one of two competing ones; use force."""


class BusyError(GridError):
    """Too much of this kind of work is running already; try again later."""


class DirectoryError(GridError):
    """A directory change or path that does not fit the directory. name: of the child concerned."""

    def __init__(self, message: str, *, name: str) -> None:
        super().__init__(message)
        self.name = name


class ExistingChildError(DirectoryError):
    """A child of that name exists and may not be replaced."""


class NoSuchChildError(DirectoryError):
    """There is no child of that name."""


class LinkChangedError(DirectoryError):
    """A link that a change relies on is gone or leads elsewhere."""


class ChildOfWrongTypeError(DirectoryError):
    """The child is a file where a directory is needed, or the other way around."""


class NoInvitationError(GridError):
    """Nobody is at the other end of an invitation's code: it was used, it ended, or nobody came."""


class DataTooLargeError(GridError):
    """A write exceeds the allocated or permitted size of a share."""


class NoRoomError(GridError):
    """An answer does not fit into the memory for answers at the moment; nothing of it was kept.

    size: bytes of the whole answer.
    """

    def __init__(self, size: int) -> None:
        super().__init__(f"an answer of {size} bytes has to wait for others to be sent")
        self.size = size


class NoSpaceError(GridError):
    """The disk, or the space that a server may use, is full."""


class HoleError(GridError):
    """A write would start past the end of the file, and files have no holes."""


class ConfigError(GridError):
    """A node's configuration is unusable; the message names the file, the section and the key."""


class CancelledError(GridError):
    """The caller canceled the operation."""
