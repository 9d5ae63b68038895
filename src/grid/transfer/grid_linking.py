"""Links the stored files of one folder with one change of its directory.

It owns which of them are linked: a name that leads to a directory fails alone, and the others are linked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from grid.caps import DirectoryCap
from grid.directory.edits import SetChild, previous_of
from grid.directory.node import Directory
from grid.directory.pack import Child
from grid.errors import ExistingChildError, GridError, MayHoldError


class Linking:
    """One change. It runs on the client's reactor.

    directory: where the links are, once it has run. replaced: what was there before, by the name of the link. refused: the
    errors of files that are not linked. doubt: the error if the links only may hold.
    """

    def __init__(self, root: Directory, path: Sequence[str], edits: Mapping[str, SetChild]) -> None:
        """path: from the root to the folder, which is made if it is missing. edits: by the names of their files."""
        self.directory, self._path, self._edits = root, path, edits
        self.replaced: Mapping[str, Child] = {}
        self.refused: Mapping[str, GridError] = {}
        self.doubt: MayHoldError | None = None

    async def run(self) -> None:
        """Make the links. Raises the errors of `make_directories`, and those of `edit_by` that concern all of them."""
        if self._path:
            self.directory = await self.directory.make_directories(self._path)
        try:
            self.replaced = await self.directory.edit_by(self._choose, len(self._edits))
        except MayHoldError as error:
            self.replaced, self.doubt = previous_of(error), error

    def _choose(self, look: Callable[[str], Child | None], retrying: bool) -> Sequence[SetChild]:
        """The edits that fit the directory as it is now."""
        there = {name: look(edit.name) for name, edit in self._edits.items()}
        self.refused = {
            name: ExistingChildError(f"{name}: there is a directory of this name", name=self._edits[name].name)
            for name, child in there.items()
            if child is not None and isinstance(child.target, DirectoryCap)
        }
        return [edit for name, edit in self._edits.items() if name not in self.refused]
