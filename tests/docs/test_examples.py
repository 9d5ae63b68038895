"""Runs every example of the users' pages on a grid of real processes, and compares its output with the page."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest

from tests.docs.console import Example, examples, in_place_of, run
from tests.support.warm_programs import warm_program

pytestmark = pytest.mark.documents

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    path.name for path in (ROOT / "docs").glob("*.md") if re.search("^```(console|python)$", path.read_text(), re.M)
)
MAKES_ITS_OWN = {"first-grid.md", "three-machines.md"}
"""Pages that begin with no grid."""

PORTS = ("3456", "3457", "3458", "3459", "3460")
HOSTS = tuple(f"{name}.example.com" for name in ("introducer", "attic", "cellar", "office"))


@cache
def programs() -> Path:
    """The folder of a `grid` that starts warm."""
    program = Path(warm_program("grid.cli"))
    (program.parent / "bin").mkdir()
    (program.parent / "bin" / "grid").symlink_to(program)
    return program.parent / "bin"


def environment() -> dict[str, str]:
    """Of commands: that grid and this interpreter's programs first, and no settings of ours."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GRID_", "PYTHON"))}
    path = [str(programs()), str(Path(sys.executable).parent), kept["PATH"]]
    return kept | {"PATH": os.pathsep.join(path), "NO_COLOR": "1"}


def grid(*arguments: str | Path) -> None:
    subprocess.run(["grid", *arguments], env=environment(), check=True, stdout=subprocess.DEVNULL)


@pytest.fixture(scope="module")
def furl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The introducer of a grid of ten nodes that all pages share."""
    folder = tmp_path_factory.mktemp("shared") / "grid"
    grid("up", "--nodes", "10", "--dir", folder, "--detach")
    yield folder / "introducer" / "private" / "introducer.furl"
    grid("down", "--dir", folder)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A home directory for one page."""
    yield tmp_path
    if (tmp_path / "mygrid").exists():
        grid("down", "--dir", tmp_path / "mygrid")


def free_ports(count: int) -> list[str]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [str(each.getsockname()[1]) for each in sockets]


def on_this_machine(text: str, home: Path) -> str:
    """The page with ports that are free, names that lead here, and folders that are ours."""
    ports = dict(zip(PORTS, free_ports(len(PORTS)), strict=True))
    return in_place_of(text, ports | dict.fromkeys(HOSTS, "127.0.0.1") | {"/var/lib/grid": str(home / "var")})


@pytest.mark.parametrize("page", PAGES)
def test_examples_when_run_print_what_the_page_says(page: str, home: Path, request: pytest.FixtureRequest) -> None:
    (home / "var").mkdir()
    if page not in MAKES_ITS_OWN:
        introducer = request.getfixturevalue("furl")
        shutil.copy(introducer, home / "introducer.furl")
        grid("create", "client", home / ".grid", "--introducer", introducer)
    found = list(examples(on_this_machine((ROOT / "docs" / page).read_text(), home)))
    results = run(found, home, environment())
    wrong = [
        f"$ {example.command}\n{output}exit code {status}"
        for example, (output, status) in zip(found, results, strict=True)
        if status != 0 or not example.matches(output)
    ]
    assert not wrong, "\n".join(wrong)


def test_example_when_its_output_differs_is_found() -> None:
    (example,) = examples("```console\n$ x\na ... c\n...\nend\n```\n")
    assert example == Example("x", ("a ... c", "...", "end"))
    assert example.matches("a b c\nend\n")
    assert example.matches("a b c\n1\n2\nend\n")
    assert not example.matches("a b c\n1\n2\n")
    assert not example.matches("a b\nend\n")
    assert not Example("x", ()).matches("unexpected\n")


def test_program_when_it_is_an_example_is_run_with_the_output_behind_it() -> None:
    page = "```python\nprint(1)\n```\n\n```text\n1\n```\n\n```python\npass\n```\n\ntext\n\n```console\n$ x\n```\n"
    program, silent, command = examples(page)
    assert program == Example("python - <<'PROGRAM'\nprint(1)\nPROGRAM", ("1",))
    assert silent.expected == () and command == Example("x", ())


def test_port_that_contains_a_port_of_a_page_is_put_in_as_it_is() -> None:
    assert in_place_of("at 3456 and 3457", {"3456": "34579", "3457": "40001"}) == "at 34579 and 40001"
