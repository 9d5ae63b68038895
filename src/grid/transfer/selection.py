"""Selects paths by patterns in .gitignore syntax: --include, --exclude, and .gridignore. Pure.

Every command that selects files uses this (decision 330). A path consists of names from the top, separated by slashes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from grid.values import field, frozen

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

MAX_PATTERN = 4096
"""Characters of one pattern."""

MAX_STARS = 8
"""Wildcards per pattern of a .gridignore, which anybody may have written: matching time grows with that power."""

MAX_IGNORE_FILE = 64 * 1024
"""Bytes of a .gridignore."""


@frozen
class Patterns:
    """A list of patterns, of which the last match decides."""

    _spec: GitIgnoreSpec = field(repr=False)

    def decide(self, path: str, *, is_directory: bool = False) -> bool | None:
        """Whether the path, or a directory above it, is matched; None if no pattern applies."""
        return self._spec.check_file(f"{path}/" if is_directory else path).include


@frozen
class Selection:
    """The selection of --include and --exclude. An excluded path stays out, even if it is included."""

    include: Patterns | None = None
    exclude: Patterns | None = None

    def excludes(self, path: str, *, is_directory: bool = False) -> bool:
        """Whether a pattern excludes the path or a directory above it."""
        return self.exclude is not None and self.exclude.decide(path, is_directory=is_directory) is True

    def includes(self, path: str, *, is_directory: bool = False) -> bool:
        """Whether everything is included, or a pattern includes the path or a directory above it."""
        return self.include is None or self.include.decide(path, is_directory=is_directory) is True

    @property
    def is_given(self) -> bool:
        """Whether it leaves anything out."""
        return self.include is not None or self.exclude is not None

    def takes(self, path: str) -> bool:
        """Whether to copy a file."""
        return self.includes(path) and not self.excludes(path)


def parse_selection(include: Iterable[str], exclude: Iterable[str]) -> Selection:
    """Parse the patterns; ValueError for an empty or malformed one."""
    return Selection(_parse_options(include), _parse_options(exclude))


def parse_ignore_file(text: str) -> Patterns | None:
    """Parse a .gridignore; None if it has no patterns. ValueError, which names the line."""
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        if sum(map(line.count, "*?[")) > MAX_STARS or len(line) > MAX_PATTERN:
            raise ValueError(
                f"line {number}: a pattern has at most {MAX_STARS} wildcards, and {MAX_PATTERN} characters"
            )
        try:
            _compile([line])
        except ValueError:
            raise ValueError(f"line {number}: this is no pattern: {line[:100]!r}") from None
    return _compile(lines)


def _parse_options(texts: Iterable[str]) -> Patterns | None:
    """Parse options' patterns, in which a leading `#` or `!` is literal."""
    lines = []
    for text in texts:
        if not any(part not in ("", ".", "..") for part in text.strip().split("/")):
            raise ValueError(f"the pattern {text!r} names nothing: give a name, or a path such as /letters/*.txt")
        line = f"\\{text}" if text.startswith(("#", "!")) else text.removeprefix("./")
        if len(line) > MAX_PATTERN:
            raise ValueError(f"a pattern has at most {MAX_PATTERN} characters")
        try:
            _compile([line])
        except ValueError:
            raise ValueError(f"{text!r} is no pattern: end it with a character behind the backslash") from None
        lines.append(line)
    return _compile(lines)


def _compile(lines: list[str]) -> Patterns | None:
    if not any(line.strip() and not line.startswith("#") for line in lines):
        return None
    from pathspec import GitIgnoreSpec

    return Patterns(GitIgnoreSpec.from_lines(lines))
