"""Which paths the patterns of --include and --exclude mean."""

from __future__ import annotations

import click
import pytest

from grid.cli.transfer.selection import PathPattern, parse_selection
from grid.cli.transfer.tree import Branch, FileFacts, Leaf, LocalOrigin

FACTS = FileFacts(size=0, mtime_ns=0, ctime_ns=0, mode=0, inode=0, device=0, uid=0, gid=0)


@pytest.mark.parametrize(
    ("pattern", "path", "is_meant"),
    [
        ("a.txt", "a.txt", True),
        ("a.txt", "sub/a.txt", True),
        ("a.txt", "a.txt/below", True),
        ("a.txt", "aXtxt", False),
        ("/a.txt", "a.txt", True),
        ("/a.txt", "sub/a.txt", False),
        ("/sub", "sub/deep/a.txt", True),
        ("sub/a.txt", "x/sub/a.txt", True),
        ("/sub/a.txt", "x/sub/a.txt", False),
        ("sub/*.txt", "sub/deep/a.txt", False),
        ("sub/**/a.txt", "sub/a.txt", True),
        ("sub/**/a.txt", "sub/d1/d2/a.txt", True),
        ("/**", "a", True),
        ("**/x", "y", False),
        ("*.tx[st]", "dir/a.txs", True),
        ("dir/", "x/dir/a", True),
        ("Dir", "dir", False),
        ("/a/b", "a", False),
    ],
)
def test_pattern_means_the_path_or_does_not(pattern: str, path: str, is_meant: bool) -> None:
    assert PathPattern.parse(pattern).matches(path.split("/")) is is_meant


@pytest.mark.parametrize("text", ["", "/", ".", "//", "/".join("a" * 101)])
def test_pattern_that_names_nothing_is_refused(text: str) -> None:
    with pytest.raises(click.UsageError):
        PathPattern.parse(text)


def test_pattern_with_many_stars_takes_time_in_proportion_to_the_path() -> None:
    pattern = PathPattern.parse("/".join(["**", "a*"] * 50))
    assert not pattern.matches(["ab"] * 49 + ["b"])


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
    assert parse_selection(["*.txt", "empty"], ["/sub"]).prune(root) == 1
    assert paths_of(root) == ["a.txt", "empty/"]


def test_tree_when_only_exclusions_are_given_keeps_the_rest_with_empty_directories() -> None:
    root = tree("a.txt", "sub/b.jpg", "empty/", "out/x")
    assert parse_selection([], ["out", "*.jpg"]).prune(root) == 1
    assert paths_of(root) == ["a.txt", "empty/", "sub/"]
