"""The memory of servers that a client passes from one process to the next."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.engine.server_memory import ServerMemory
from grid.node.client import Client
from grid.node.create import NewClient, create_client
from grid.node.directory import open_directory
from grid.node.memory_file import MOST_AGE_S, MOST_BYTES, MemoryFile
from grid.ports import ServerId
from tests.support.virtual_time import VirtualRuntime
from tests.wire.http.rig import make_runtime

S0 = ServerId("s0")
KIND = "ReadShares"


class Process:
    """One process's memory and file, which begins at that Unix time after another epoch of its monotonic clock."""

    def __init__(self, path: Path, at: float = 0.0) -> None:
        self.clock = VirtualRuntime().clock
        self.clock.task_clock.advance(at)
        self.memory = ServerMemory()
        self.file = MemoryFile(path, self.memory, self.clock)
        self.file.load()

    def is_doubtful(self) -> bool:
        return self.memory.is_doubtful(S0, KIND)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "server_memory.json"
    process = Process(path)
    process.memory.silent(S0, KIND, 0.0)
    process.file.save()
    return path


def test_next_process_when_a_server_was_silent_begins_in_doubt(path: Path) -> None:
    assert Process(path, at=60.0).is_doubtful()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("at", [MOST_AGE_S + 1, -1.0])
def test_next_process_when_the_file_is_old_or_from_the_future_begins_without_it(path: Path, at: float) -> None:
    if at < 0:
        document = json.loads(path.read_text())
        document["saved_at"] += 10
        path.write_text(json.dumps(document))
        at = 0.0
    assert not Process(path, at).is_doubtful()


def test_doubt_when_process_after_process_hands_it_on_still_ends(path: Path) -> None:
    doubtful_until = 0.0
    for at in range(100, 2000, 100):
        process = Process(path, float(at))
        if process.is_doubtful():
            doubtful_until = at
        process.memory.silent(ServerId("s1"), KIND, process.clock.now())
        process.file.save()
    assert 100 <= doubtful_until <= MOST_AGE_S


def test_next_process_when_the_server_answered_in_between_does_not_doubt_it(path: Path) -> None:
    process = Process(path, at=5.0)
    process.memory.answered(S0, KIND, process.clock.now())
    process.file.save()
    assert not Process(path, at=10.0).is_doubtful()


def test_save_when_nothing_was_learned_writes_nothing(path: Path) -> None:
    before = path.stat().st_mtime_ns, path.stat().st_ino
    process = Process(path, at=60.0)
    process.file.save()
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == before
    empty = Process(path.with_name("other.json"))
    empty.memory.answered(S0, KIND, 1.0)
    empty.file.save()
    assert not path.with_name("other.json").exists()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        "{",
        "[" * 100_000,
        '{"saved_at": "now"}',
        '{"saved_at": NaN, "format": 1, "servers": {}}',
        '{"saved_at": 1e999}',
        '{"saved_at": true}',
        '{"saved_at": ' + "9" * 5000 + "}",
        '{"saved_at": ' + "9" * 400 + "}",
        '{"saved_at": -' + "9" * 400 + "}",
        "\ud800",
        "x" * (MOST_BYTES * 5),
    ],
)
def test_load_when_the_file_says_nonsense_begins_with_nothing(path: Path, text: str) -> None:
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    process = Process(path, at=1.0)
    assert not process.memory.in_doubt()
    process.memory.silent(S0, KIND, 1.0)
    process.file.save()
    assert Process(path, at=2.0).is_doubtful()


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=15,
)


@given(servers=st.dictionaries(st.text(max_size=5), JSON, max_size=4) | JSON)
def test_load_when_it_says_anything_about_servers_never_fails(tmp_path_factory: Any, servers: object) -> None:
    path = tmp_path_factory.mktemp("node") / "server_memory.json"
    path.write_text(json.dumps({"saved_at": 1_700_000_000.0, "format": 1, "servers": servers}))
    process = Process(path)
    process.memory.export(process.clock.now())


def test_file_when_it_can_be_neither_read_nor_written_is_none(tmp_path: Path) -> None:
    (tmp_path / "a directory").mkdir()
    for path in (tmp_path / "a directory", tmp_path / "missing" / "x.json", Path(os.devnull) / "x"):
        process = Process(path)
        process.memory.silent(S0, KIND, 0.0)
        process.file.save()
        assert process.is_doubtful()


def test_load_when_the_file_is_a_pipe_does_not_wait(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert not Process(tmp_path / "pipe").memory.in_doubt()


async def test_client_when_it_ends_tells_the_next_one_which_servers_were_silent(tmp_path: Path) -> None:
    from twisted.internet import reactor

    create_client(tmp_path / "node", NewClient(nickname="c"))

    def client() -> Client:
        return Client(open_directory(tmp_path / "node"), make_runtime(), reactor)

    first = client()
    first.memory.silent(S0, KIND, first.runtime.clock.now())
    await first.close()
    second = client()
    assert second.memory.is_doubtful(S0, KIND)
    await second.close()
