"""Which paths below a directory are meant by patterns: --include and --exclude. Pure.

`*` and `?` match within a name, `**` any number of names. A pattern that begins with a slash is anchored at the directory;
any other may begin at every depth. What is below a directory that matches is meant as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from fnmatch import translate

import click
from attrs import field, frozen

from grid.cli.transfer.tree import Branch

MAX_PATTERN_NAMES = 100
"""Names in one pattern."""

Matcher = Callable[[str], object]


@frozen
class PathPattern:
    """One pattern; names: a matcher for each name, None for `**`."""

    is_anchored: bool
    names: tuple[Matcher | None, ...] = field(repr=False)

    @classmethod
    def parse(cls, text: str) -> PathPattern:
        """The pattern that the text says; UsageError if it is empty or too long."""
        parts = [part for part in text.split("/") if part and part != "."]
        if not parts:
            raise click.UsageError(f"the pattern {text!r} names nothing: give a name, or a path such as /letters/*.txt")
        if len(parts) > MAX_PATTERN_NAMES:
            raise click.UsageError(f"a pattern has at most {MAX_PATTERN_NAMES} names")
        names = tuple(None if part == "**" else re.compile(translate(part)).match for part in parts)
        return cls(text.startswith("/"), names)

    def matches(self, path: Sequence[str]) -> bool:
        """Whether the path, or a directory above it, is meant."""
        reached = {0}
        for name in path:
            after: set[int] = set() if self.is_anchored else {0}
            for place in self._behind_stars(reached):
                if place == len(self.names):
                    return True
                matcher = self.names[place]
                if matcher is None:
                    after.add(place)
                elif matcher(name):
                    after.add(place + 1)
            reached = after
        return len(self.names) in self._behind_stars(reached)

    def _behind_stars(self, places: Iterable[int]) -> set[int]:
        """The places in the pattern, and those after every `**` that stands there: it may match no name."""
        found = set()
        for place in places:
            found.add(place)
            while place < len(self.names) and self.names[place] is None:
                place += 1
                found.add(place)
        return found


@frozen
class Selection:
    """What --include and --exclude say. An excluded path stays out, even if it is included."""

    include: tuple[PathPattern, ...] = ()
    exclude: tuple[PathPattern, ...] = ()

    def excludes(self, path: Sequence[str]) -> bool:
        """Whether a pattern excludes the path or a directory above it."""
        return any(pattern.matches(path) for pattern in self.exclude)

    def includes(self, path: Sequence[str]) -> bool:
        """Whether everything is included, or a pattern includes the path or a directory above it."""
        return not self.include or any(pattern.matches(path) for pattern in self.include)

    def prune(self, root: Branch) -> int:
        """Take out of the tree what is not selected, and directories that only led there; how many files are left."""
        directories = list(root.walk())
        for path, branch in reversed(directories):
            for name in [name for name in branch.leaves if not self._keeps((*path, name))]:
                del branch.leaves[name]
            for name, below in list(branch.branches.items()):
                is_empty = not below.leaves and not below.branches
                if self.excludes((*path, name)) or (is_empty and not self.includes((*path, name))):
                    del branch.branches[name]
        return root.count()[0]

    def _keeps(self, path: Sequence[str]) -> bool:
        return self.includes(path) and not self.excludes(path)


def parse_selection(include: Iterable[str], exclude: Iterable[str]) -> Selection:
    """The selection of these patterns; UsageError for one that says nothing."""
    return Selection(tuple(map(PathPattern.parse, include)), tuple(map(PathPattern.parse, exclude)))
