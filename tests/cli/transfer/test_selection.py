"""Trees filtered by --include and --exclude."""

from __future__ import annotations

import click
import pytest

from grid.cli.transfer.selection import parse_selection, prune
from grid.cli.transfer.tree import Branch, FileFacts, Leaf, LocalOrigin

FACTS = FileFacts(size=0, mtime_ns=0, ctime_ns=0, mode=0, inode=0, device=0, uid=0, gid=0)


def test_pattern_that_names_nothing_is_wrong_usage() -> None:
    with pytest.raises(click.UsageError):
        parse_selection([], ["/"])


def tree(*paths: str) -> Branch:
    root = Branch("")
    for path in paths:
        *above, name = path.split("/")
        here = root
        for each in above:
            here = here.branches.setdefault(each, Branch(each))
        if name:
            here.leaves[name] = Leaf(name, LocalOrigin(path="/" + path, facts=FACTS))
    return root


def paths_of(root: Branch) -> list[str]:
    found = []
    for path, branch in root.walk():
        found += ["/".join((*path, name)) for name in branch.leaves]
        if not branch.leaves and not branch.branches:
            found.append("/".join(path) + "/")
    return sorted(found)


def test_tree_when_pruned_keeps_what_is_included_and_not_excluded_and_the_way_there() -> None:
    root = tree("a.txt", "b.jpg", "sub/a.txt", "sub/b.jpg", "none/b.jpg", "empty/", "a.txt.d/")
    assert prune(root, parse_selection(["*.txt", "empty"], ["/sub"])) == 1
    assert paths_of(root) == ["a.txt", "empty/"]


def test_tree_when_only_exclusions_are_given_keeps_the_rest_with_empty_directories() -> None:
    root = tree("a.txt", "sub/b.jpg", "empty/", "out/x")
    assert prune(root, parse_selection([], ["out", "*.jpg"])) == 1
    assert paths_of(root) == ["a.txt", "empty/", "sub/"]
