"""The main use of transfers: a folder from a real S3 server and one from a real SFTP server to ten nodes and back, killed twice each way.

At a fiftieth of its size, unless GRID_MAIN_JOB is `full`, as `make main-job` sets it: 10,000 small files and two of a gigabyte then.
"""

from __future__ import annotations

import hashlib
import os
import random
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from perf.processes.clients import GridClient
from perf.processes.node_process import child_environment
from perf.processes.process_grid import ClientSettings, ProcessGrid
from tests.transfer.conftest import BUCKET, s3, sftp  # noqa: F401 - fixtures

pytestmark = pytest.mark.doors

SCALE = 1 if os.environ.get("GRID_MAIN_JOB") == "full" else 50
SMALL_COUNT = 10_000 // SCALE
LARGE_COUNT = 2
LARGE_SIZE = 10**9 // SCALE
PATIENCE_S = 3600
EXPANSION = 10 / 3


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessGrid]:
    """Ten nodes."""
    root = tmp_path_factory.mktemp("main-job") / "grid"
    with ProcessGrid(root, introducer="grid", storage=["grid"] * 10, force_foolscap=False) as running:
        yield running


@pytest.fixture(scope="module")
def client(nodes: ProcessGrid) -> GridClient:
    """A client with an alias, 3-of-10."""
    made = nodes.add_client(ClientSettings(kind="grid"))
    assert isinstance(made, GridClient)
    made.run("create-alias", "work")
    return made


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What an instrument leaves: many small files in some directories, and large ones."""
    folder = tmp_path_factory.mktemp("source") / "run-7"
    draw = random.Random(7)
    for number in range(SMALL_COUNT):
        path = folder / f"day-{number % 10}" / f"values-{number:05}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(draw.randbytes(int(10 ** draw.uniform(1, 5))))
    for number in range(LARGE_COUNT):
        with (folder / f"large-{number}").open("wb") as file:
            for begin in range(0, LARGE_SIZE, 10**6):
                file.write(draw.randbytes(min(10**6, LARGE_SIZE - begin)))
    return folder


def digests(folder: Path) -> dict[str, str]:
    """SHA-256 of every file below a directory."""
    found = {}
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                found[str(path.relative_to(folder))] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


class _Job:
    """Commands of one user, whose journals are in one directory."""

    def __init__(self, client: GridClient, state: Path, environment: dict[str, str]) -> None:
        self._client, self._state = client, state
        self._environment = {**child_environment(), **environment, "XDG_STATE_HOME": str(state)}

    def run(self, *arguments: str) -> None:
        """A transfer to its end; every file arrives."""
        command = self._client.command("transfer", "--no-progress", *arguments)
        done = subprocess.run(command, env=self._environment, capture_output=True, check=False, timeout=PATIENCE_S)
        assert done.returncode == 0, done.stderr.decode()

    def run_killed(self, until: Callable[[int, int], bool], *arguments: str) -> None:
        """A transfer that is killed once `until` says so of the files that are done and the parts that are noted."""
        before = set(self._state.rglob("*.sqlite"))
        command = self._client.command("transfer", "--no-progress", *arguments)
        process = subprocess.Popen(command, env=self._environment, stderr=subprocess.PIPE)
        deadline = time.monotonic() + PATIENCE_S
        while process.poll() is None and time.monotonic() < deadline:
            journals = set(self._state.rglob("*.sqlite")) - before or before
            if any(until(*_progress(path)) for path in journals):
                break
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        _, errors = process.communicate()
        assert process.returncode == -signal.SIGKILL, f"it ended before it was killed: {errors.decode()}"


def _progress(journal: Path) -> tuple[int, int]:
    """Files that are done, and parts that are noted."""
    try:
        rows = sqlite3.connect(f"file:{journal}?mode=ro", uri=True, timeout=1)
        try:
            done = rows.execute("SELECT COUNT(*) FROM files WHERE state = 'done'").fetchone()[0]
            return int(done), int(rows.execute("SELECT COUNT(*) FROM parts").fetchone()[0])
        finally:
            rows.close()
    except sqlite3.Error:
        return 0, 0


def parts_of(size: int) -> float:
    """Parts in which a file goes onto the grid: its shares of each have 20 MiB together."""
    return size * EXPANSION / (20 * 2**20)


def there_and_back(job: _Job, source: str, on_grid: str, back: str, *options: str) -> None:
    """Both ways, killed twice on each."""
    files = SMALL_COUNT + LARGE_COUNT
    parts = LARGE_COUNT * parts_of(LARGE_SIZE)
    job.run_killed(lambda done, noted: done >= files // 3 or noted >= 2, *options, source, on_grid)
    job.run_killed(lambda done, noted: noted >= 0.6 * parts, *options, source, on_grid)
    job.run(*options, source, on_grid)
    job.run_killed(lambda done, noted: done >= files // 4, on_grid, back)
    job.run_killed(lambda done, noted: done >= files // 2, on_grid, back)
    job.run(on_grid, back)


def test_folder_of_an_s3_server_when_its_transfer_is_killed_comes_back_as_it_was(
    client: GridClient,
    s3: dict[str, str],  # noqa: F811
    source: Path,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    job = _Job(client, tmp_path / "state", s3)
    job.run(str(source), f"s3://{BUCKET}/run-7")

    there_and_back(job, f"s3://{BUCKET}/run-7", "work:from-s3", f"s3://{BUCKET}/back", "--pack")

    (served,) = {path.resolve() for path in tmp_path_factory.getbasetemp().glob(f"s3*/remote/{BUCKET}/back")}
    assert digests(served) == digests(source)


def test_folder_of_an_sftp_server_when_its_transfer_is_killed_comes_back_as_it_was(
    client: GridClient,
    sftp: tuple[str, Path],  # noqa: F811
    source: Path,
    tmp_path: Path,
) -> None:
    url, home = sftp
    (tmp_path / "back").mkdir()
    job = _Job(client, tmp_path / "state", {"HOME": str(home)})

    there_and_back(job, f"{url}{source}", "work:from-sftp", f"{url}{tmp_path}/back")

    found = {name: digest for name, digest in digests(tmp_path / "back").items() if "partial" not in name}
    assert found == digests(source)


def bytes_written(nodes: ProcessGrid) -> int:
    """What the storage nodes have written to files in all."""
    return sum(psutil.Process(node.pid).io_counters().write_chars for node in nodes.storage)


def test_large_file_when_killed_halfway_resends_at_most_six_tenths(
    nodes: ProcessGrid, client: GridClient, tmp_path: Path
) -> None:
    size = 10**9 if SCALE == 1 else 10**8
    (tmp_path / "source").mkdir()
    with (tmp_path / "source" / "large").open("wb") as file:
        for begin in range(0, size, 10**6):
            file.write(random.Random(begin).randbytes(10**6))
    job = _Job(client, tmp_path / "state", {})
    start = bytes_written(nodes)
    # What is noted last is on its way: about two parts.
    job.run_killed(lambda done, noted: noted >= parts_of(size) / 2 + 2, str(tmp_path / "source"), "work:half")
    killed = bytes_written(nodes)
    job.run(str(tmp_path / "source"), "work:half")
    first, second = killed - start, bytes_written(nodes) - killed
    whole = EXPANSION * size
    print(f"{size} bytes: {first / whole:.3f} of the shares sent before the kill, {second / whole:.3f} after it")
    assert 0.4 < first / whole < 0.7
    assert second / whole < 0.6
