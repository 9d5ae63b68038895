"""Every command directly and through a gateway, Tahoe-LAFS 1.20's and Grid's: the same lines, the same exit code."""

from __future__ import annotations

import json
import random
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from attrs import define, field

from perf.processes.clients import COMMAND_S, Done, GridClient
from perf.processes.process_grid import ClientSettings
from tests.interop.gateways import Gateways
from tests.support.warm_programs import warm_program

pytestmark = pytest.mark.interop


@define
class Ways:
    """A client directory with the alias `w:`, and the URL of each gateway."""

    client: GridClient
    urls: dict[str, str]
    files: Path
    known: dict[tuple[str, ...], Done] = field(factory=dict)

    def looked_up(self, *arguments: str) -> Done:
        """How a command ends directly that changes nothing; run once."""
        if arguments not in self.known:
            self.known[arguments] = self.run("direct", *arguments)
        return self.known[arguments]

    def run(self, way: str, *arguments: str, data: bytes = b"") -> Done:
        """Run a command directly, or through the gateway of that name."""
        through = ["--gateway", self.urls[way]] if way in self.urls else []
        command = [warm_program("grid.cli"), "-d", str(self.client.directory), *through, *arguments]
        done = subprocess.run(command, input=data, capture_output=True, timeout=COMMAND_S, check=False)
        return Done(done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode())

    def succeed(self, way: str, *arguments: str, data: bytes = b"") -> str:
        """What a command prints that ends with 0."""
        done = self.run(way, *arguments, data=data)
        assert done.status == 0, done.err
        return done.out


@pytest.fixture(scope="module")
def ways(gateways: Gateways, tmp_path_factory: pytest.TempPathFactory) -> Ways:
    """The tests' gateways, a direct client alike, and a tree with a bit of everything."""
    client = gateways.grid.start_client(ClientSettings(kind="grid", needed=2, happy=2, total=4))
    assert isinstance(client, GridClient)
    gateways.grid.wait_connected(client)
    files = tmp_path_factory.mktemp("files")
    ways = Ways(client, {"tahoe": gateways.tahoe.url, "ours": gateways.ours.url}, files)
    _plant(ways)
    return ways


def _plant(ways: Ways) -> None:
    (ways.files / "chk").write_bytes(random.Random(1).randbytes(300_000))
    (ways.files / "small").write_bytes(b"small")
    tree = ways.files / "tree" / "below"
    tree.mkdir(parents=True)
    (tree / "a b").write_bytes(random.Random(2).randbytes(70_000))
    (tree / "\u00fc").write_bytes(b"umlaut")
    (tree.parent / "empty").write_bytes(b"")
    ways.succeed("direct", "create-alias", "w")
    ways.succeed("direct", "mkdir", "w:all/below")
    ways.succeed("direct", "put", str(ways.files / "chk"), "w:all/chk")
    ways.succeed("direct", "put", str(ways.files / "small"), "w:all/lit")
    ways.succeed("direct", "put", "-m", str(ways.files / "small"), "w:all/sdmf b\u00fc")
    ways.succeed("direct", "put", "--format", "MDMF", str(ways.files / "chk"), "w:all/below/mdmf")
    ways.succeed("direct", "ln", "w:all", "w:all/below/loop")


THROUGH = ("tahoe", "ours")


