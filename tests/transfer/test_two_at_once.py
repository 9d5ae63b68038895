"""Two processes that send to one target at the same time: what only one of them has arrives, and what both have is one of the two."""

from __future__ import annotations

import os
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from grid.node.local_grid import LocalGrid
from tests.cli.command import new_directory
from tests.transfer.conftest import BUCKET
from tests.transfer.killed_transfer import Killable, killable_transfers

PART_SIZE = 5 * 2**20
TIMES_NS = (1_500_000_000 * 10**9, 1_600_000_000 * 10**9)
"""When the files of each source were changed last."""

Found = dict[str, tuple[bytes, int]]


def files_in(folder: Path) -> Found:
    """Contents and time of every file below a directory."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def make_source(folder: Path, number: int, large: int) -> Path:
    """A folder with files that only it has, and files that the other one has too, with other contents and another time.

    large: bytes of the largest.
    """
    (folder / "deep").mkdir(parents=True)
    for name in ("small", f"mine-{number}", f"deep/mine-{number}"):
        (folder / name).write_bytes(os.urandom(3000))
    (folder / "deep" / "large").write_bytes(os.urandom(large))
    for path in folder.rglob("*"):
        os.utime(path, ns=(TIMES_NS[number], TIMES_NS[number]))
    return folder


@pytest.mark.parametrize("kind", ["local", "sftp", "s3", "grid", "packs"])
def test_two_transfers_when_they_send_to_one_target_at_once_both_arrive(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    client: Path | None = None
    environment: dict[str, str] = {}
    large = PART_SIZE + 2**20 if kind == "s3" else 2**20
    if kind == "s3":
        environment, target = request.getfixturevalue("s3"), f"s3://{BUCKET}/{uuid.uuid4()}"
    elif kind in ("local", "sftp"):
        target = f"{tmp_path}/there"
        (tmp_path / "there").mkdir()
        if kind == "sftp":
            url, home = request.getfixturevalue("sftp")
            environment, target = {"HOME": str(home)}, f"{url}{target}"
    else:
        local: LocalGrid = request.getfixturevalue("local_grid")
        client, target = local.client, f"{new_directory(local.client)}:new"
    sources = [make_source(tmp_path / f"source-{number}", number, large) for number in range(2)]

    def send(transfers: Killable, source: str | Path, target: str | Path, name: str) -> dict[str, Any]:
        journal = tmp_path / "state" / name
        return transfers.transfer(source, target, journal, client=client, packs=kind == "packs", part_size=PART_SIZE)

    with ExitStack() as stack:
        both = [stack.enter_context(killable_transfers(environment)) for _ in range(2)]
        with ThreadPoolExecutor(2) as threads:
            sent = [
                threads.submit(send, transfers, source, target, f"{source.name}.sqlite")
                for transfers, source in zip(both, sources, strict=True)
            ]
        assert [each.result()["failures"] for each in sent] == [[], []]
        send(both[0], target, tmp_path / "back", "back.sqlite")

    found, wanted = files_in(tmp_path / "back"), [files_in(source) for source in sources]
    assert set(found) == {*wanted[0], *wanted[1]}
    for name, file in found.items():
        assert file in (wanted[0].get(name), wanted[1].get(name)), name
