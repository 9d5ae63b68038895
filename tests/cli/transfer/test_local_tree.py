from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from grid.cli.transfer.local_tree import Scan, Trouble, scan_directory
from grid.cli.transfer.names import VCS_NAMES, make_exclusion, parse_pattern_file


def paths(scan: Scan) -> set[str]:
    return {"/".join((*path, name)) for path, branch in scan.root.walk() for name in branch.leaves}


def troubles(scan: Scan) -> dict[str, Trouble]:
    return {os.path.basename(each.path): each.trouble for each in scan.left_out}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    (root / "sub" / "empty").mkdir(parents=True)
    (root / "a").write_bytes(b"a")
    (root / "sub" / "b").write_bytes(b"bb")
    (root / "link").symlink_to("a")
    (root / "sub" / "up").symlink_to("..")
    (root / "dangling").symlink_to("nowhere")
    (root / "around").symlink_to("around")
    os.mkfifo(root / "fifo")
    return root


def test_tree_when_links_are_followed_has_what_they_lead_to_but_no_loop(tree: Path) -> None:
    scan = scan_directory(str(tree), follow_links=True)
    assert paths(scan) == {"a", "link", "sub/b"}
    assert set(scan.root.branches["sub"].branches) == {"empty"}
    assert troubles(scan) == {
        "up": Trouble.LOOP, "dangling": Trouble.DANGLING, "around": Trouble.DANGLING, "fifo": Trouble.SPECIAL,
    }  # fmt: skip


def test_tree_when_links_are_not_followed_leaves_all_of_them_out(tree: Path) -> None:
    scan = scan_directory(str(tree), follow_links=False)
    assert paths(scan) == {"a", "sub/b"}
    links = {"link", "up", "dangling", "around"}
    assert troubles(scan) == {**dict.fromkeys(links, Trouble.SYMLINK), "fifo": Trouble.SPECIAL}


def test_directory_when_linked_twice_but_not_from_below_is_there_twice(tree: Path) -> None:
    (tree / "again").symlink_to("sub/empty")
    (tree / "sub" / "empty" / "c").write_bytes(b"")
    assert {"again/c", "sub/empty/c"} <= paths(scan_directory(str(tree), follow_links=True))


def test_name_when_it_is_not_utf8_is_left_out_and_told(tree: Path) -> None:
    (Path(os.fsdecode(os.fsencode(tree) + b"/\xff"))).write_bytes(b"")
    scan = scan_directory(str(tree), follow_links=True)
    assert Trouble.UNDECODABLE in troubles(scan).values() and "a" in paths(scan)


def test_tree_when_deeper_than_the_stack_is_walked(tmp_path: Path) -> None:
    depth = 1200
    here = os.open(tmp_path, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    try:
        scan = scan_directory(str(tmp_path), follow_links=False)
    finally:
        # What cleans up after tests walks with the stack.
        subprocess.run(["rm", "-rf", tmp_path / "d"], check=True)
    assert scan.root.count() == (0, depth + 1)


def test_patterns_when_given_leave_out_files_and_whole_directories(tree: Path) -> None:
    scan = scan_directory(str(tree), follow_links=True, is_excluded=make_exclusion(["su?", "[x-z]*"]))
    assert paths(scan) == {"a", "link"} and scan.excluded == 1


def test_patterns_when_matched_are_shell_patterns_of_whole_names() -> None:
    excluded = make_exclusion(["*.o", "{arch}", "a?c", "[!b]z"])
    assert [name for name in ["x.o", "x.oo", "{arch}", "arch", "abc", "ac", "az", "bz", "X.O"] if excluded(name)] == [
        "x.o", "{arch}", "abc", "az",
    ]  # fmt: skip
    assert all(map(make_exclusion(VCS_NAMES), [".git", "CVS", "_darcs"]))
    assert parse_pattern_file(" *.o \n\nü\n") == ["*.o", "ü"]


def test_root_when_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        scan_directory(str(tmp_path / "none"), follow_links=True)
