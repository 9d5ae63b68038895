"""An in-memory storage server that lies about mutable slots: every lie that is possible without a write capability.

Unless it lies about writes too, it keeps what it is sent to write, so that its lies are as good as they can be. A lie that
changed an answer is counted in `fired`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

from twisted.internet.defer import Deferred

from grid.errors import FormatError, PeerGoneError
from grid.mutable.share.layout import parse_header
from grid.ports import Buffer, Clock, Range, ShareNumber, StorageIndex
from tests.support.lying_writes import WriteLiar

Slot = dict[int, bytes]
Lie = Callable[["LyingServer", StorageIndex, Slot, Sequence[Range]], Slot]

LATE_S = 2.5


class LyingServer(WriteLiar):
    """Tells the lie named, in answer to reads; None: the truth. Its write_lie it tells in answer to writes."""

    def __init__(self, name: str, clock: Clock, lie: str | None = None, seed: int = 0) -> None:
        super().__init__(name, clock)
        self.lie = lie
        self.random = random.Random(f"{name} {seed}")
        self.snapshots: dict[bytes, Slot] = {}
        self.other_file: Slot = {}
        self.question_count = 0

    def remember(self) -> None:
        """Save the present shares: rollbacks show them, and some lies about writes."""
        self.remembered = {n: bytes(d) for slot in self.slots.values() for n, d in slot.items()}
        self.snapshots = {index: {n: bytes(d) for n, d in slot.items()} for index, slot in self.slots.items()}

    async def read_slot(
        self, storage_index: StorageIndex, share_numbers: frozenset[ShareNumber], ranges: Sequence[Range]
    ) -> Mapping[ShareNumber, Sequence[Buffer]]:
        lie = LIES.get(self.lie or "")
        if lie is None:
            return await super().read_slot(storage_index, share_numbers, ranges)
        await self._enter("read_slot")
        self.question_count += 1
        honest = {number: bytes(data) for number, data in self.slots.get(storage_index, {}).items()}
        await self._hold_back(ranges)
        shown = lie(self, storage_index, dict(honest), ranges)
        if shown != honest:
            self.fired[self.lie or ""] += 1
        answer = {
            ShareNumber(number): [data[offset : offset + size] for offset, size in ranges]
            for number, data in shown.items()
            if not share_numbers or number in share_numbers
        }
        if self.lie == "pieces":
            self.fired["pieces"] += bool(answer)
            return {number: pieces + pieces if number % 2 else pieces[1:] for number, pieces in answer.items()}
        if self.lie == "unasked":
            self.fired["unasked"] += bool(share_numbers)
            return {ShareNumber(n): [d[o : o + s] for o, s in ranges] for n, d in shown.items()}
        return answer

    async def _hold_back(self, ranges: Sequence[Range]) -> None:
        """Lies by answering late, or never."""
        is_first = ranges[0] == (0, ranges[0][1]) and ranges[0][1] > 1000
        if self.lie == "late":
            self.fired["late"] += 1
            await self._clock.sleep(LATE_S)
        elif self.lie == "vanishing" and not is_first:
            self.fired["vanishing"] += 1
            raise PeerGoneError(f"server {self.identity.server_id} is gone")
        elif self.lie == "stalling" and not is_first:
            self.fired["stalling"] += 1
            await Deferred()


def _rollback(server: LyingServer, index: StorageIndex, slot: Slot, ranges: Sequence[Range]) -> Slot:
    return dict(server.snapshots.get(index, {}))


def _many_numbers(server: LyingServer, index: StorageIndex, slot: Slot, ranges: Sequence[Range]) -> Slot:
    """The newest share that it holds, under every number."""
    if not slot:
        return slot
    newest = max(slot.values(), key=_seqnum)
    return {number: slot.get(number, newest) for number in range(10)}


def _one_false_number(server: LyingServer, index: StorageIndex, slot: Slot, ranges: Sequence[Range]) -> Slot:
    return {(number + 1) % 10: data for number, data in slot.items()}


def _unsigned(server: LyingServer, index: StorageIndex, slot: Slot, ranges: Sequence[Range]) -> Slot:
    """A sequence number that nobody has signed."""
    return {number: data[:1] + (2**40).to_bytes(8, "big") + data[9:] for number, data in slot.items()}


def _unsigned_root(server: LyingServer, index: StorageIndex, slot: Slot, ranges: Sequence[Range]) -> Slot:
    return {number: data[:9] + server.random.randbytes(32) + data[41:] for number, data in slot.items()}


def _flipped(server: LyingServer, index: StorageIndex, slot: Slot, ranges: Sequence[Range]) -> Slot:
    """Bits in the fields behind the header, a different field at each question."""
    changed = {}
    for number, data in slot.items():
        spoiled = bytearray(data)
        try:
            _, table = parse_header(data)
        except FormatError:
            continue
        fields = [table.chain, table.block_tree, table.data, table.private_key, table.signature, table.public_key]
        offset, size = fields[(number + server.question_count) % len(fields)]
        if size:
            spoiled[offset + server.random.randrange(size)] ^= 0x40
        changed[number] = bytes(spoiled)
    return changed


def _flipped_data(server: LyingServer, index: StorageIndex, slot: Slot, ranges: Sequence[Range]) -> Slot:
    return {number: _xor(data, _data_offset(data)) for number, data in slot.items()}


def _offsets(server: LyingServer, index: StorageIndex, slot: Slot, ranges: Sequence[Range]) -> Slot:
    """Another place for the blocks, or for another field: the table is not signed."""
    return {number: _xor(data, 66 + 8 * server.random.randrange(5), 0x01) for number, data in slot.items()}


def _noise(server: LyingServer, index: StorageIndex, slot: Slot, ranges: Sequence[Range]) -> Slot:
    return {number: server.random.randbytes(3000) for number in [*slot, 0, 1]}


def _unknown_kind(server: LyingServer, index: StorageIndex, slot: Slot, ranges: Sequence[Range]) -> Slot:
    return {number: b"\x07" + server.random.randbytes(3000) for number in [*slot, 5]}


def _cut(server: LyingServer, index: StorageIndex, slot: Slot, ranges: Sequence[Range]) -> Slot:
    return {number: data[: server.random.randrange(len(data) + 1)] for number, data in slot.items()}


def _nothing(server: LyingServer, index: StorageIndex, slot: Slot, ranges: Sequence[Range]) -> Slot:
    return {}


def _alternating(server: LyingServer, index: StorageIndex, slot: Slot, ranges: Sequence[Range]) -> Slot:
    """The truth, an old version, and nothing, in turn."""
    return (slot, _rollback(server, index, slot, ranges), {})[server.question_count % 3]


def _other_file(server: LyingServer, index: StorageIndex, slot: Slot, ranges: Sequence[Range]) -> Slot:
    """The shares of a file of another key."""
    return {number: server.other_file.get(number, b"") for number in slot or server.other_file}


def _other_prefix(server: LyingServer, index: StorageIndex, slot: Slot, ranges: Sequence[Range]) -> Slot:
    """This file's shares with the signed front of another file's."""
    front = next(iter(server.other_file.values()), b"")[:107]
    return {number: front + data[107:] for number, data in slot.items()}


def _old_blocks(server: LyingServer, index: StorageIndex, slot: Slot, ranges: Sequence[Range]) -> Slot:
    """The front of the newest version, and the blocks of an older one."""
    old = server.snapshots.get(index, {})
    mixed = dict(slot)
    for number, data in slot.items():
        start = _data_offset(data)
        if number in old and old[number] != data:
            mixed[number] = data[:start] + old[number][start:]
    return mixed


def _high_numbers(server: LyingServer, index: StorageIndex, slot: Slot, ranges: Sequence[Range]) -> Slot:
    return {**slot, **{200 + number: data for number, data in slot.items()}}


def _data_offset(data: Buffer) -> int:
    try:
        return parse_header(data)[1].data[0]
    except FormatError:
        return 0


def _seqnum(data: Buffer) -> int:
    return int.from_bytes(bytes(data[1:9]), "big")


def _xor(data: bytes, offset: int, mask: int = 0x10) -> bytes:
    spoiled = bytearray(data)
    if offset < len(spoiled):
        spoiled[offset] ^= mask
    return bytes(spoiled)


def _truth(server: LyingServer, index: StorageIndex, slot: Slot, ranges: Sequence[Range]) -> Slot:
    return slot


LIES: Mapping[str, Lie] = {
    "rollback": _rollback,
    "many numbers": _many_numbers,
    "one false number": _one_false_number,
    "unsigned": _unsigned,
    "unsigned root": _unsigned_root,
    "flipped": _flipped,
    "flipped data": _flipped_data,
    "offsets": _offsets,
    "noise": _noise,
    "unknown kind": _unknown_kind,
    "cut": _cut,
    "nothing": _nothing,
    "alternating": _alternating,
    "other file": _other_file,
    "other prefix": _other_prefix,
    "old blocks": _old_blocks,
    "high numbers": _high_numbers,
    "pieces": _truth,
    "unasked": _truth,
    "late": _truth,
    "vanishing": _many_numbers,
    "stalling": _many_numbers,
}
"""What a server may say of its shares that is not so, by name."""
