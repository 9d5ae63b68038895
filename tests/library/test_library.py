"""The library on a real grid of processes: for scripts, for asyncio beside the reactor and on it, and for Twisted.

Each program runs in a process of its own, for a process has one reactor. Those of `fresh` start as users' do, and the tests look at how
they end; the others start warm.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from grid.node.local_grid import LocalGrid
from tests.cli.command import grid
from tests.support.warm_programs import warm_program

NODE_COUNT = 5
DEADLINE_S = 240

Run = Callable[[str], list[str]]

BLOCKING = """
import grid
with grid.open({directory!r}) as files:
    main(files)
"""

# The same calls, awaited: `files` of `main` hides which way they go.
BESIDE = """
import asyncio, grid
async def start():
    async with grid.open_asyncio({directory!r}) as files:
        await main(files)
asyncio.run(start())
"""

NATIVE = """
from twisted.internet import asyncioreactor
asyncioreactor.install()
from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.task import react
import asyncio, grid
async def start():
    async with grid.open_asyncio({directory!r}) as files:
        await main(files)
react(lambda reactor: Deferred.fromFuture(asyncio.ensure_future(start())))
"""

TWISTED = """
from twisted.internet.defer import Deferred
from twisted.internet.task import react
import grid
async def start():
    async with grid.open_twisted({directory!r}) as files:
        await main(files)
react(lambda reactor: Deferred.fromCoroutine(start()))
"""

STYLES = {"blocking": BLOCKING, "asyncio beside": BESIDE, "asyncio on the reactor": NATIVE, "twisted": TWISTED}


@pytest.fixture(scope="module")
def local_grid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalGrid]:
    """Five storage nodes, an introducer and a client."""
    path = tmp_path_factory.mktemp("library") / "grid"
    outcome = grid("up", "--nodes", str(NODE_COUNT), "--dir", path, "--detach")
    try:
        assert outcome.code == 0, outcome.err
        yield LocalGrid(path)
    finally:
        grid("down", "--dir", path)


@pytest.fixture(params=STYLES)
def run(request: pytest.FixtureRequest, local_grid: LocalGrid, tmp_path: Path) -> Run:
    """Runs a program, written with `await`, in one of the styles; returns its output. Its errors fail the test."""
    return in_style(request.param, local_grid, tmp_path, is_fresh=request.param == "asyncio on the reactor")


@pytest.fixture(params=STYLES)
def fresh(request: pytest.FixtureRequest, local_grid: LocalGrid, tmp_path: Path) -> Run:
    """The same, and every program starts as users' do."""
    return in_style(request.param, local_grid, tmp_path, is_fresh=True)


def in_style(style: str, local_grid: LocalGrid, tmp_path: Path, *, is_fresh: bool) -> Run:
    """is_fresh: a program that installs a reactor must be, for a warm one has a reactor."""

    def run(body: str) -> list[str]:
        program = "async def main(files):\n" + textwrap.indent(textwrap.dedent(body), "    ")
        if style == "blocking":
            program = program.replace("async def", "def").replace("async with", "with").replace("await ", "")
        return finish(program + STYLES[style].format(directory=str(local_grid.client)), tmp_path, is_fresh=is_fresh)

    return run


