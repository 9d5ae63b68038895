"""Commands on a terminal: what they ask, and what they print only there. Real processes, and a gateway."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from attrs import define, field

from grid.node.local_grid import LocalGrid
from perf.processes.node_process import free_ports, wait_until
from tests.cli.command import environment, grid
from tests.cli.tree_grid import TreeClient, make_tree_client
from tests.support.warm_programs import warm_program

PATIENCE_S = 120.0


@define
class Terminal:
    """A process whose streams are a terminal of its own."""

    process: subprocess.Popen[bytes]
    master: int
    text: str = field(default="")

    def wait_for(self, words: str) -> None:
        """Return when the terminal shows these words."""
        while words not in self.text:
            assert self._read(), self.text

    def type(self, line: str) -> None:
        """Type a line."""
        os.write(self.master, line.encode())

    def end(self) -> int:
        """The exit code, once the process has ended and everything is read."""
        while self._read():
            pass
        os.close(self.master)
        return self.process.wait(PATIENCE_S)

    def _read(self) -> bool:
        ready, _, _ = select.select([self.master], [], [], PATIENCE_S)
        assert ready, f"nothing more came: {self.text!r}"
        try:
            data = os.read(self.master, 65536)
        except OSError:  # How Linux says that nobody has the terminal open any more.
            return False
        self.text += data.decode().replace("\r\n", "\n")
        return bool(data)


def on_terminal(*arguments: str | Path) -> Terminal:
    """Start `grid` on a terminal."""
    master, slave = pty.openpty()
    command = [warm_program("grid.cli"), *map(str, arguments)]
    process = subprocess.Popen(
        command, stdin=slave, stdout=slave, stderr=slave, env=environment(TERM="dumb"), start_new_session=True
    )
    os.close(slave)
    return Terminal(process, master)


@pytest.fixture(scope="module")
def client(local_grid: LocalGrid, tmp_path_factory: pytest.TempPathFactory) -> TreeClient:
    return make_tree_client(local_grid, tmp_path_factory.mktemp("terminal") / "client")


@pytest.fixture(scope="module")
def gateway(client: TreeClient) -> Iterator[str]:
    """The URL of a gateway of the client."""
    (port,) = free_ports(1)
    command = [warm_program("grid.cli"), "gateway", str(client.directory), "--listen", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment())
    url = client.directory / "node.url"
    try:
        wait_until(lambda: url.exists() and grid("--gateway", url.read_text().strip(), "status").code == 0, "a gateway")
        yield url.read_text().strip()
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE_S)


@pytest.mark.parametrize("way", ["direct", "gateway"])
def test_answer_to_a_question_decides_what_is_replaced(
    client: TreeClient, request: pytest.FixtureRequest, way: str, tmp_path: Path
) -> None:
    through = ["--gateway", request.getfixturevalue("gateway")] if way == "gateway" else []
    start = ["-d", client.directory, *through]
    for name in ("old", "new"):
        (tmp_path / name).write_text(name * 100)
    root = f"w:{way}"
    old = client.succeed("put", tmp_path / "old", f"{root}/f")
    new = client.succeed("put", tmp_path / "new")
    for answer, kept in (("n", old), ("\n", old), ("yes", new)):
        terminal = on_terminal(*start, "put", "-i", tmp_path / "new", f"{root}/f")
        terminal.wait_for(f"replace {root}/f? [y/N] ")
        terminal.type(f"{answer}\n")
        assert terminal.end() == 0, terminal.text
        assert client.listing(root)["f"][1]["cap"] == kept
        assert (f"Replaced {root}/f. To undo this: grid undo\n" in terminal.text) == (kept == new)
    tree = tmp_path / "tree"
    tree.mkdir()
    for name in ("a", "b", "f"):
        (tree / name).write_text(name * 100)
    client.succeed("put", tmp_path / "old", f"{root}/a")
    terminal = on_terminal(*start, "cp", "-ri", f"{tree}/a", f"{tree}/b", f"{tree}/f", f"{root}/")
    for _ in range(2):  # What is not there is not asked about; the order is not promised.
        terminal.wait_for("? [y/N] ")
        name = terminal.text.partition("? [y/N] ")[0][-1]
        terminal.text = ""
        terminal.type("y\n" if name == "a" else "n\n")
    assert terminal.end() == 0, terminal.text
    assert client.read(f"{root}/a") == "a" * 100 and client.read(f"{root}/b") == "b" * 100
    assert client.listing(root)["f"][1]["cap"] == new
    assert f"Replaced {root}/a. To undo this: grid undo\n" in terminal.text
    terminal = on_terminal(*start, "get", "-i", f"{root}/a", tmp_path / "old")
    terminal.wait_for(f"replace {tmp_path}/old? [y/N] ")
    terminal.type("n\n")
    assert terminal.end() == 0 and (tmp_path / "old").read_text() == "old" * 100


@pytest.mark.parametrize("way", ["direct", "gateway"])
def test_removed_directory_when_undone_as_printed_is_back(
    client: TreeClient, request: pytest.FixtureRequest, way: str
) -> None:
    through = ["--gateway", request.getfixturevalue("gateway")] if way == "gateway" else []
    start = ["-d", str(client.directory), *through]
    client.succeed("mkdir", f"w:gone-{way}/below")
    terminal = on_terminal(*start, "rm", "-r", f"w:gone-{way}")
    assert terminal.end() == 0
    (line,) = [line for line in terminal.text.splitlines() if line.startswith("To undo this: ")]
    assert client.run("ls", f"w:gone-{way}").code == 4
    again = grid(*start, *line.removeprefix("To undo this: grid ").split())
    assert again.code == 0, again.err
    assert set(client.listing(f"w:gone-{way}")) == {"below"}
    quiet = client.run("rm", f"w:gone-{way}")
    assert (quiet.out, quiet.err) == (b"200 OK\n", "")
    client.succeed("mkdir", f"w:gone-{way}")
    told = json.loads(grid(*start, "rm", "--json", f"w:gone-{way}").line)
    assert told["removed"][0]["cap"].startswith("URI:DIR2:")


def test_question_when_interrupted_ends_the_command_and_changes_nothing(client: TreeClient, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("f" * 100)
    old = client.succeed("put", tmp_path / "f", "w:kept")
    (tmp_path / "f").write_text("g" * 100)
    terminal = on_terminal("-d", client.directory, "put", "-i", tmp_path / "f", "w:kept")
    terminal.wait_for("[y/N] ")
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.end() == 130
    assert client.listing("w:")["kept"][1]["cap"] == old


def test_question_when_there_is_no_terminal_is_an_error_that_says_so(client: TreeClient, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("f")
    outcome = client.run("put", "-i", tmp_path / "f", "w:kept")
    assert outcome.code == 2 and "-i needs a terminal: use -n or -u" in outcome.err
