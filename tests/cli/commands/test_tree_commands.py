"""Commands on a tree, on a real grid: their effects, output, and exit codes on failure."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest

from grid.node.local_grid import LocalGrid
from tests.cli.tree_grid import TreeClient, make_tree_client

DATA = random.Random(3).randbytes(3000)


@pytest.fixture(scope="module")
def client(local_grid: LocalGrid, tmp_path_factory: pytest.TempPathFactory) -> TreeClient:
    """A client directory with the alias `w:` for an empty directory."""
    return make_tree_client(local_grid, tmp_path_factory.mktemp("tree") / "client")


def _fails(client: TreeClient, code: int, *arguments: str, stdin: bytes = b"") -> str:
    """stderr of a command that fails, in one or two lines without a traceback or a capability."""
    outcome = client.run(*arguments, stdin=stdin)
    assert outcome.code == code, (outcome.code, outcome.err)
    assert outcome.out.strip() == b""
    assert 1 <= outcome.err.count("\n") <= 2, outcome.err
    assert not re.search(r"URI:[A-Z0-9]|Traceback", outcome.err)
    return outcome.err


def test_aliases_are_made_added_and_listed(client: TreeClient) -> None:
    assert client.succeed("create-alias", "made:") == "Alias 'made' created"
    assert "already exists" in _fails(client, 1, "create-alias", "made")
    listed = json.loads(client.succeed("list-aliases", "--json"))
    assert listed["made"]["readwrite"].startswith("URI:DIR2:")
    assert client.succeed("add-alias", "again", listed["made"]["readonly"]) == "Alias 'again' added"
    lines = client.run("list-aliases", "--readonly-uri").out.decode().splitlines()
    assert lines == sorted(lines, key=lambda line: line.split(":")[0].strip())
    assert {line.split(": ")[1] for line in lines if "made:" in line or "again:" in line} == {
        listed["made"]["readonly"]
    }
    _fails(client, 2, "add-alias", "file", "URI:LIT:onwwc3dm")
    _fails(client, 1, "create-alias", "with space")
    _fails(client, 4, "ls", "unknown:")


def test_directories_are_made_with_those_above_them(client: TreeClient) -> None:
    cap = client.succeed("mkdir", "w:made/below/deep")
    assert client.succeed("mkdir", "w:made/below/deep/") == cap
    assert client.succeed("mkdir", "--format", "mdmf", "w:made/mdmf").startswith("URI:DIR2-MDMF:")
    assert client.succeed("mkdir").startswith("URI:DIR2:")
    assert client.succeed("mkdir", "w:").startswith("URI:DIR2:")
    client.succeed("put", "-", "w:made/file", stdin=DATA)
    _fails(client, 1, "mkdir", "w:made/file")
    _fails(client, 1, "mkdir", "w:made/file/x")
    _fails(client, 1, "mkdir", "w:/x")
    assert client.run("ls", "w:made").out.decode().split() == ["below", "file", "mdmf"]


def test_file_is_put_at_a_path_read_from_it_and_replaced(client: TreeClient, tmp_path: Path) -> None:
    put = client.run("put", "-", "w:files/dir/one", stdin=DATA)
    assert (put.code, put.err) == (0, "201 Created\n")
    assert client.run("get", "w:files/dir/one").out == DATA
    assert client.run("get", "w:files/dir/one", "--range", "5-9").out == DATA[5:10]
    again = client.run("put", "-", "w:files/dir/one", stdin=b"new")
    assert (again.err, again.line) == ("200 OK\n", "URI:LIT:nzsxo")
    got = client.run("get", "w:files/dir/one", tmp_path / "one")
    assert got.err == f"w:files/dir/one retrieved and written to {tmp_path / 'one'}\n"
    assert (tmp_path / "one").read_bytes() == b"new"
    for target in ("w:files/dir", "w:files/dir/", "w:"):
        _fails(client, 1, "put", "-", target, stdin=DATA)
    _fails(client, 4, "get", "w:files/none", str(tmp_path / "none"))
    _fails(client, 1, "get", "w:files/dir", str(tmp_path / "none"))
    assert not (tmp_path / "none").exists()


def test_mutable_file_keeps_its_capability_when_its_contents_change(client: TreeClient) -> None:
    cap = client.succeed("put", "-m", "-", "w:mutable", stdin=DATA)
    assert cap.startswith("URI:SSK:")
    assert client.succeed("put", "-", "w:mutable", stdin=b"second") == cap
    assert client.succeed("get", cap) == "second"
    assert client.succeed("put", "-", cap, stdin=b"third") == cap
    assert client.run("get", "w:mutable", "--range", "-3").out == b"ird"
    mdmf = client.succeed("put", "--format", "MDMF", "-", stdin=DATA)
    assert mdmf.startswith("URI:MDMF:")
    assert client.run("get", mdmf).out == DATA
    read_only = json.loads(client.succeed("ls", "--json", cap))[1]["ro_uri"]
    assert client.succeed("get", read_only) == "third"
    _fails(client, 7, "put", "-", read_only, stdin=b"x")
    _fails(client, 2, "put", "--private-key-path", "key", "-")


def test_links_are_moved_made_and_removed(client: TreeClient) -> None:
    client.succeed("put", "-", "w:links/a", stdin=DATA)
    client.succeed("mkdir", "w:links/dir")
    assert client.succeed("mv", "w:links/a", "w:links/b") == "OK"
    assert client.succeed("mv", "w:links/b", "w:links/dir/") == "OK"
    assert client.succeed("ln", "w:links/dir/b", "w:links/again") == "OK"
    cap = client.listing("w:links")["again"][1]["cap"]
    assert client.succeed("ln", cap, "w:links/third") == "OK"
    assert sorted(client.tree("w:links")) == ["again", "dir/b", "third"]
    assert client.succeed("rm", "w:links/again") == "200 OK"
    assert client.succeed("unlink", "w:links/third") == "200 OK"
    assert sorted(client.tree("w:links")) == ["dir/b"]
    assert "overwrite a directory" in _fails(client, 1, "mv", "w:links/dir/b", "w:links/dir")
    assert sorted(client.tree("w:links")) == ["dir/b"]
    _fails(client, 4, "mv", "w:links/none", "w:links/x")
    _fails(client, 4, "rm", "w:links/none")
    _fails(client, 1, "rm", "w:")
    _fails(client, 1, "mv", "w:", "w:links/x")
    _fails(client, 1, "ln", cap, "w:links/")


def test_listing_shows_a_directory_a_file_and_everything_below(client: TreeClient) -> None:
    client.succeed("put", "-", "w:list/sub/file", stdin=DATA)
    assert client.succeed("ls", "w:list") == "sub"
    assert client.succeed("ls", "-F", "w:list/") == "sub/"
    assert re.fullmatch(r"-r-- 3000 \w{3} \d\d \d\d:\d\d file", client.succeed("ls", "-l", "w:list/sub/file"))
    assert client.run("ls", "-R", "w:list").out == b".:\nsub\n\nsub:\nfile\n"
    kind, found = json.loads(client.succeed("ls", "--json", "w:list"))
    assert (kind, list(found["children"])) == ("dirnode", ["sub"])
    missing = client.run("ls", "w:list/none")
    assert (missing.code, missing.err) == (4, "grid: w:list/none: No such file or directory\n")


def test_walks_report_everything_once(client: TreeClient) -> None:
    client.succeed("put", "-", "w:walk/a/b", stdin=DATA)
    client.link("w:walk/a/loop", client.listing("w:")["walk"][1]["cap"])
    lines = client.run("manifest", "w:walk").out.decode().splitlines()
    assert [line.split(" ")[1] for line in lines] == ["", "a", "a/b"]
    units = [json.loads(line) for line in client.run("manifest", "--raw", "w:walk").out.splitlines()]
    assert [unit["type"] for unit in units] == ["directory", "directory", "file", "stats"]
    assert client.run("manifest", "-s", "w:walk").out.decode().split() == [unit["storage-index"] for unit in units[:3]]
    counted = json.loads(client.succeed("stats", "--raw", "w:walk"))
    assert (counted["count-directories"], counted["size-immutable-files"]) == (2, 3000)
    assert "size-immutable-files: 3000    (3.00 kB, 2.93 kiB)" in client.succeed("stats", "w:walk")
    _fails(client, 4, "manifest", "w:none")


def test_health_of_a_tree_is_reported_and_repaired_and_sets_the_exit_status(
    local_grid: LocalGrid, client: TreeClient
) -> None:
    client.succeed("put", "--no-convergence", "-", "w:ill/file", stdin=DATA)
    assert client.succeed("deep-check", "w:ill") == "done: 2 objects checked, 2 healthy, 0 unhealthy"
    index = client.run("manifest", "-s", "w:ill").out.decode().split()[1]
    shares = [
        share for node in local_grid.storages for share in (node / "storage/shares" / index[:2] / index).glob("*")
    ]
    assert len(shares) == 5
    for share in shares[:2]:
        share.unlink()
    assert client.run("check", "w:ill/file").code == 1
    ill = client.run("deep-check", "-v", "w:ill")
    assert ill.code == 1
    assert "'file': Not Healthy: 3 shares (enc 1-of-5)" in ill.line
    assert client.run("check", "--deep", "w:ill").code == 1
    mended = client.run("deep-check", "--repair", "w:ill")
    assert mended.code == 0, mended.err
    assert " 1 repairs attempted, 1 successful, 0 failed\n post-repair: 2 healthy, 0 unhealthy" in mended.line
    assert client.run("check", "--verify", "w:ill/file", "w:ill").code == 0
    for node in local_grid.storages:
        for share in (node / "storage/shares" / index[:2] / index).glob("*"):
            share.unlink()
    lost = client.run("deep-check", "--repair", "--json", "w:ill")
    assert lost.code == 4
    units = [json.loads(line) for line in lost.out.splitlines()]
    assert [unit["path"] for unit in units[:-1]] == [[], ["file"]]
    assert client.run("check", "--repair", "w:ill/file").code == 4


def test_check_when_a_file_is_in_its_capability_is_healthy(client: TreeClient) -> None:
    assert client.succeed("check", "--repair", "URI:LIT:onwwc3dm").splitlines()[0] == "Summary: Healthy (LIT)"
    assert client.run("check").code == 4


def test_change_through_a_capability_that_only_reads_is_refused(client: TreeClient) -> None:
    client.succeed("mkdir", "w:ro")
    read_only = json.loads(client.succeed("ls", "--json", "w:ro"))[1]["ro_uri"]
    for arguments in (["mkdir", f"{read_only}/x"], ["put", "-", f"{read_only}/x"], ["ln", "w:ro", f"{read_only}/x"]):
        _fails(client, 7, *arguments, stdin=DATA)


def test_tree_can_be_searched_measured_and_written_to_stdout(local_grid: LocalGrid, tmp_path: Path) -> None:
    client = make_tree_client(local_grid, tmp_path / "client")
    client.succeed("put", "-", "w:a", stdin=b"first ")
    client.succeed("put", "-", "w:deep/b", stdin=DATA)
    outcome = client.run("cat", "w:a", "w:deep/b", "w:a")
    assert (outcome.code, outcome.out) == (0, b"first " + DATA + b"first "), outcome.err
    assert sorted(client.succeed("find", "w:").splitlines()) == ["a", "deep", "deep/b"]
    assert client.succeed("find", "w:", "--type", "f", "--name", "?").splitlines() == ["a", "deep/b"]
    found = [json.loads(line) for line in client.succeed("du", "--json", "w:").splitlines()]
    assert [(each["path"], each["bytes"], each["files"]) for each in found] == [(".", 3006, 2), ("deep", 3000, 1)]
    assert "No such file" in _fails(client, 4, "cat", "w:a", "w:none")
