"""All of fsspec's suite for implementations, pandas, zarr and dask, and reads while seven of ten nodes are dead."""

from __future__ import annotations

import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from grid.node.local_grid import LocalGrid
from tests.cli.command import grid
from tests.doors.grid import program
from tests.filesystem.programs import run_program, run_suite, running_grid

pytestmark = [pytest.mark.doors, pytest.mark.timeout(1800)]

NODE_COUNT = 10
KILLED = range(3, 10)


@pytest.fixture(scope="module")
def local_grid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalGrid]:
    with running_grid(tmp_path_factory.mktemp("fsspec") / "grid", node_count=NODE_COUNT) as made:
        yield made


@pytest.fixture
def run(local_grid: LocalGrid, tmp_path: Path) -> Callable[[str], list[str]]:
    """Runs a program that has pandas and zarr; returns its output."""
    home = Path(program("tables")).parents[1]
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(home), "platbase": str(home)}))
    assert packages.is_dir(), f"{home} is for another version of Python: remove it, then `make peers PEERS=tables`"
    return lambda body: run_program(body, local_grid.client, tmp_path, packages)


def test_suite_of_fsspec_passes(tmp_path: Path) -> None:
    # It makes two thousand directories, one after the other. With ten nodes, each would take ten times as many requests.
    with running_grid(tmp_path / "grid", node_count=1) as small:
        assert run_suite(small.client, tmp_path) >= 130


def test_frames_when_written_by_pandas_and_by_dask_are_read_by_each_other(run: Callable[[str], list[str]]) -> None:
    lines = run(
        """
        import dask, pandas
        import dask.dataframe
        frame = pandas.DataFrame({"number": range(1000), "text": [str(n) for n in range(1000)]})
        for part in range(3):
            frame.to_parquet(f"grid://data/frames/{part}.parquet", storage_options=options)
        frame.to_csv("grid://data/frame.csv", index=False, storage_options=options)
        print(pandas.read_parquet("grid://data/frames/1.parquet", storage_options=options).equals(frame))
        print(pandas.read_csv("grid://data/frame.csv", storage_options=options).number.equals(frame.number))
        with dask.config.set(scheduler="threads"):
            frames = dask.dataframe.read_parquet("grid://data/frames", storage_options=options)
            print(frames.number.sum().compute())
            frames.to_parquet("grid://data/again", storage_options=options)
        again = pandas.read_parquet("grid://data/again", columns=["number"], storage_options=options)
        print(again.shape, again.number.sum())
        fsspec.filesystem("grid", **options).rm(["data/frames", "data/again", "data/frame.csv"], recursive=True)
        """
    )
    assert lines == ["True", "True", str(3 * 499_500), f"(3000, 1) {3 * 499_500}"]


def test_frames_when_read_on_a_cluster_come_through_a_client_in_each_worker(run: Callable[[str], list[str]]) -> None:
    lines = run(
        """
        import logging, os, dask.dataframe, pandas
        from distributed import Client, LocalCluster

        def look():
            from grid.filesystem.system import GridFileSystem
            return os.getpid(), GridFileSystem(**options).ls("data/cluster", detail=False)

        frame = pandas.DataFrame({"number": range(1000)})
        for part in range(4):
            frame.to_parquet(f"grid://data/cluster/{part}.parquet", storage_options=options)
        # A warning says that a machine is too busy to take two interpreters apart within 4 s.
        quiet = {"dashboard_address": None, "silence_logs": logging.ERROR}
        with LocalCluster(n_workers=2, threads_per_worker=1, **quiet) as cluster, Client(cluster) as client:
            seen = list(client.run(look).values())
            print(len({process for process, _ in seen} - {os.getpid()}), {len(names) for _, names in seen})
            frames = dask.dataframe.read_parquet("grid://data/cluster", storage_options=options)
            print(frames.number.sum().compute())
        fsspec.filesystem("grid", **options).rm("data/cluster", recursive=True)
        """
    )
    assert lines == ["2 {4}", str(4 * 499_500)]


def test_array_when_written_by_zarr_is_read_in_part(run: Callable[[str], list[str]]) -> None:
    lines = run(
        """
        import numpy, zarr
        array = zarr.create_array(
            "grid://data/zarr", shape=(100, 100), chunks=(50, 50), dtype="i4", storage_options=options
        )
        array[:] = numpy.arange(10_000).reshape(100, 100)
        array[0, :2] = -1
        read = zarr.open_array("grid://data/zarr", mode="r", storage_options=options)
        print(int(read[60, 70]), read[0, 1:3].tolist(), read.shape)
        """
    )
    assert lines == ["6070 [-1, 2] (100, 100)"]


def test_files_when_seven_of_ten_nodes_are_dead_are_read(local_grid: LocalGrid, tmp_path: Path) -> None:
    written = run_program(
        """
        fs = fsspec.filesystem("grid", **options)
        fs.pipe({f"data/kept/{n}": bytes([n]) * 300_000 for n in range(5)})
        print(len(fs.find("data/kept")))
        """,
        local_grid.client,
        tmp_path,
    )
    for index in KILLED:
        assert grid("stop", "--now", local_grid.storage(index)).code == 0
    read = run_program(
        """
        fs = fsspec.filesystem("grid", **options)
        print(fs.ls("data/kept", detail=False))
        print(fs.cat_ranges([f"data/kept/{n}" for n in range(5)], 299_998, None) == [bytes([n]) * 2 for n in range(5)])
        """,
        local_grid.client,
        tmp_path,
    )
    assert written == ["5"]
    assert read == [str([f"data/kept/{n}" for n in range(5)]), "True"]
