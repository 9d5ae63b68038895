"""What a backup leaves out: shell patterns against the last name of files and directories. Pure. [spec cli 3.2]"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from fnmatch import translate

VCS_NAMES = (
    "CVS", "RCS", "SCCS", ".git", ".gitignore", ".cvsignore", ".svn", ".arch-ids", "{arch}", "=RELEASE-ID",
    "=meta-update", "=update", ".bzr", ".bzrignore", ".bzrtags", ".hg", ".hgignore", "_darcs",
)  # fmt: skip
"""What --exclude-vcs leaves out."""


def make_exclusion(patterns: Iterable[str]) -> Callable[[str], bool]:
    """Whether a name is left out; `*`, `?` and `[...]` as the shell has them, upper and lower case told apart."""
    texts = [translate(pattern) for pattern in patterns]
    if not texts:
        return lambda name: False
    matches = [re.compile(text).match for text in texts]
    return lambda name: any(match(name) is not None for match in matches)


def parse_pattern_file(text: str) -> list[str]:
    """The patterns of a file, one a line, without the space around them."""
    return [line.strip() for line in text.splitlines() if line.strip()]
