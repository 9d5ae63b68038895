"""Errors as clients see them: a status of SFTP version 3 and one line. Pure.

Owns the mapping from errors to statuses. A message never contains a traceback, a capability or an address.
"""

from __future__ import annotations

from grid.errors import AuthorityError, ChildOfWrongTypeError, GridError, NoSuchChildError
from grid.gateway.faults import Forbidden, without_secrets

OK, EOF, NO_SUCH_FILE, PERMISSION_DENIED, FAILURE, BAD_MESSAGE = range(6)
UNSUPPORTED = 8


class SftpFault(GridError):
    """A refused request: the status, and the line that says why."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


def sftp_fault(error: GridError) -> SftpFault:
    """Translate an error into the fault that a client sees."""
    if isinstance(error, SftpFault):
        return error
    status = FAILURE
    if isinstance(error, NoSuchChildError | ChildOfWrongTypeError):
        status = NO_SUCH_FILE
    elif isinstance(error, AuthorityError | Forbidden):
        status = PERMISSION_DENIED
    return SftpFault(status, without_secrets(str(error)))
