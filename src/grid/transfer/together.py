"""Small files that are read and stored many at a time, so that each costs little beside its contents.

A file that cannot be read or stored with the others is sent by itself, which tells what is wrong. A kill loses at most
the groups that are in transit. Cost: one call on a thread at either end for each group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from grid.transfer.body import COPIES, Flow
from grid.transfer.digest import digest_of_bytes
from grid.transfer.ends import Entry, SmallSource, SmallTarget, SourceEnd, TargetEnd, cancelled_as_error
from grid.transfer.rates import let_pass
from grid.values import frozen

GROUP_COUNT = 32
"""Files of a group. There are as many groups in transit as there are transfers, so folders of some hundred files still
keep all of them busy.
"""
GROUP_BYTES = 2**20
"""Bytes of a group, unless a single file is larger."""


@frozen
class Sent:
    """A file of a group whose contents the target has. token: from the target. digest: of the contents."""

    entry: Entry
    token: str
    digest: str


class Together:
    """Sends groups of small files from one source."""

    def __init__(self, source: SourceEnd, target: TargetEnd, flow: Flow, scratch: Callable[[str], str]) -> None:
        """scratch: returns the name of a file's incomplete contents at the target."""
        self._source = source if isinstance(source, SmallSource) and not source.gives_shortcuts(target) else None
        self._target = target if isinstance(target, SmallTarget) else None
        self._flow, self._scratch, self._memory_of = flow, scratch, target.memory_of

    def groups(self, entries: Sequence[Entry]) -> Iterator[Sequence[Entry]]:
        """Yield the files in groups, and by themselves those that do not belong into any."""
        group: list[Entry] = []
        size = 0
        for entry in entries:
            if not self._takes(entry):
                yield [entry]
                continue
            group.append(entry)
            size += entry.size or 0
            if len(group) >= GROUP_COUNT or size >= GROUP_BYTES:
                yield group
                group, size = [], 0
        if group:
            yield group

    def memory_of(self, group: Sequence[Entry]) -> int:
        """Bytes that a group holds."""
        return sum(COPIES * (entry.size or 0) + self._memory_of(entry.size or 0) for entry in group)

    async def send(self, group: Sequence[Entry]) -> tuple[list[Sent], list[Entry]]:
        """Send a group; return what was sent, and the files to send by themselves.

        Raises what the ends raise if they can do nothing at all.
        """
        assert self._source is not None and self._target is not None
        with cancelled_as_error(group[0].name):
            contents = await self._source.read_together(group)
            files = [
                (entry, data)
                for entry, data in zip(group, contents, strict=True)
                if data is not None and len(data) == entry.size
            ]
            await self._count(sum(len(data) for _, data in files))
            tokens = await self._target.store_together(files, self._scratch)
        sent = [
            Sent(entry, token, digest_of_bytes(self._flow.digest_key, data))
            for (entry, data), token in zip(files, tokens, strict=True)
            if token is not None
        ]
        done = {each.entry.name for each in sent}
        return sent, [entry for entry in group if entry.name not in done]

    def _takes(self, entry: Entry) -> bool:
        if self._source is None or self._target is None or entry.size is None:
            return False
        return self._target.stores_together(entry.size) and self._source.reads_together(entry)

    async def _count(self, size: int) -> None:
        self._flow.advance(size)
        await let_pass(self._flow.slow, size)