@pytest.mark.parametrize("way", THROUGH)
@pytest.mark.parametrize(
    "arguments",
    [
        ["ls", "w:"],
        ["ls", "-l", "-F", "w:all"],
        ["ls", "--uri", "w:all"],
        ["ls", "--readonly-uri", "w:all/chk"],
        ["ls", "-R", "w:all"],
        ["ls", "--json", "w:all/sdmf b\u00fc"],
        ["ls", "w:missing"],
        ["ls", "w:all/chk/below"],
        ["get", "w:all/lit"],
        ["get", "w:all/sdmf b\u00fc"],
        ["get", "--range", "100-199", "w:all/chk"],
        ["get", "--range", "-50", "w:all/below/mdmf"],
        ["get", "--range", "999999-", "w:all/below/mdmf"],
        ["get", "w:missing"],
        ["get", "w:all"],
        ["manifest", "w:all"],
        ["manifest", "--storage-index", "w:all"],
        ["manifest", "--verify-cap", "w:all"],
        ["manifest", "--repair-cap", "w:all"],
        ["manifest", "--raw", "w:all/below"],
        ["manifest", "w:all/chk"],
        ["stats", "w:all"],
        ["stats", "--raw", "w:all"],
        ["check", "w:all/chk"],
        ["check", "--verify", "w:all/below/mdmf"],
        ["check", "w:all/lit", "w:all"],
        ["check", "w:missing"],
        ["repair", "w:all/chk"],
        ["check", "--repair", "w:all/sdmf b\u00fc"],
        ["deep-check", "-v", "w:all"],
        ["deep-check", "--repair", "--add-lease", "w:all"],
        ["list-aliases"],
        ["unlink", "w:missing"],
        ["unlink", "w:all/chk/x"],
        ["mkdir", "w:all/chk/x"],
        ["mkdir", "w:all/below"],
        ["mv", "w:missing", "w:x"],
        ["mv", "w:all/chk", "w:all/below"],
        ["ln", "w:all/chk", "w:all/below"],
        ["put", "missing-file", "w:x"],
        ["cp", "w:missing", "/dev/null"],
        ["cp", "-r", "w:all/chk", "w:all/below/mdmf/"],
        ["ls", "unknown:"],
    ],
    ids=" ".join,
)
def test_command_when_run_through_a_gateway_does_what_it_does_directly(
    ways: Ways, way: str, arguments: list[str]
) -> None:
    direct, through = ways.looked_up(*arguments), ways.run(way, *arguments)
    assert (through.status, _comparable(through.out, arguments)) == (direct.status, _comparable(direct.out, arguments))
    assert "URI:" not in through.err
    assert ("grid: " in through.err) == ("grid: " in direct.err)


def _comparable(text: str, arguments: Sequence[str]) -> object:
    """The lines, or the value that they are as JSON."""
    if "--json" in arguments or arguments[:2] == ["stats", "--raw"]:
        return json.loads(text)
    return [json.loads(line) for line in text.splitlines()] if "--raw" in arguments else text


@pytest.mark.parametrize("way", ["direct", *THROUGH])
def test_files_when_put_and_changed_are_there_and_gone_as_they_should(ways: Ways, way: str) -> None:
    root, chk = f"w:{way}", str(ways.files / "chk")
    cap = ways.succeed(way, "put", chk, f"{root}/a/b/chk").strip()
    assert cap == ways.succeed("direct", "put", chk).strip(), "the convergence secret is the same"
    mutable = ways.succeed(way, "put", "-m", "-", f"{root}/a/mutable", data=b"first contents").strip()
    assert ways.succeed(way, "put", "-", f"{root}/a/mutable", data=b"second").strip() == mutable
    assert ways.succeed("direct", "get", mutable) == "second"
    assert ways.succeed(way, "put", "--format", "mdmf", chk).startswith("URI:MDMF:")
    ways.succeed(way, "mkdir", "--format", "MDMF", f"{root}/x/y/x")
    ways.succeed(way, "ln", f"{root}/a/b/chk", f"{root}/x/y/")
    ways.succeed(way, "mv", f"{root}/x/y/chk", f"{root}/x/moved")
    assert ways.succeed("direct", "ls", f"{root}/x").splitlines() == ["moved", "y"]
    assert ways.run(way, "mv", f"{root}/a/b/chk", f"{root}/x").status == 1
    ways.succeed(way, "rm", f"{root}/a/b/chk")
    assert ways.succeed("direct", "ls", f"{root}/a/b") == ""
    ways.succeed(way, "create-alias", f"alias-{way}")
    assert ways.succeed("direct", "ls", f"alias-{way}:") == ""


