"""The HTTP status for each error. [spec wire 16; docs/decisions/0020-http-transport.md] Pure."""

from __future__ import annotations

from grid.errors import (
    BadWriteEnablerError,
    ConflictingWriteError,
    DataTooLargeError,
    FormatError,
    GridError,
    NoSpaceError,
    PeerRefusedError,
    UnknownVersionError,
)


class RefusedError(GridError):
    """Answers the request with this status and nothing else."""

    def __init__(self, status: int) -> None:
        super().__init__(f"refused with status {status}")
        self.status = status


_STATUS: tuple[tuple[type[GridError], int], ...] = (
    (BadWriteEnablerError, 401),
    (ConflictingWriteError, 409),
    (UnknownVersionError, 409),
    (DataTooLargeError, 413),
    (NoSpaceError, 507),
    (FormatError, 400),
    (PeerRefusedError, 503),
)


def status_of(error: GridError) -> int:
    """The status for the error; 500 if the client did not cause it."""
    if isinstance(error, RefusedError):
        return error.status
    for kind, status in _STATUS:
        if isinstance(error, kind):
            return status
    return 500
