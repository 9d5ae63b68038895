"""The file system on a real grid of processes: part of fsspec's own suite, and the programs that people use it with."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from configparser import ConfigParser
from importlib import import_module
from pathlib import Path

import pytest

from grid.node.local_grid import LocalGrid
from grid.node.running import find_running
from perf.processes.node_process import free_ports, wait_until
from tests.cli.command import environment, grid
from tests.filesystem.programs import ROOT, run_program, run_suite, running_grid
from tests.support.warm_programs import warm_program

NODE_COUNT = 3


@pytest.fixture(scope="module")
def local_grid(tmp_path_factory: pytest.TempPathFactory, require: Callable[[str], None]) -> Iterator[LocalGrid]:
    require("fsspec")
    with running_grid(tmp_path_factory.mktemp("filesystem") / "grid", node_count=NODE_COUNT) as made:
        yield made


@pytest.fixture
def run(local_grid: LocalGrid, tmp_path: Path) -> Callable[[str], list[str]]:
    """Runs a program with the file system of the client; returns its output. The program starts warm."""
    return lambda body: run_program(body, local_grid.client, tmp_path, is_warm=True)


@pytest.fixture
def fresh(local_grid: LocalGrid, tmp_path: Path) -> Callable[[str], list[str]]:
    """The same, and the program starts as users' do: it has no reactor yet, and ends as Python does."""
    return lambda body: run_program(body, local_grid.client, tmp_path)


def test_entry_points_when_resolved_are_the_file_system(require: Callable[[str], None]) -> None:
    require("fsspec")
    config = ConfigParser()
    config.read(ROOT / "setup.cfg")
    declared = dict(line.split(" = ") for line in config["options.entry_points"]["fsspec.specs"].strip().splitlines())
    modules = {name: value.partition(":") for name, value in declared.items()}
    found = {name: getattr(import_module(module), attribute) for name, (module, _, attribute) in modules.items()}
    assert {name: cls.__name__ for name, cls in found.items()} == {
        "grid": "GridFileSystem",
        "grid+cap": "GridFileSystem",
    }
    assert set(found) == set(next(iter(found.values())).protocol)


def test_suite_of_fsspec_when_a_slice_of_it_is_run_passes(local_grid: LocalGrid, tmp_path: Path) -> None:
    """`make doors` runs all of it, which makes two thousand directories."""
    assert run_suite(local_grid.client, tmp_path, "-k", "exclusive or list_of_files_to_new") == 5


