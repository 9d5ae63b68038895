"""Directories that a walk cannot read, and what is said of them. Pure. [spec webapi 7.3]"""

from __future__ import annotations

from grid.directory.walk import Visited
from grid.errors import GridError, NotEnoughSharesError
from grid.gateway.faults import Gone, HttpFault, fault_of
from grid.gateway.tree.check_documents import Json


class UnreadDirectories:
    """Directories that a walk cannot read; the root among them ends it."""

    def __init__(self) -> None:
        self.reasons: dict[tuple[str, ...], str] = {}

    def note(self, visited: Visited, error: GridError) -> None:
        """One that cannot be read; its error, if it is the root."""
        if not visited.path:
            raise error
        self.reasons[visited.path] = str(told(error))

    def explain(self, unit: Json) -> Json:
        """The unit, with the reason if it is of such a directory."""
        path = unit["path"]
        reason = self.reasons.pop(tuple(path), None) if isinstance(path, list) else None
        return unit if reason is None else {**unit, "error": reason}


def told(error: GridError) -> HttpFault:
    """What is said of an error that ends a walk: mostly a directory that cannot be read."""
    if isinstance(error, NotEnoughSharesError):
        return Gone(str(error), kind="UnrecoverableFileError")
    return fault_of(error)
