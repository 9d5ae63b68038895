"""`grid backup` and `grid restore` against a real local grid."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from grid.node.local_grid import LocalGrid
from tests.cli.tree_grid import TreeClient, local_files, make_local_tree, make_tree_client


@pytest.fixture
def client(local_grid: LocalGrid, tmp_path: Path) -> TreeClient:
    return make_tree_client(local_grid, tmp_path / "client")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = make_local_tree(tmp_path / "tree")
    (root / "small").chmod(0o750)
    (root / "sub").chmod(0o700)
    for path, mtime in ((root / "small", 1_500_000_000.25), (root / "sub", 1_400_000_000.5)):
        os.utime(path, (mtime, mtime))
    return root


def times_and_modes(root: Path) -> dict[str, tuple[float, int]]:
    return {
        path.relative_to(root).as_posix(): (round(path.stat().st_mtime, 5), path.stat().st_mode)
        for path in root.rglob("*")
    }


def test_tree_when_backed_up_and_restored_is_the_same_with_times_and_modes(
    client: TreeClient, tree: Path, tmp_path: Path
) -> None:
    out = client.succeed("backup", tree, "w:deep/home")
    assert out.count("\n") == 1, "without a terminal there is a summary, and nothing for each file"
    summary = " 3 files uploaded (0 reused), 0 files skipped, 3 directories created (0 reused), 0 directories skipped"
    assert summary.strip() in out and "backup done, elapsed time: 0:00:" in out
    assert set(client.listing("w:deep/home")) == {"Archives", "Latest"}
    (name,) = client.listing("w:deep/home/Archives")
    assert len(name) == 20 and name.endswith("Z")
    snapshot = client.listing("w:deep/home/Archives")[name][1]["cap"]
    assert snapshot == client.listing("w:deep/home")["Latest"][1]["cap"]
    assert snapshot.startswith("URI:DIR2-CHK:")
    back = tmp_path / "back"
    client.succeed("restore", "w:deep/home/Latest", back)
    assert local_files(back) == local_files(tree)
    assert times_and_modes(back) == times_and_modes(tree)
    again = json.loads(client.succeed("restore", "--json", f"w:deep/home/Archives/{name}", back))
    assert (again["files_copied"], again["files_skipped"]) == (0, 3) and not again["failures"]
    (back / "small").write_bytes(b"smaLL")
    assert client.succeed("restore", "w:deep/home/Latest", back).startswith("1 file restored (2 already there), ")
    assert local_files(back) == local_files(tree)
    assert times_and_modes(back) == times_and_modes(tree)


def test_tree_when_unchanged_is_not_stored_again(client: TreeClient, tree: Path) -> None:
    client.succeed("backup", tree, "w:")
    first = client.listing("w:")["Latest"][1]["cap"]
    again = json.loads(client.succeed("backup", "--json", tree, "w:"))
    assert (again["files_uploaded"], again["files_reused"]) == (0, 3)
    assert (again["directories_created"], again["directories_reused"]) == (0, 3)
    assert again["snapshot"] == first and again["bytes"] == 0
    (tree / "sub" / "large").write_bytes(b"n" * 200_000)
    third = json.loads(client.succeed("backup", "--json", tree, "w:"))
    assert (third["files_uploaded"], third["files_reused"], third["bytes"]) == (1, 2, 200_000)
    assert (third["directories_created"], third["directories_reused"]) == (2, 1)
    fourth = json.loads(client.succeed("backup", "--json", "--ignore-timestamps", tree, "w:"))
    assert fourth["files_uploaded"] == 3 and fourth["snapshot"] == third["snapshot"]


def test_unsupported_files_when_backed_up_are_left_out_and_the_command_ends_with_two(
    client: TreeClient, tree: Path, tmp_path: Path
) -> None:
    (tree / "link").symlink_to("small")
    os.mkfifo(tree / "sub" / "fifo")
    Path(os.fsdecode(os.fsencode(tree) + b"/bad\xff")).write_bytes(b"")
    outcome = client.run("backup", tree, "w:")
    assert outcome.code == 2
    assert f"WARNING: cannot backup special file '{tree}/sub/fifo'" in outcome.err
    assert "WARNING: cannot decode" in outcome.err
    assert " 4 files uploaded (0 reused), 2 files skipped, 3 directories created" in outcome.out.decode()
    client.succeed("restore", "w:Latest", tmp_path / "back")
    assert set(local_files(tmp_path / "back")) == {"link", "small", "sub/b\u00fc", "sub/large"}
    assert (tmp_path / "back" / "link").is_symlink()


def test_patterns_when_given_leave_out_names(client: TreeClient, tree: Path, tmp_path: Path) -> None:
    (tree / ".git").mkdir()
    (tree / ".git" / "config").write_bytes(b"")
    patterns = tmp_path / "patterns"
    patterns.write_text("empt?\n", "utf-8")
    arguments = ["--exclude", "*large", "--exclude-from-utf-8", str(patterns), "--exclude-vcs"]
    assert "0 files skipped" in client.succeed("backup", *arguments, tree, "w:")
    assert set(client.tree("w:Latest")) == {"small", "sub/b\u00fc"}
    assert set(client.listing("w:Latest/sub")) == {"b\u00fc"}


def test_directory_when_missing_is_an_error_and_nothing_is_written(client: TreeClient, tmp_path: Path) -> None:
    outcome = client.run("backup", tmp_path / "none", "w:x")
    assert outcome.code == 4 and "none" in outcome.err
    assert client.listing("w:") == {}
    missing = client.run("restore", "w:x/Latest", tmp_path / "back")
    assert (missing.code, missing.err) == (4, "grid: No such file or directory 'w:x/Latest'\n")
    assert not (tmp_path / "back").exists()


def test_verbose_backup_when_run_says_what_it_does(client: TreeClient, tree: Path) -> None:
    out = client.succeed("backup", "-v", tree, "w:")
    assert f"uploading '{tree}/small'.." in out and f" creating directory for '{tree}/sub'" in out
    assert " 0 files checked, 0 directories checked" in out
    out = client.succeed("backup", "-v", tree, "w:")
    assert f"skipping '{tree}/small'.." in out and f" re-using old directory for '{tree}/sub'" in out


def test_snapshots_when_several_are_stored_are_listed_compared_restored_and_forgotten(
    client: TreeClient, tree: Path, tmp_path: Path
) -> None:
    first = json.loads(client.succeed("backup", "--json", "--tag", "one", tree, "w:b"))["name"]
    (tree / "sub" / "large").unlink()
    (tree / "new").write_bytes(b"n" * 1000)
    time.sleep(1.1)  # A snapshot is named by its second.
    second = json.loads(client.succeed("backup", "--json", tree, "w:b"))["name"]
    listed = json.loads(client.succeed("snapshots", "--json", "w:b"))["snapshots"]
    assert [(each["name"], each["files"], each["latest"]) for each in listed] == [(first, 3, False), (second, 3, True)]
    assert client.succeed("diff", "--in", "w:b", first, "latest").splitlines()[:2] == ["+  new", "-  sub/large"]
    client.succeed("restore", "--snapshot", first, "--include", "large", "--target", tmp_path / "back", "w:b")
    assert {path: len(data) for path, data in local_files(tmp_path / "back").items()} == {"sub/large": 200_000}
    assert client.succeed("forget", "--keep-last", "1", "w:b").endswith("1 snapshot removed, 1 kept")
    assert set(client.listing("w:b/Archives")) == {second}