def test_files_when_written_by_one_call_are_there_for_all_others(run: Callable[[str], list[str]]) -> None:
    lines = run(
        """
        import pickle
        from pathlib import Path
        text = bytes(range(256)) * 2000
        with fsspec.open("grid://data/a/b/large", "wb", **options) as file:
            for offset in range(0, len(text), 70_000):
                file.write(text[offset : offset + 70_000])
        fs, path = fsspec.url_to_fs("grid://data/a/b/large", **options)
        print(path, fs.cat(path) == text, fs.info(path)["size"], fs.unstrip_protocol(path))
        with fs.open(path) as file:
            file.seek(-10, 2)
            print(file.read() == text[-10:])
        with fs.open(path, cache_type="none") as file:
            start = file.read(10)
            fs.pipe(path, b"replaced")
            print(start + file.read() == text, fs.cat(path))
        fs.pipe(path, text)
        starts, ends = [5, 400_000, 8, -7, 600_000], [9, 400_010, 100, None, 700_000]
        print(fs.cat_ranges([path] * 5, starts, ends) == [text[a:b] for a, b in zip(starts, ends)])
        print([type(each).__name__ for each in fs.cat_ranges([path, "data/none", "none/x", "data/a"], 0, 1)])
        fs.pipe({"data/a/one": b"1", "data/a/two": b"22" * 100, "data/c/one": b"3"})
        print(fs.glob("grid://data/*/one"), fs.du("data"), fs.ls("data/a", detail=False), fs.ls("", detail=False))
        with fs.open("data/a/one", "ab") as file:
            file.write(b" and more")
        with fs.open("data/a/one", "r") as file:
            print(file.read())
        fs.mv("data/a/one", "data/c/")
        fs.mv("data/a", "data/d/moved", recursive=True)
        fs.cp("data/d/moved/two", "data/twin")
        print(fs.find("data"), fs.info("data/twin")["etag"] == fs.info("data/d/moved/two")["etag"])
        print(fs.created("data/twin") <= fs.modified("data/twin"), fs.isdir("data/d"), fs.isfile("data/d"))
        Path("folder").mkdir()
        Path("folder/x").write_bytes(text)
        fs.put("folder", "data/up", recursive=True)
        fs.get("data/up/x", "down/y")
        print(Path("down/y").read_bytes() == text, sorted(map(str, Path("down").iterdir())))
        fs.rm(["data/up", "data/d", "data/c"], recursive=True)
        fs.rm("data/twi*")
        print(fs.ls("data"), pickle.loads(pickle.dumps(Path.home))() == Path.home())
        """
    )
    assert lines == [
        "data/a/b/large True 512000 grid://data/a/b/large",
        "True",
        "True b'replaced'",
        "True",
        "['bytes', 'FileNotFoundError', 'FileNotFoundError', 'IsADirectoryError']",
        "['data/a/one', 'data/c/one'] 512202 ['data/a/b', 'data/a/one', 'data/a/two'] ['data', 'suite']",
        "1 and more",
        "['data/c/one', 'data/d/moved/b/large', 'data/d/moved/two', 'data/twin'] True",
        "True True False",
        "True ['down/y']",
        "[] True",
    ]


def test_capability_when_used_as_a_root_is_in_no_error_and_no_name_of_a_file(
    run: Callable[[str], list[str]], local_grid: LocalGrid
) -> None:
    cap = grid("-d", local_grid.client, "mkdir").line
    lines = run(
        f"""
        root = {cap!r}
        with fsspec.open(f"grid+cap://{{root}}/below/file", "wb", **options) as opened:
            opened.write(b"x" * 1000)
            print(root in repr(opened))
        fs, path = fsspec.url_to_fs(f"grid+cap://{{root}}/below", **options)
        print(fs.cat(f"{{path}}/file")[:3], fs.unstrip_protocol(path) == f"grid+cap://{{root}}/below")
        attempts = [
            lambda: fs.cat(path), lambda: fs.cat(path + "/none"), lambda: fs.ls(path + "/none"), lambda: fs.rm(path),
            lambda: fs.mkdir(path), lambda: fs.rmdir(path), lambda: fs.open(path + "/file", "xb"),
            lambda: fs.pipe(path, b""), lambda: fs.rm(root, recursive=True), lambda: fs.pipe(path + "/file/under", b""),
            lambda: fs.cat("URI:CHK:nonsense/x"), lambda: fs.get(path + "/none", "here"), lambda: fs.mv(path + "/q", path + "/r"),
        ]
        for attempt in attempts:
            try:
                attempt()
            except OSError as error:
                assert root not in str(error) and "URI:" not in str(error), error
                print(type(error).__name__)
        """
    )
    assert lines[:2] == ["False", "b'xxx' True"]
    assert lines[2:] == [
        "IsADirectoryError",
        "FileNotFoundError",
        "FileNotFoundError",
        "IsADirectoryError",
        "FileExistsError",
        "OSError",
        "FileExistsError",
        "FileExistsError",
        "OSError",
        "NotADirectoryError",
        "OSError",
        "FileNotFoundError",
        "FileNotFoundError",
    ]


