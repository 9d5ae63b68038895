"""Large files whose transfer was killed midway: where the next one continues."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path

import psutil
import pytest
from attrs import evolve
from twisted.internet.defer import CancelledError

from grid.directory.file_store import FileStore
from grid.errors import ConflictingWriteError, NoSpaceError, NotHappyError
from grid.node.directory import open_directory
from grid.node.local_grid import LocalGrid
from grid.node.running import find_running
from grid.transfer.ends import KeptPart, NoParts, PassingError, SourceChangedError
from grid.transfer.grid_resuming import DIGEST, Resumption
from tests.cli.command import new_directory
from tests.support.tree_grid import TreeGrid
from tests.transfer.end_contract import BytesBody
from tests.transfer.killed_transfer import Killable, killable_transfers

SIZE = 32 * 2**20
PARTS = 8
"""Parts in which a file of this size is read, and noted, for shares on five servers of which one suffices."""

EXPANSION = 5


@pytest.fixture
def transfers() -> Iterator[Killable]:
    """A process that runs transfers."""
    with killable_transfers({}) as running:
        yield running


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder with one large file."""
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "large").write_bytes(os.urandom(SIZE))
    return folder


def bytes_written(local: LocalGrid) -> int:
    """What the storage nodes have written to files in all."""
    running = [find_running(path) for path in local.storages]
    return sum(psutil.Process(each.pid).io_counters().write_chars for each in running if each is not None)


def kill_and_go_on(
    local: LocalGrid, transfers: Killable, source: Path, folder: Path, client: Path | None = None
) -> int:
    """Kill a transfer when six of eight parts are noted, and run it again; bytes that servers wrote the second time."""
    target, journal = f"{new_directory(local.client)}:", folder / "state" / "journal.sqlite"
    client = client or local.client
    first = transfers.transfer(source, target, journal, client=client, fatal=2 * (PARTS - 2))
    assert first["killed"]
    assert journal.stat().st_mode & 0o777 == 0o600
    before = bytes_written(local)
    second = transfers.transfer(source, target, journal, client=client)
    written = bytes_written(local) - before
    assert (second["copied"], second["failures"]) == (1, [])
    transfers.transfer(target, folder / "back", folder / "back.sqlite", client=local.client)
    assert (folder / "back" / "large").read_bytes() == (source / "large").read_bytes()
    return written


def test_file_when_its_transfer_was_killed_resumes_where_servers_have_its_shares(
    local_grid: LocalGrid,
    transfers: Killable,
    source: Path,
    tmp_path: Path,
) -> None:
    assert 0.2 < kill_and_go_on(local_grid, transfers, source, tmp_path) / (EXPANSION * SIZE) < 0.6


def test_file_when_its_transfer_over_foolscap_was_killed_is_sent_again(
    local_grid: LocalGrid,
    transfers: Killable,
    source: Path,
    tmp_path: Path,
) -> None:
    """The shares that servers have begun end with the connection: nothing of them is left, nor in the way."""
    client = tmp_path / "client"
    shutil.copytree(local_grid.client, client, ignore=shutil.ignore_patterns("*.pid", "*.process"))
    for config in client.glob("*.cfg"):
        config.write_text(config.read_text().replace("[client]\n", "[client]\nforce_foolscap = true\n"))
    assert open_directory(client).settings.client.transport == "foolscap"

    written = kill_and_go_on(local_grid, transfers, source, tmp_path, client)

    assert 0.95 < written / (EXPANSION * SIZE) < 1.3


class Noted(NoParts):
    """Parts in memory."""

    def __init__(self) -> None:
        self.parts: list[KeptPart] = []

    def load(self) -> Sequence[KeptPart]:
        return list(self.parts)

    def keep(self, part: KeptPart) -> None:
        self.parts.append(part)

    def forget(self) -> None:
        self.parts.clear()


@pytest.fixture
def body() -> BytesBody:
    """A body whose parts are noted."""
    made = BytesBody(b"")
    made.parts = Noted()
    return made


@cache
def tree() -> TreeGrid:
    """The source of random bytes."""
    return TreeGrid(1)


def resume(body: BytesBody, k: int = 3) -> Resumption:
    """Another attempt, with k-of-n shares."""
    encoding = evolve(tree().encoding, k=k)
    return Resumption(body, FileStore(grid=evolve(tree().store.grid, encoding=encoding, convergence=None)))


def test_key_of_an_attempt_is_that_of_the_next_one_which_reads_the_same(body: BytesBody) -> None:
    first = resume(body)
    first.examine(0, b"one")
    first.examine(3, b"two")

    second = resume(body)
    second.examine(0, b"one")
    second.examine(3, b"two")
    second.examine(6, b"three")

    assert first.key == second.key and first.key is not None
    assert [part.offset for part in body.parts.load()] == [0, 3, 6]


@pytest.mark.parametrize(("offset", "data"), [(0, b"ONE"), (0, b"onetwo"), (2, b"et"), (3, b"TWO")])
def test_attempt_that_reads_something_else_ends_and_the_next_one_has_another_key(
    body: BytesBody, offset: int, data: bytes
) -> None:
    first = resume(body)
    first.examine(0, b"one")
    first.examine(3, b"two")
    second = resume(body)
    with pytest.raises(SourceChangedError) as caught:
        second.examine(offset, data)
    second.failed(caught.value)
    assert resume(body).key != first.key


def test_key_changes_if_the_shares_would_differ(body: BytesBody) -> None:
    first = resume(body)
    first.examine(0, b"one")
    assert resume(body, k=2).key != first.key


def test_key_that_an_earlier_version_recorded_with_other_digests_is_not_used_again(body: BytesBody) -> None:
    first = resume(body)
    first.examine(0, b"one")
    (part,) = body.parts.load()
    body.parts.forget()
    body.parts.keep(evolve(part, token=part.token.removesuffix(f" {DIGEST}"), digest=sha256(b"one").digest()))
    second = resume(body)
    assert second.key != first.key
    second.examine(0, b"one")
    assert [part.offset for part in body.parts.load()] == [0]


def test_digest_of_a_range_depends_on_its_key_and_place(body: BytesBody) -> None:
    first = resume(body)
    first.examine(0, b"same")
    first.examine(4, b"same")
    digests = [part.digest for part in body.parts.load()]
    body.parts.forget()
    resume(body).examine(0, b"same")
    digests += [part.digest for part in body.parts.load()]
    assert len(set(digests)) == 3 and all(len(digest) == 16 for digest in digests)


@pytest.mark.parametrize(
    ("error", "keeps"),
    [
        (NotHappyError("x", reached=0, happy=1), True),
        (PassingError("x"), True),
        (CancelledError(), True),
        (asyncio.CancelledError(), True),
        (SourceChangedError("x"), False),
        (NotHappyError("x", causes=[ConflictingWriteError("y")], reached=0, happy=1), False),
        (NotHappyError("x", causes=[NoSpaceError("y")], reached=0, happy=1), False),
        (ValueError(), False),
    ],
)
def test_key_is_kept_only_after_errors_that_may_pass(body: BytesBody, error: BaseException, keeps: bool) -> None:
    attempt = resume(body)
    attempt.examine(0, b"one")
    attempt.failed(error)
    assert (resume(body).key == attempt.key) is keeps