def finish(program: str, folder: Path, *, is_fresh: bool = True) -> list[str]:
    """The lines that the program prints; it ends by itself, without a word on stderr."""
    start = [sys.executable, "-c"] if is_fresh else [warm_program("tests.library.program")]
    done = subprocess.run(
        [*start, program],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_S,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return done.stdout.splitlines()


def test_files_when_put_are_read_whole_in_ranges_and_to_disk(fresh: Run, tmp_path: Path) -> None:
    (tmp_path / "source").write_bytes(bytes(range(256)) * 8000)
    lines = fresh(
        """
        import io, os
        from pathlib import Path
        text = Path("source").read_bytes()
        for contents in (text, Path("source"), io.BytesIO(text), Path("source").open("rb")):
            cap = await files.put(contents)
            print(await files.get(cap) == text, await files.get(cap, offset=1000, length=5) == text[1000:1005])
        print(await files.download(cap, Path("copy")), Path("copy").read_bytes() == text, sorted(os.listdir()))
        with Path("again").open("wb") as file:
            print(await files.download(cap, file))
        async with await files.open(cap) as opened:
            print(opened.seek(-300, io.SEEK_END), len(await opened.read(100)), await opened.read() == text[-200:])
            print(opened.tell(), await opened.read(10))
        small = await files.put(b"in its capability")
        print(await files.get(small, offset=3))
        """
    )
    assert lines[:4] == ["True True"] * 4
    assert lines[4:] == [
        "2048000 True ['copy', 'source']",
        "2048000",
        "2047700 100 True",
        "2048000 b''",
        "b'its capability'",
    ]


def test_directories_when_changed_show_the_changes(run: Run) -> None:
    lines = run(
        """
        root = await files.mkdir()
        deep = await files.mkdir(root, "a/b", format="mdmf")
        await files.link(root, "a/b/file", await files.put(b"x" * 1000))
        await files.link(deep, "mutable", await files.put(b"first", format="sdmf"))
        found = await files.list(root, "a/b")
        print([(e.name, e.kind, e.size, e.is_mutable, e.is_writable) for e in found.values()])
        await files.overwrite(found["mutable"].cap, b"second")
        print(await files.get((await files.find(root, "a/b/mutable")).cap))
        async with await files.open(found["mutable"].cap) as opened:
            print(await opened.read())
        await files.move(root, "a/b/file", "renamed")
        await files.move(root, "renamed", "moved", to=deep)
        await files.unlink(deep, "mutable")
        print(list(await files.list(root)), list(await files.list(deep)))
        health = await files.check(root, verify=True, add_lease=True)
        print(health.healthy, health.recoverable, health.details["summary"] == health.summary)
        print((await files.repair(root)).healthy)
        """
    )
    assert lines == [
        "[('file', 'file', 1000, False, False), ('mutable', 'file', None, True, True)]",
        "b'second'",
        "b'second'",
        "['a'] ['moved']",
        "True True True",
        "True",
    ]


def test_errors_when_raised_say_what_is_wrong_and_hold_no_capability(run: Run) -> None:
    lines = run(
        """
        root, file = await files.mkdir(), await files.put(bytes(1000))
        await files.link(root, "there", file)
        attempts = [
            ("get", (root,)), ("get", ("URI:CHK:nonsense",)), ("get", ("",)), ("list", (file,)),
            ("find", (root, "missing")), ("link", (root, "there", file)), ("unlink", (root, "missing")),
            ("unlink", (root, "")), ("overwrite", (file, b"x")), ("put", ("text",)), ("list", (root, "there/below")),
        ]
        for name, arguments in attempts:
            try:
                await getattr(files, name)(*arguments)
            except Exception as error:
                assert "URI" not in str(error) and file not in repr(error), error
                print(type(error).__name__)
        await files.close()
        await files.close()
        try:
            await files.get(file)
        except Exception as error:
            print(type(error).__name__, error)
        """
    )
    assert lines == [
        "CapError",
        "CapError",
        "CapError",
        "CapError",
        "NoSuchChildError",
        "ExistingChildError",
        "NoSuchChildError",
        "GridError",
        "CapError",
        "TypeError",
        "ChildOfWrongTypeError",
        "GridError this grid is closed: open the node directory again",
    ]


@pytest.mark.parametrize("style", ["asyncio beside", "asyncio on the reactor"])
def test_task_when_cancelled_ends_its_operation_and_the_grid_keeps_working(
    style: str, local_grid: LocalGrid, tmp_path: Path
) -> None:
    program = """
async def main(files):
    import asyncio
    task = asyncio.ensure_future(files.put(bytes(50_000_000)))
    await asyncio.sleep(0)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        print("cancelled")
    caps = await asyncio.gather(*(files.put(bytes([n]) * 100) for n in range(5)))
    print([(await files.get(cap))[:1] for cap in caps])
"""
    lines = finish(program + STYLES[style].format(directory=str(local_grid.client)), tmp_path)
    assert lines == ["cancelled", str([bytes([n]) for n in range(5)])]


def test_scripts_grid_when_used_by_threads_and_opened_again_works(local_grid: LocalGrid, tmp_path: Path) -> None:
    program = f"""
import grid, zipfile, io
from concurrent.futures import ThreadPoolExecutor
for _ in range(2):
    with grid.open({str(local_grid.client)!r}) as files, grid.open({str(local_grid.client)!r}) as other:
        with ThreadPoolExecutor(4) as pool:
            caps = list(pool.map(lambda n: files.put(bytes([n]) * 1000), range(8)))
            print(all(pool.map(lambda n: other.get(caps[n]) == bytes([n]) * 1000, range(8))))
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w") as writer:
            writer.writestr("name", b"text")
        with files.open(files.put(archive)) as opened, zipfile.ZipFile(opened) as reader:
            print(reader.read("name"))
files = grid.open({str(local_grid.client)!r})  # Not closed: the process ends all the same.
"""
    assert finish(program, tmp_path) == ["True", "b'text'"] * 2


def test_scripts_grid_when_opened_on_the_reactors_thread_is_refused(local_grid: LocalGrid, tmp_path: Path) -> None:
    program = f"""
import grid
from twisted.internet.task import deferLater, react
from twisted.internet.threads import deferToThread
def in_thread():
    with grid.open({str(local_grid.client)!r}) as files:
        return files.get(files.put(b"from a thread of a program of Twisted"))
async def main(reactor):
    await deferLater(reactor, 0)  # `react` calls this before the reactor runs.
    try:
        grid.open({str(local_grid.client)!r})
    except RuntimeError as error:
        print(error)
    print(await deferToThread(in_thread))
react(main)
"""
    refused, read = finish(program, tmp_path)
    assert "use grid.open_asyncio or grid.open_twisted" in refused
    assert read == "b'from a thread of a program of Twisted'"


@pytest.mark.parametrize("name", ["introducer", "nowhere"])
def test_open_when_it_is_not_a_client_directory_says_so(name: str, local_grid: LocalGrid, tmp_path: Path) -> None:
    program = f"""
import grid
from grid.errors import ConfigError
for opening in (grid.open, grid.open_asyncio, grid.open_twisted):
    try:
        opening({str(local_grid.path / name)!r})
    except ConfigError as error:
        print(error)
"""
    lines = finish(program, tmp_path)
    assert len(lines) == 3 and all(name in line for line in lines)


def test_types_when_a_program_uses_the_library_are_known(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        """
import grid
with grid.open("x") as files:
    reveal_type(files.put(b""))
    reveal_type(files.open("").read())
    reveal_type(files.list("")["a"].size)
    files.put(1)
async def main() -> None:
    async with grid.open_asyncio("x") as files:
        reveal_type(await files.get(""))
"""
    )
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path / "cache", "program.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    revealed = [line.partition("Revealed type is ")[2] for line in done.stdout.splitlines() if "Revealed" in line]
    assert [each.replace("builtins.", "") for each in revealed] == ['"str"', '"bytes"', '"int | None"', '"bytes"'], done
    assert done.stdout.count("error:") == 1 and "put" in done.stdout