def test_file_when_it_waits_on_disk_is_not_readable_there(run: Callable[[str], list[str]]) -> None:
    lines = run(
        """
        import os
        file = fsspec.filesystem("grid", **options).open("data/secret", "wb")
        file.write(b"plaintext" * 1_000_000)
        waiting = []
        for number in os.listdir("/proc/self/fd"):
            try:
                if "(deleted)" in os.readlink(f"/proc/self/fd/{number}"):
                    with open(f"/proc/self/fd/{number}", "rb") as opened:
                        waiting.append(opened.read())
            except OSError:
                pass
        print(any(len(each) == 9_000_000 for each in waiting), any(b"plaintext" in each for each in waiting))
        file.discard()
        """
    )
    assert lines == ["True False"]


def test_transaction_when_it_ends_shows_all_of_its_files_or_none(run: Callable[[str], list[str]]) -> None:
    lines = run(
        """
        import multiprocessing
        fs = fsspec.filesystem("grid", **options)
        with fs.transaction:
            for name in ("a", "b"):
                with fs.open(f"data/together/{name}", "wb") as file:
                    file.write(name.encode() * 1000)
            print(fs.exists("data/together"))
        print(fs.ls("data/together", detail=False))
        try:
            with fs.transaction:
                with fs.open("data/together/c", "wb") as file:
                    file.write(b"c" * 1000)
                raise KeyError
        except KeyError:
            print(fs.ls("data/together", detail=False))
        try:
            with fs.open("data/together/d", "wb") as file:
                file.write(b"half of it")
                raise KeyError
        except KeyError:
            print(fs.exists("data/together/d"))
        try:
            with fs.transaction:
                for mode in ("wb", "xb"):
                    with fs.open(f"data/together/{mode}", mode) as file:
                        file.write(b"ours")
                fs.pipe("data/together/xb", b"theirs")
        except FileExistsError:
            print(fs.exists("data/together/wb"))
        fs.rm("data/together", recursive=True)

        def look():
            try:
                fsspec.filesystem("grid", **options).ls("data")
            except RuntimeError as error:
                print(str(error)[:32], flush=True)

        import warnings
        warnings.simplefilter("ignore", DeprecationWarning)
        child = multiprocessing.get_context("fork").Process(target=look)
        child.start()
        child.join()
        """
    )
    both = "['data/together/a', 'data/together/b']"
    assert lines == ["False", both, both, "False", "False", "this process was forked from one"]


def test_program_when_it_ends_has_no_thread_left_that_keeps_it_even_if_the_introducer_is_suspended(
    fresh: Callable[[str], list[str]], local_grid: LocalGrid
) -> None:
    introducer = find_running(local_grid.introducer)
    assert introducer is not None
    try:
        lines = fresh(
            f"""
            import atexit, os, signal, threading
            from grid.library import reactor_thread
            reactor_thread.STOP_S = 60.0  # However busy the machine is, the reactor ends first.

            @atexit.register
            def last():
                threads = threading.enumerate()
                print([each.name for each in threads if not each.daemon or "fsspec" not in each.name])

            fs = fsspec.filesystem("grid", **options)
            fs.pipe("data/last", b"x" * 100_000)
            print(len(fs.cat("data/last")))
            fs.rm("data/last")
            os.kill({introducer.pid}, signal.SIGSTOP)
            """
        )
    finally:
        os.kill(introducer.pid, signal.SIGCONT)
    assert lines == ["100000", "['MainThread']"]


ASYNCIO = """
import asyncio

async def main():
    fs = GridFileSystem(asynchronous=True, **options)
    await asyncio.gather(*(fs._pipe_file(f"data/async/{n}", b"%d" % n * 500) for n in range(20)))
    print(len(await fs._ls("data/async")), await fs._cat_ranges(["data/async/7", "data/async/8"], 2, 4))
    async with await fs.open_async("data/async/new", "wb") as file:
        await file.write(b"x" * 100)
    async with await fs.open_async("data/async/new", "rb") as file:
        file.seek(98)
        await fs._pipe_file("data/async/new", b"y" * 100)
        print(await file.read())
    try:
        GridFileSystem(skip_instance_cache=True, **options)
        print("made")
    except RuntimeError as error:
        print(str(error)[:29])
    await fs._rm("data/async", recursive=True)
"""


