"""Runs as a process: transfers of very many files that no disk has, and prints what they took.

    python -m tests.transfer.long_transfer JOURNAL COUNT

Each file is stored under a token, and then put into its place. One JSON line for each run: what it did, and by how many bytes the peak of
the process has grown since a transfer of a few files.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path

from grid.errors import GridError
from grid.ports import Buffer
from grid.transfer.ends import Entry, LeftOut
from grid.transfer.engine import Transfer
from grid.transfer.journal import STORED, Journal
from grid.transfer.local_end import LocalEnd
from grid.transfer.outcome import Plan

FEW = 2000


class NumberedSource(LocalEnd):
    """A source of empty files."""

    def __init__(self, count: int) -> None:
        super().__init__("/numbered")
        self.count = count

    async def entries(self) -> AsyncIterator[Entry | LeftOut]:
        for number in range(self.count):
            yield Entry(name=f"folder/file-{number:07}", size=0, mtime_ns=10**18)

    async def read_together(self, entries: Sequence[Entry]) -> Sequence[Buffer | None]:
        return [b""] * len(entries)


class CountingTarget(LocalEnd):
    """A target that counts what it is given. fails: whether nothing can be put into its place."""

    def __init__(self, held: int = 0) -> None:
        super().__init__("/counting")
        self.held, self.removed, self.fails = held, 0, False

    async def entries(self) -> AsyncIterator[Entry | LeftOut]:
        for number in range(self.held):
            yield Entry(name=f"folder/file-{number:07}", size=0, mtime_ns=10**18)

    async def store_together(
        self, files: Sequence[tuple[Entry, Buffer]], scratch: Callable[[str], str]
    ) -> Sequence[str | None]:
        return ["URI:token"] * len(files)

    async def settle(self, stored: Sequence[tuple[Entry, str]]) -> Mapping[str, GridError]:
        if self.fails:
            return {entry.name: GridError("it cannot be linked") for entry, _ in stored}
        self.held += len(stored)
        return {}

    async def remove(self, name: str) -> None:
        self.removed += 1


def peak() -> int:
    """The most memory of this process, in bytes."""
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) * 1024


async def run(journal: Path, count: int, target: CountingTarget, plan: Plan) -> dict[str, int]:
    """One run, and what it did."""
    opened = Journal(journal)
    try:
        done = await Transfer([NumberedSource(count)], target, opened, plan).run()
        return {
            "copied": done.copied, "unchanged": done.unchanged, "failed": len(done.failures), "removed": done.removed,
            "linked": done.linked, "waiting": opened.count(STORED),
        }  # fmt: skip
    finally:
        opened.close()


async def main(journal: Path, count: int) -> None:
    """A transfer whose files cannot be put into place, the next one, which does that, and a mirror that removes all but a few."""
    for number, name in ((FEW, "few"), (count, "many")):
        target, place = CountingTarget(), journal.with_name(f"{name}.sqlite")
        began = peak()
        for fails, wanted in ((True, number), (False, number), (False, number), (False, FEW // 2)):
            target.fails = fails
            done = await run(place, wanted, target, Plan(transfers=4, retries=0, delete=wanted < number))
            if number == count:
                print(json.dumps({**done, "grown": peak() - began}))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
