"""Maps each outcome to an exit code. Documented in docs/exit-codes.md. Pure."""

from __future__ import annotations

from enum import IntEnum

from grid.errors import (
    DISK_FULL,
    AuthorityError,
    CancelledError,
    CapError,
    FormatError,
    GridError,
    IntegrityError,
    MayHoldError,
    NoInvitationError,
    NoServersError,
    NoSpaceError,
    NoSuchChildError,
    NotEnoughSharesError,
    NotHappyError,
    PeerGoneError,
    PeerRefusedError,
    PeerTimeoutError,
    ShareError,
)


class ExitCode(IntEnum):
    """The exit codes of `grid` commands."""

    OK = 0
    OTHER = 1
    USAGE = 2
    NOT_FOUND = 4
    UNREACHABLE = 5
    INTEGRITY = 6
    NO_AUTHORITY = 7
    MAY_HOLD = 8
    NO_SPACE = 12
    INTERRUPTED = 130


def exit_code(error: BaseException) -> ExitCode:
    """The exit code for this error."""
    match error:
        case KeyboardInterrupt() | CancelledError():
            return ExitCode.INTERRUPTED
        case NotEnoughSharesError():
            return _of_missing_shares(error)
        case MayHoldError():
            return ExitCode.MAY_HOLD
        case NotHappyError():
            return ExitCode.NO_SPACE if error.full else _of_causes(error)
        case ShareError():
            return exit_code(error.cause)
        case GridError():
            return _of_grid_error(error)
        case OSError() if error.errno in DISK_FULL:
            return ExitCode.NO_SPACE
        case FileNotFoundError():
            return ExitCode.NOT_FOUND
        case _:
            return ExitCode.OTHER


def _of_grid_error(error: GridError) -> ExitCode:
    match error:
        case AuthorityError():
            return ExitCode.NO_AUTHORITY
        case CapError():
            return ExitCode.USAGE
        case NoSuchChildError() | NoInvitationError():
            return ExitCode.NOT_FOUND
        case NoSpaceError():
            return ExitCode.NO_SPACE
        case PeerRefusedError() if error.kind == "NoSpace":
            return ExitCode.NO_SPACE
        case NoServersError() | PeerGoneError() | PeerTimeoutError():
            return ExitCode.UNREACHABLE
        case IntegrityError() | FormatError():
            return ExitCode.INTEGRITY
        case _:
            return ExitCode.OTHER


def _of_missing_shares(error: NotEnoughSharesError) -> ExitCode:
    """INTEGRITY if the damaged shares would have been enough, else that of too few shares.

    Enough shares may be found and each be damaged in the same place: then none of them is bad as a whole.
    """
    shares = [cause for cause in error.causes if isinstance(cause, ShareError)]
    bad = {share.share_number for share in shares if exit_code(share) is ExitCode.INTEGRITY}
    return ExitCode.INTEGRITY if error.found + len(bad) >= error.needed else ExitCode.NOT_FOUND


def _of_causes(error: NotHappyError) -> ExitCode:
    """Choose the cause of a failed put: a full server, else an unreachable one, else too few servers.

    Otherwise enough servers answered, but refused.
    """
    codes = {exit_code(cause) for cause in error.causes}
    if ExitCode.NO_SPACE in codes:
        return ExitCode.NO_SPACE
    return ExitCode.UNREACHABLE if not codes or ExitCode.UNREACHABLE in codes else ExitCode.OTHER