def test_coroutines_when_run_beside_the_reactor_await_the_grid(run: Callable[[str], list[str]]) -> None:
    assert run(ASYNCIO + "asyncio.run(main())") == ["20 [b'77', b'88']", "b'xx'", "made"]


def test_coroutines_when_run_on_the_reactor_await_the_grid(fresh: Callable[[str], list[str]]) -> None:
    lines = fresh(
        f"""
from twisted.internet import asyncioreactor
asyncioreactor.install()
from twisted.internet.defer import Deferred
from twisted.internet.task import react
{ASYNCIO}
react(lambda reactor: Deferred.fromFuture(asyncio.ensure_future(main())))
"""
    )
    assert lines == ["20 [b'77', b'88']", "b'xx'", "this thread runs the reactor,"]


def test_gateway_when_it_is_named_serves_the_same_calls(run: Callable[[str], list[str]], local_grid: LocalGrid) -> None:
    (port,) = free_ports(1)
    command = [warm_program("grid.cli"), "gateway", str(local_grid.client), "--listen", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment()) as process:
        try:
            wait_until(lambda: grid("--gateway", f"http://127.0.0.1:{port}/", "status").code == 0, "a gateway")
            lines = run(
                f"""
                fs = fsspec.filesystem("grid", gateway="http://127.0.0.1:{port}/", **options)
                text = bytes(range(250)) * 1000
                fs.pipe({{f"data/through/{{n}}": text for n in range(5)}})
                print(fs.ls("data/through", detail=False))
                print(fs.cat_ranges(["data/through/1"] * 2, [10, 100_000], [12, 100_002]) == [text[10:12], text[:2]])
                fs.mv("data/through/1", "data/through/deep/moved")
                with fs.transaction:
                    with fs.open("data/through/deep/new", "wb") as file:
                        file.write(b"new")
                print(fs.find("data/through/deep"), fs.cat("data/through/deep/new"))
                fs.mkdir("data/through/empty")
                fs.rmdir("data/through/empty")
                fs.pipe("data/through/once", b"1", mode="create")
                for attempt in (lambda: fs.rmdir("data/through"), lambda: fs.open("data/through/once", "xb").close()):
                    try:
                        attempt()
                    except OSError as error:
                        print(type(error).__name__, error.errno)
                print(fs.ls("data/through", detail=False))
                fs.rm("data/through", recursive=True)
                print(fs.exists("data/through"))
                """
            )
        finally:
            process.terminate()
    assert lines == [
        "['data/through/0', 'data/through/1', 'data/through/2', 'data/through/3', 'data/through/4']",
        "True",
        "['data/through/deep/moved', 'data/through/deep/new'] b'new'",
        "OSError 39",
        "FileExistsError 17",
        "['data/through/0', 'data/through/2', 'data/through/3', 'data/through/4', 'data/through/deep', 'data/through/once']",
        "False",
    ]


def test_parquet_when_written_by_pyarrow_is_read_by_column(
    run: Callable[[str], list[str]], require: Callable[[str], None]
) -> None:
    require("pyarrow")
    lines = run(
        """
        import pyarrow as pa, pyarrow.parquet as pq, pyarrow.dataset as ds
        fs = fsspec.filesystem("grid", **options)
        table = pa.table({"n": list(range(20_000)), "text": [str(n) for n in range(20_000)]})
        pq.write_table(table, "data/parquet/one.parquet", filesystem=fs, row_group_size=5000)
        pq.write_to_dataset(table.slice(0, 3), "data/parquet/parts", partition_cols=["text"], filesystem=fs)
        print(pq.read_table("data/parquet/one.parquet", filesystem=fs, columns=["n"])["n"].to_pylist()[-1])
        print(ds.dataset("data/parquet/parts", filesystem=fs, format="parquet", partitioning="hive").count_rows())
        fs.rm("data/parquet", recursive=True)
        """
    )
    assert lines == ["19999", "3"]
