from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from grid.cli.transfer.local_tree import Scan, ScanRules, Trouble, scan_directory
from grid.cli.transfer.names import VCS_NAMES, parse_pattern_file
from grid.cli.transfer.selection import parse_selection
from grid.cli.transfer.tree import LocalOrigin


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
    scan = scan_directory(str(tree), ScanRules(follow_links=True))
    assert paths(scan) == {"a", "link", "sub/b"}
    assert set(scan.root.branches["sub"].branches) == {"empty"}
    assert troubles(scan) == {
        "up": Trouble.LOOP, "dangling": Trouble.DANGLING, "around": Trouble.DANGLING, "fifo": Trouble.SPECIAL,
    }  # fmt: skip


def test_tree_when_links_are_not_followed_has_them_as_files_of_their_own(tree: Path) -> None:
    scan = scan_directory(str(tree), ScanRules(follow_links=False))
    links = {"link", "sub/up", "dangling", "around"}
    assert paths(scan) == {"a", "sub/b"} | links
    assert troubles(scan) == {"fifo": Trouble.SPECIAL}
    leaves = {**scan.root.leaves, "sub/up": scan.root.branches["sub"].leaves["up"]}
    origins = {name: leaf.origin for name, leaf in leaves.items()}
    assert links == {name for name, at in origins.items() if isinstance(at, LocalOrigin) and at.facts.is_link}


def test_directory_when_linked_twice_but_not_from_below_is_there_twice(tree: Path) -> None:
    (tree / "again").symlink_to("sub/empty")
    (tree / "sub" / "empty" / "c").write_bytes(b"")
    assert {"again/c", "sub/empty/c"} <= paths(scan_directory(str(tree), ScanRules(follow_links=True)))


def test_name_when_it_is_not_utf8_is_left_out_and_reported(tree: Path) -> None:
    (Path(os.fsdecode(os.fsencode(tree) + b"/\xff"))).write_bytes(b"")
    scan = scan_directory(str(tree), ScanRules(follow_links=True))
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
        scan = scan_directory(str(tmp_path), ScanRules(follow_links=False))
    finally:
        # What cleans up after tests walks with the stack.
        subprocess.run(["rm", "-rf", tmp_path / "d"], check=True)
    assert scan.root.count() == (0, depth + 1)


def test_patterns_when_given_leave_out_files_and_whole_directories(tree: Path) -> None:
    scan = scan_directory(str(tree), ScanRules(follow_links=True, selection=parse_selection([], ["su?", "[x-z]*"])))
    assert paths(scan) == {"a", "link"} and scan.excluded == 1


def test_patterns_of_version_control_mean_names_at_every_depth() -> None:
    excluded = parse_selection([], VCS_NAMES)
    assert not any(map(excluded.takes, VCS_NAMES)) and not excluded.takes("a/.git/config")
    assert excluded.takes("arch") and excluded.takes("cvs")


def test_pattern_file_has_a_pattern_a_line() -> None:
    assert parse_pattern_file(" *.o \n\nü\n") == ["*.o", "ü"]


def test_root_when_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        scan_directory(str(tmp_path / "none"), ScanRules(follow_links=True))


def test_ignore_files_when_they_count_hold_below_and_the_deepest_decides(tmp_path: Path) -> None:
    (tmp_path / "sub" / "deep").mkdir(parents=True)
    for name in ("a.log", "b.txt", "sub/c.log", "sub/keep.log", "sub/deep/d.log", "sub/deep/e.tmp", "sub/build"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / ".gridignore").write_text("*.log\n/build\n")
    (tmp_path / "sub" / ".gridignore").write_text("!keep.log\n/deep/*.tmp\n")
    plain = scan_directory(str(tmp_path), ScanRules(follow_links=False))
    assert "a.log" in paths(plain)
    scan = scan_directory(str(tmp_path), ScanRules(follow_links=False, has_ignore_files=True))
    assert paths(scan) == {".gridignore", "b.txt", "sub/.gridignore", "sub/keep.log", "sub/build"}
    assert scan.excluded == 4 and not scan.left_out


@pytest.mark.parametrize("data", [b"\xff\n", b"a\\\n", b"x" * 70_000])
def test_ignore_file_when_unusable_is_reported_and_leaves_nothing_out(tmp_path: Path, data: bytes) -> None:
    (tmp_path / ".gridignore").write_bytes(data)
    (tmp_path / "a").write_bytes(b"")
    scan = scan_directory(str(tmp_path), ScanRules(follow_links=False, has_ignore_files=True))
    assert troubles(scan) == {".gridignore": Trouble.IGNORE_FILE} and paths(scan) == {".gridignore", "a"}


def test_directory_when_marked_holds_the_marker_alone(tmp_path: Path) -> None:
    for name in ("cache/.nobackup", "cache/large", "kept/small", ".nobackup"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    scan = scan_directory(str(tmp_path), ScanRules(follow_links=False, markers=[".nobackup"]))
    assert paths(scan) == {".nobackup", "cache/.nobackup", "kept/small"}


def test_directory_of_another_file_system_is_empty_when_staying_on_one(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "elsewhere").symlink_to("/proc/sys/kernel/random")
    everything = scan_directory(str(root), ScanRules(follow_links=True)).root.branches["elsewhere"]
    assert everything.leaves
    one = scan_directory(str(root), ScanRules(follow_links=True, one_file_system=True)).root.branches["elsewhere"]
    assert not one.leaves and not one.branches
