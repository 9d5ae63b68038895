"""What breaks a rule and has not been put right yet: a list beside this file, which may only shrink.

`python -m tests.tidy` takes out of it what is right by now; `--accept` also adds what is found, for files that moved.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from tests.tidy.tree import ROOT, Finding

PATH = ROOT / "tests" / "tidy" / "outstanding.txt"


def read() -> Counter[Finding]:
    """How often each finding is allowed still. Lines: rule, what, count, with tabs between them."""
    allowed: Counter[Finding] = Counter()
    for line in PATH.read_text(encoding="utf-8").splitlines():
        rule, what, count = line.split("\t")
        allowed[rule, what] = int(count)
    return allowed


def write(allowed: Counter[Finding]) -> None:
    """The same list, sorted."""
    lines = [f"{rule}\t{what}\t{count}\n" for (rule, what), count in sorted(allowed.items()) if count > 0]
    PATH.write_text("".join(lines), encoding="utf-8")


def excess(found: Iterable[Finding], allowed: Counter[Finding]) -> Counter[Finding]:
    """What is found more often than it is allowed."""
    return Counter(found) - allowed
