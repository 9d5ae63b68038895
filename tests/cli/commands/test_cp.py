"""`grid cp` against a real local grid."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from grid.caps import LitCap
from grid.codec.netstring import pack_netstring
from grid.directory.pack import Child, make_entry
from grid.node.local_grid import LocalGrid
from tests.cli.command import environment
from tests.cli.tree_grid import TreeClient, local_files, make_local_tree, make_tree_client


@pytest.fixture
def client(local_grid: LocalGrid, tmp_path: Path) -> TreeClient:
    return make_tree_client(local_grid, tmp_path / "client")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return make_local_tree(tmp_path / "tree")


def test_tree_when_copied_there_and_back_is_the_same(client: TreeClient, tree: Path, tmp_path: Path) -> None:
    assert client.succeed("cp", "-r", tree, "w:new") == "Success: files copied"
    assert set(client.listing("w:new")) == {"tree"} and set(client.tree("w:new/tree")) == set(local_files(tree))
    assert client.listing("w:new/tree/sub")["empty"][0] == "dirnode"
    about = client.listing("w:new/tree")["small"][1]
    assert about["metadata"]["tahoe"]["linkcrtime"] == pytest.approx(time.time(), abs=600)
    back = tmp_path / "back"
    assert client.succeed("cp", "-r", "w:new/tree/", back) == "Success: files copied"
    assert local_files(back / "tree") == local_files(tree) and (back / "tree" / "sub" / "empty").is_dir()


def test_tree_when_copied_again_moves_nothing(client: TreeClient, tree: Path, tmp_path: Path) -> None:
    client.succeed("cp", "-r", tree, "w:")
    first = client.tree("w:tree")
    again = json.loads(client.succeed("cp", "-r", "--json", tree, "w:"))
    assert (again["files_copied"], again["files_skipped"], again["bytes"]) == (0, 3, 0)
    assert client.tree("w:tree") == first
    client.succeed("cp", "-r", "w:tree", tmp_path / "back")
    fetched = json.loads(client.succeed("cp", "-r", "--json", "w:tree", tmp_path / "back"))
    assert (fetched["files_copied"], fetched["files_skipped"]) == (0, 3)
    (tmp_path / "back" / "tree" / "sub" / "large").write_bytes(b"changed")
    client.succeed("cp", "-r", "w:tree", tmp_path / "back")
    assert local_files(tmp_path / "back" / "tree") == local_files(tree)


def test_equal_files_when_unique_is_asked_for_get_their_own_capabilities(client: TreeClient, tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).write_bytes(bytes(3_000_000))
    for target, options, count in (
        ("w:a", (), 1),
        ("w:b", ("--unique",), 2),
        ("w:c", ("--unique", "--pack"), 2),
    ):
        client.succeed("mkdir", target)
        client.succeed("cp", *options, tmp_path / "first", tmp_path / "second", target)
        assert len(set(client.tree(target).values())) == count
        (tmp_path / "first").write_bytes(bytes(3_000_000))
        (tmp_path / "second").write_bytes(bytes(3_000_000))


def test_tree_when_packed_and_copied_again_moves_nothing(client: TreeClient, tmp_path: Path) -> None:
    tree = tmp_path / "small"
    tree.mkdir()
    for number in range(20):
        (tree / f"{number}").write_bytes(random.Random(number).randbytes(2000))
        os.utime(tree / f"{number}", (1e9, 1e9))
    time.sleep(0.1)  # The database notes no file that has just changed.
    client.succeed("cp", "-r", "--pack", tree, "w:")
    stats = json.loads(client.succeed("stats", "--json", "w:"))
    assert (stats["count-slices"], stats["count-packs"], stats["size-packs"]) == (20, 1, 40_000)
    again = json.loads(client.succeed("cp", "-r", "--pack", "--json", tree, "w:"))
    assert (again["files_copied"], again["files_skipped"], again["bytes"]) == (0, 20, 0)
    client.succeed("cp", "-r", "w:small", tmp_path / "back")
    assert local_files(tmp_path / "back" / "small") == local_files(tree)


def test_file_when_it_changed_is_uploaded_again_alone(client: TreeClient, tree: Path) -> None:
    client.succeed("cp", "-r", tree, "w:")
    (tree / "sub" / "large").write_bytes(b"n" * 200_000)
    again = json.loads(client.succeed("cp", "-r", "--json", tree, "w:"))
    assert (again["files_copied"], again["files_skipped"], again["bytes"]) == (1, 2, 200_000)


def test_single_file_when_copied_goes_to_the_name_or_into_the_directory(
    client: TreeClient, tree: Path, tmp_path: Path
) -> None:
    assert client.succeed("cp", tree / "small", "w:a/b/c") == "Success: file copied"
    assert client.succeed("cp", tree / "small", "w:a") == "Success: files copied"
    assert set(client.tree("w:a")) == {"b/c", "small"}
    assert client.succeed("cp", "w:a/b/c", tmp_path / "out") == "Success: file copied"
    assert (tmp_path / "out").read_bytes() == b"small"
    client.succeed("cp", "w:a/b/c", f"{tmp_path}/tree/sub/")
    assert (tree / "sub" / "c").read_bytes() == b"small"


def test_mutable_file_when_copied_to_is_changed_in_place(client: TreeClient, tree: Path) -> None:
    cap = client.make_mutable("w:m", "before")
    client.link("w:d/small", cap)
    client.succeed("cp", tree / "small", "w:m")
    assert client.listing("w:")["m"][1]["cap"] == cap and client.read("w:m") == "small"
    (tree / "small").write_bytes(b"other")
    client.succeed("cp", "-r", tree / "small", tree / "sub", "w:d")
    assert client.listing("w:d")["small"][1]["cap"] == cap and client.read("w:m") == "other"
    client.succeed("cp", "w:m", "w:copy")
    _kind, about = client.listing("w:")["copy"]
    assert not about["mutable"] and client.read("w:copy") == "other"


def test_files_when_copied_inside_the_grid_are_linked(client: TreeClient, tree: Path) -> None:
    client.succeed("cp", "-r", tree, "w:")
    assert client.succeed("cp", "w:tree/sub/large", "w:linked") == "Success: file linked"
    done = json.loads(client.succeed("cp", "-r", "--json", "w:tree", "w:other"))
    assert (done["files_linked"], done["files_copied"], done["bytes"]) == (3, 0, 0)
    assert client.tree("w:other/tree") == client.tree("w:tree")
    assert client.tree("w:")["linked"] == client.tree("w:tree")["sub/large"]


def test_caps_only_when_asked_for_writes_capabilities(client: TreeClient, tree: Path, tmp_path: Path) -> None:
    client.succeed("cp", "-r", tree, "w:")
    client.succeed("cp", "-r", "--caps-only", "w:tree", tmp_path / "caps")
    written = {name: data.decode() for name, data in local_files(tmp_path / "caps" / "tree").items()}
    assert written == client.tree("w:tree")


REFUSED = [
    (["T", "w:x"], "cannot copy directories without --recursive"),
    (["-r", "T", "w:file"], "cannot copy directory into a file"),
    (["T/small", "T/sub/large", "w:file"], "copying multiple things requires target be a directory"),
    (["T/small", "w:none/"], "target is not a directory, but ends with a slash"),
    (["URI:LIT:onwwc3dm", "w:"], "all source files must have names"),
]


def test_arguments_when_they_make_no_sense_end_with_one_and_change_nothing(client: TreeClient, tree: Path) -> None:
    client.link("w:file", "URI:LIT:mzuwyzi")
    for arguments, message in REFUSED:
        outcome = client.run("cp", *(text.replace("T", str(tree)) if "URI" not in text else text for text in arguments))
        assert outcome.code == 1 and message in outcome.err
    missing = client.run("cp", "w:none", tree / "x")
    assert (missing.code, missing.err) == (4, "grid: No such file or directory 'w:none'\n")
    assert client.run("cp", tree / "none", "w:x").code == client.run("cp", "nobody:x", "w:x").code == 4
    assert set(client.listing("w:")) == {"file"}


def test_special_files_when_in_a_tree_are_reported_and_the_rest_is_copied(client: TreeClient, tree: Path) -> None:
    os.mkfifo(tree / "fifo")
    (tree / "dangling").symlink_to("nowhere")
    (tree / "loop").symlink_to(".")
    (tree / "link").symlink_to("small")
    outcome = client.run("cp", "-r", tree, "w:")
    assert outcome.code == 1
    assert all(name in outcome.err for name in ("fifo", "dangling", "loop"))
    assert set(client.tree("w:tree")) == {"small", "link", "sub/b\u00fc", "sub/large"}


def directory_cap(client: TreeClient, children: dict[str, Child]) -> str:
    """An immutable directory with any names at all."""
    entries = [make_entry(name, child, mutable=False).data for name, child in sorted(children.items())]
    cap = client.succeed("put", "-", stdin=b"".join(map(pack_netstring, entries)))
    return cap.replace("URI:", "URI:DIR2-", 1)


def test_hostile_names_when_copied_here_stay_inside_the_target(client: TreeClient, tmp_path: Path) -> None:
    evil = Child(target=LitCap(data=b"evil"))
    names = ["..", ".", "../up", "/abs", "a/b", "nul\0", "\u00fc" * 200, "fine", str(tmp_path / "abs")]
    cap = directory_cap(client, dict.fromkeys(names, evil))
    target = tmp_path / "box" / "target"
    target.mkdir(parents=True)
    before = {path for path in tmp_path.rglob("*") if target not in path.parents}
    outcome = client.run("cp", "-r", cap, target)
    assert outcome.code == 1 and "cannot be used" in outcome.err
    assert local_files(target) == {"fine": b"evil"}
    after = {path for path in tmp_path.rglob("*") if target not in path.parents}
    assert {path for path in after - before if path.parent != client.database.parent} == set()


def test_file_when_it_cannot_be_read_stops_no_other_and_leaves_what_was_there(
    client: TreeClient, tree: Path, tmp_path: Path
) -> None:
    client.succeed("cp", "-r", tree, "w:")
    lost = client.tree("w:tree")["sub/large"].split(":")
    lost[2] = "a" * len(lost[2])
    client.link("w:tree/lost", ":".join(lost))
    target = tmp_path / "back"
    (target / "tree").mkdir(parents=True)
    (target / "tree" / "lost").write_bytes(b"before")
    outcome = client.run("cp", "-r", "w:tree", target)
    assert outcome.code == 1 and "lost" in outcome.err and "URI:CHK:a" not in outcome.err
    assert local_files(target / "tree") == {**local_files(tree), "lost": b"before"}


def test_upload_when_killed_resumes_where_it_stopped(client: TreeClient, tmp_path: Path) -> None:
    tree = tmp_path / "many"
    tree.mkdir()
    count = 500
    for number in range(count):
        (tree / f"f{number:03}").write_bytes(random.Random(number).randbytes(200))
    time.sleep(0.1)
    command = [
        sys.executable,
        "-m",
        "grid.cli",
        "-d",
        str(client.directory),
        "cp",
        "-r",
        "--json",
        "--jobs",
        "2",
        str(tree),
        "w:",
    ]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, env=environment())
    assert process.stderr is not None
    lines = (json.loads(line) for line in process.stderr)
    assert next(line for line in lines if line["files"] > 1)["files"] < count
    assert next(lines)["files"] < count
    process.send_signal(signal.SIGKILL)
    process.stderr.close()
    assert process.wait() == -signal.SIGKILL
    assert client.listing("w:") == {}
    done = json.loads(client.succeed("cp", "-r", "--json", tree, "w:"))
    assert done["files_copied"] + done["files_skipped"] == count
    assert done["files_copied"] and done["files_skipped"]
    assert len(client.listing("w:many")) == count


def test_database_when_damaged_or_foreign_gives_no_wrong_file(client: TreeClient, tree: Path) -> None:
    client.succeed("cp", "-r", tree, "w:")
    whole = client.tree("w:tree")
    client.database.write_bytes(b"no database" * 1000)
    outcome = client.run("cp", "-r", tree, "w:again")
    assert outcome.code == 0 and "is damaged" in outcome.err
    assert client.tree("w:again/tree") == whole