@pytest.mark.parametrize("way", ["direct", *THROUGH])
def test_trees_when_copied_backed_up_and_restored_are_the_same(ways: Ways, way: str, tmp_path: Path) -> None:
    tree, root = ways.files / "tree", f"w:trees-{way}"
    ways.succeed(way, "cp", "-r", "--jobs", "4", str(tree), f"{root}/copy")
    ways.succeed(way, "cp", "-r", f"{root}/copy/tree", str(tmp_path / "back"))
    assert _contents(tmp_path / "back" / "tree") == _contents(tree)
    ways.succeed(way, "cp", "-r", f"{root}/copy", f"{root}/again")
    assert ways.succeed(way, "ls", "-R", f"{root}/again").count("a b") == 1
    (tmp_path / "new").write_bytes(b"new contents")
    ways.succeed(way, "put", "-m", str(tmp_path / "new"), f"{root}/copy/tree/mutable")
    ways.succeed(way, "cp", str(ways.files / "small"), f"{root}/copy/tree/mutable")
    assert ways.succeed("direct", "get", f"{root}/copy/tree/mutable") == "small"
    ways.succeed(way, "backup", "--ignore-timestamps", str(tree), f"{root}/backup")
    summary = json.loads(ways.succeed(way, "backup", "--json", str(tree), f"{root}/backup"))
    assert (summary["files_reused"], summary["directories_reused"]) == (3, 2)
    ways.succeed(way, "restore", f"{root}/backup/Latest", str(tmp_path / "restored"))
    assert _contents(tmp_path / "restored") == _contents(tree)


@pytest.mark.parametrize("way", THROUGH)
def test_snapshot_made_through_a_gateway_is_the_directory_that_a_direct_one_is(ways: Ways, way: str) -> None:
    caps = []
    for number, by in enumerate(("direct", way)):
        ways.succeed(by, "backup", "--ignore-timestamps", str(ways.files / "tree"), f"w:snapshots-{way}-{number}")
        caps.append(
            json.loads(ways.succeed("direct", "ls", "--json", f"w:snapshots-{way}-{number}/Latest"))[1]["ro_uri"]
        )
        (ways.client.directory / "private" / "backupdb.sqlite").unlink()
    assert caps[0] == caps[1]


@pytest.mark.parametrize("way", THROUGH)
def test_status_through_a_gateway_shows_the_same_servers(ways: Ways, way: str) -> None:
    direct, through = (json.loads(ways.succeed(by, "status", "--json")) for by in ("direct", way))
    for found in (direct, through):
        assert all(server["reachable"] for server in found["servers"])
    assert [server["id"] for server in through["servers"]] == [server["id"] for server in direct["servers"]]
    for server in through["servers"]:
        assert ("transport" in server) == (way == "ours"), "1.20 reports neither transports nor clocks"
        assert ("clock_ahead" in server) == (server.get("transport") == "http")


@pytest.mark.parametrize("way", THROUGH)
def test_lost_directory_in_a_tree_is_named_and_the_rest_is_reported(ways: Ways, gateways: Gateways, way: str) -> None:
    ways.succeed("direct", "mkdir", f"w:lost-{way}/a/below")
    ways.succeed("direct", "put", str(ways.files / "chk"), f"w:lost-{way}/z/chk")
    told = json.loads(ways.succeed("direct", "check", "--json", f"w:lost-{way}/a"))
    for paths in gateways.grid.shares(told["storage-index"]).values():
        for path in paths:
            path.unlink()
    for arguments in (["manifest", f"w:lost-{way}"], ["deep-check", "-v", f"w:lost-{way}"]):
        direct, through = ways.run("direct", *arguments), ways.run(way, *arguments)
        assert through.status == direct.status != 0
        # 1.20 does not say how many shares of a lost mutable file there should be.
        assert through.out.replace(" 0 shares (enc 3-of-10)", "") == direct.out.replace(" 0 shares (enc 3-of-10)", "")
        assert "could not be read: a" in through.err
    assert ways.run(way, "ls", f"w:lost-{way}/a").status == ways.run("direct", "ls", f"w:lost-{way}/a").status == 4
    assert ways.run(way, "stats", f"w:lost-{way}").status == ways.run("direct", "stats", f"w:lost-{way}").status == 4


def _contents(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}
