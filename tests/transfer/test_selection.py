"""The paths that patterns of --include, --exclude and .gridignore match."""

from __future__ import annotations

import pytest

from grid.transfer.selection import MAX_STARS, parse_ignore_file, parse_selection


@pytest.mark.parametrize(
    ("pattern", "path", "is_meant"),
    [
        ("a.txt", "a.txt", True),
        ("a.txt", "sub/a.txt", True),
        ("a.txt", "a.txt/below", True),
        ("a.txt", "aXtxt", False),
        ("/a.txt", "a.txt", True),
        ("/a.txt", "sub/a.txt", False),
        ("./a.txt", "a.txt", True),
        ("/sub", "sub/deep/a.txt", True),
        ("sub/a.txt", "sub/a.txt", True),
        ("sub/a.txt", "x/sub/a.txt", False),
        ("**/sub/a.txt", "x/sub/a.txt", True),
        ("sub/*.txt", "sub/deep/a.txt", False),
        ("sub/**/a.txt", "sub/a.txt", True),
        ("sub/**/a.txt", "sub/d1/d2/a.txt", True),
        ("/**", "a", True),
        ("**/x", "y", False),
        ("*.tx[st]", "dir/a.txs", True),
        ("a?c", "ac", False),
        ("[!b]z", "az", True),
        ("[", "[", False),
        ("{arch}", "{arch}", True),
        ("dir/", "x/dir/a", True),
        ("dir/", "dir", False),
        ("Dir", "dir", False),
        ("/a/b", "a", False),
        ("#*#", "#draft#", True),
        ("!keep", "!keep", True),
        ("!keep", "keep", False),
    ],
)
def test_pattern_means_the_path_or_does_not(pattern: str, path: str, *, is_meant: bool) -> None:
    assert parse_selection([pattern], []).takes(path) is is_meant
    assert parse_selection([], [pattern]).takes(path) is not is_meant


def test_pattern_with_a_slash_behind_it_means_directories() -> None:
    selection = parse_selection([], ["dir/"])
    assert selection.excludes("x/dir", is_directory=True) and not selection.excludes("x/dir")


def test_path_when_included_and_excluded_stays_out() -> None:
    selection = parse_selection(["*.txt", "*.md"], ["*", "!a.txt"])
    assert not selection.takes("a.txt")
    assert parse_selection(["*.txt"], ["b.*"]).takes("a.txt")
    assert not parse_selection(["*.txt"], ["b.*"]).takes("b.txt")


@pytest.mark.parametrize("text", ["", "/", ".", "//", "..", " ", "a\\", "x" * 5000])
def test_pattern_that_names_nothing_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="pattern"):
        parse_selection([text], [])


def test_ignore_file_when_read_takes_comments_and_exceptions() -> None:
    patterns = parse_ignore_file("# made by hand\n\n*.log\n!keep.log\n/build/\n")
    assert patterns is not None
    assert patterns.decide("x/a.log") is True
    assert patterns.decide("keep.log") is False
    assert patterns.decide("a.txt") is None
    assert patterns.decide("build", is_directory=True) is True and patterns.decide("x/build", is_directory=True) is None
    assert parse_ignore_file("# nothing\n\n") is None


@pytest.mark.parametrize("line", ["*" * (MAX_STARS + 1), "a\\", "x" * 5000])
def test_ignore_file_when_a_line_is_too_costly_or_wrong_is_refused_with_its_number(line: str) -> None:
    with pytest.raises(ValueError, match=r"^line 2: "):
        parse_ignore_file(f"ok\n{line}\n")
