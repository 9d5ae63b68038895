"""`grid watch` as a process with a real grid: killed, and with a full disk under its journal."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from grid.node.local_grid import LocalGrid
from tests.cli.command import environment, grid, new_directory
from tests.transfer.test_engine import contents

PATIENCE_S = 240


class _Watch:
    """A folder that one process after the other watches, and the names that they say are stored."""

    def __init__(self, client: Path, target: str, root: Path, state: Path) -> None:
        self._client, self._target, self._root, self._state = client, target, root, state
        self.folder = root / "folder"
        self.folder.mkdir()
        self._outputs: list[Path] = []

    def write(self, prefix: str, count: int) -> None:
        """Add files that are complete as soon as the watch can see them."""
        for number in range(count):
            (self._root / "new").write_bytes(os.urandom(2000))
            (self._root / "new").rename(self.folder / f"{prefix}-{number}")

    @contextmanager
    def running(self) -> Iterator[subprocess.Popen[bytes]]:
        """A watch that sends one file after the other; killed in the end if it still runs."""
        output = self._root / f"output-{len(self._outputs)}"
        self._outputs.append(output)
        command = [sys.executable, "-m", "grid.cli", "-d", str(self._client), "watch", "--json", "--no-progress"]
        options = ["--settle=0", "--every=0.1", "--transfers=1", str(self.folder), self._target]
        with output.open("wb") as out, output.with_suffix(".err").open("wb") as err:
            process = subprocess.Popen(
                [*command, *options], stdout=out, stderr=err, env=environment(XDG_STATE_HOME=str(self._state))
            )
        self._process = process
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def errors(self) -> str:
        """What the last process wrote to stderr."""
        return self._outputs[-1].with_suffix(".err").read_text()

    def wait(self, until: Callable[[], bool]) -> None:
        """Wait until something is so."""
        deadline = time.monotonic() + PATIENCE_S
        while not until():
            assert time.monotonic() < deadline and self._process.poll() is None, self.errors()
            time.sleep(0.02)

    def count(self, state: str) -> int:
        """Files that the journal has in a state."""
        for path in self._state.rglob("*.sqlite"):
            try:
                rows = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=1)
                try:
                    return int(rows.execute("SELECT COUNT(*) FROM files WHERE state = ?", (state,)).fetchone()[0])
                finally:
                    rows.close()
            except sqlite3.Error:
                continue
        return 0

    def named(self) -> Counter[str]:
        """How often each name was said to be stored."""
        lines = [json.loads(line) for output in self._outputs for line in output.read_text().splitlines()]
        return Counter(line["name"] for line in lines if line["event"] == "stored")

    def require_all_once(self) -> None:
        """Everything is there as it was written, and nothing was stored twice."""
        copied = grid("-d", self._client, "cp", "-r", self._target, self._root / "back")
        assert copied.code == 0, copied.err
        assert contents(self._root / "back" / "new") == contents(self.folder)
        assert max(self.named().values()) == 1


def watch_to(local: LocalGrid, root: Path, state: Path) -> _Watch:
    """A watch whose target is a new directory of the grid."""
    return _Watch(local.client, f"{new_directory(local.client)}/new", root, state)


def test_watch_when_killed_and_started_again_stores_everything_once(local_grid: LocalGrid, tmp_path: Path) -> None:
    watch = watch_to(local_grid, tmp_path, tmp_path / "state")
    watch.write("early", 8)
    with watch.running():
        watch.wait(lambda: watch.count("stored") + watch.count("done") >= 2)
    kept = watch.count("stored") + watch.count("done")
    assert kept < 8, "it was killed too late to show anything"
    watch.write("late", 2)

    with watch.running() as process:
        watch.wait(lambda: watch.count("done") == 10)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0, watch.errors()

    watch.require_all_once()


def test_watch_when_stopped_although_a_file_could_not_be_stored_says_so_and_ends_with_an_error(tmp_path: Path) -> None:
    target = tmp_path / "target"
    in_the_way = target / "file-0"
    in_the_way.mkdir(parents=True)
    watch = _Watch(tmp_path / "client", str(target), tmp_path, tmp_path / "state")
    watch.write("file", 1)
    with watch.running() as process:
        watch.wait(lambda: watch.count("unsent") == 1 and "file-0" in watch.errors())
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 1, watch.errors()
        assert "not everything is stored" in watch.errors() and "start the watch again" in watch.errors()

    in_the_way.rmdir()
    with watch.running() as process:
        watch.wait(lambda: watch.count("done") == 1)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0, watch.errors()
    assert contents(target) == contents(watch.folder)


def fill(path: Path) -> None:
    """Write until the disk is full."""
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(512))


def test_watch_when_the_disk_of_its_journal_is_full_ends_with_an_error_and_goes_on_once_there_is_room(
    local_grid: LocalGrid, tmp_path: Path, small_disk: Path
) -> None:
    watch = watch_to(local_grid, tmp_path, small_disk)
    watch.write("early", 2)
    filler = small_disk / "filler"
    with watch.running() as process:
        watch.wait(lambda: watch.count("done") == 2)
        fill(filler)
        watch.write("late", 6)
        watch.wait(lambda: "make room" in watch.errors())
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 1, watch.errors()
        assert "start the watch again" in watch.errors()

    with watch.running() as process:
        filler.unlink()
        watch.wait(lambda: watch.count("done") == 8)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0, watch.errors()
    assert "Traceback" not in watch.errors()

    watch.require_all_once()
