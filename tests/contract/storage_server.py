"""What every StorageServer does, whatever its implementation.

Derive a test class that overrides the fixture `server`, in a module named test_*. The server may be shared by
the tests of the class, and may be a real one of Tahoe-LAFS 1.20: each test uses storage indexes of its own.
[spec storage-server 6-9]
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import pytest

from grid.errors import BadWriteEnablerError, ConflictingWriteError, DataTooLargeError, GridError
from grid.ports import (
    Buffer,
    LeaseSecrets,
    NewShares,
    Range,
    ShareNumber,
    ShareWrite,
    SlotSecrets,
    StorageIndex,
    StorageServer,
    TestWrite,
    Upload,
)

WHOLE: Range = (0, 2**20)


def fresh_index() -> StorageIndex:
    """A storage index that nobody has used."""
    return StorageIndex(os.urandom(16))


def lease(letter: bytes = b"r") -> LeaseSecrets:
    """The secrets of a client of that name."""
    return LeaseSecrets(renew=letter * 32, cancel=letter.upper() * 32)


def slot_secrets(enabler: bytes = b"w", letter: bytes = b"r") -> SlotSecrets:
    """The secrets of a client with that write enabler."""
    return SlotSecrets(write_enabler=enabler * 32, lease=lease(letter))


def share_numbers(*numbers: int) -> frozenset[ShareNumber]:
    """Those share numbers."""
    return frozenset(map(ShareNumber, numbers))


def piece(number: int, offset: int, *data: Buffer) -> ShareWrite:
    """Data for one share."""
    return ShareWrite(ShareNumber(number), offset, data)


def vector(
    *writes: tuple[int, bytes], tests: Sequence[tuple[int, int, bytes]] = (), new_length: int | None = None
) -> TestWrite:
    """What to do to one mutable share."""
    return TestWrite(tests=tests, writes=writes, new_length=new_length)


def plain(found: Mapping[ShareNumber, Sequence[Buffer]]) -> dict[int, list[bytes]]:
    """An answer in plain types."""
    return {int(number): [bytes(data) for data in pieces] for number, pieces in found.items()}


async def begin(
    server: StorageServer, index: StorageIndex, numbers: Sequence[int], size: int, *, owner: bytes = b"r"
) -> Upload:
    """An upload of all those shares."""
    allocation = await server.allocate(index, lease(owner), share_numbers(*numbers), size)
    assert allocation.upload.share_numbers == share_numbers(*numbers)
    return allocation.upload


async def put(server: StorageServer, index: StorageIndex, shares: Mapping[int, bytes]) -> None:
    """Store those shares, all of one size."""
    upload = await begin(server, index, list(shares), len(next(iter(shares.values()))))
    await upload.write([piece(number, 0, data) for number, data in shares.items()])
    await upload.close(share_numbers(*shares))


def whole(index: StorageIndex, shares: Mapping[int, bytes], *, owner: bytes = b"r") -> NewShares:
    """Those shares, whole, each in two pieces."""
    pieces = {ShareNumber(number): (data[:1], data[1:]) for number, data in shares.items()}
    return NewShares(storage_index=index, secrets=lease(owner), shares=pieces)


async def slot(server: StorageServer, index: StorageIndex) -> dict[int, bytes]:
    """All mutable shares of the index."""
    found = plain(await server.read_slot(index, frozenset(), [WHOLE]))
    return {number: data for number, (data,) in found.items()}


class StorageServerContract:
    """The suite. What derives it has a fixture `server`: ready for calls, and with at least 100 MB of room."""

    async def test_identity_when_asked_twice_is_the_same(self, server: StorageServer) -> None:
        assert server.identity == server.identity
        assert len(server.identity.lease_seed) == 20

    async def test_version_when_asked_reports_the_free_space(self, server: StorageServer) -> None:
        version = await server.get_version()
        assert version.application
        assert version.maximum_immutable_share_size > 10**8
        assert version.available_space > 10**8
        assert version.maximum_mutable_share_size > 10**8
        assert version.tolerates_read_overrun
        assert version.is_read_only in (None, False)

    async def test_reads_when_the_index_is_unknown_are_empty(self, server: StorageServer) -> None:
        index = fresh_index()
        assert plain(await server.find_shares(index)) == {}
        assert plain(await server.find_shares(index, [WHOLE])) == {}
        assert plain(await server.read_shares(index, {ShareNumber(0): [WHOLE]})) == {}
        assert plain(await server.read_slot(index, frozenset(), [WHOLE])) == {}
        await server.add_lease(index, lease())

    async def test_shares_when_closed_are_found_and_read(self, server: StorageServer) -> None:
        index = fresh_index()
        await put(server, index, {0: b"first share", 7: b"other share"})
        assert set(await server.find_shares(index)) == {0, 7}
        assert plain(await server.find_shares(index, [(0, 5), (6, 100)])) == {
            0: [b"first", b"share"],
            7: [b"other", b"share"],
        }
        wants = {ShareNumber(7): [(1, 3), (0, 11)], ShareNumber(8): [(0, 1)]}
        assert plain(await server.read_shares(index, wants)) == {7: [b"the", b"other share"]}

    async def test_ranges_when_at_or_past_the_end_are_cut_short(self, server: StorageServer) -> None:
        index = fresh_index()
        await put(server, index, {3: b"0123456789"})
        wants = {ShareNumber(3): [(8, 2), (8, 3), (9, 1), (10, 1), (11, 5), (5000, 1000), (4, 0)]}
        expected = [b"89", b"89", b"9", b"", b"", b"", b""]
        assert plain(await server.read_shares(index, wants)) == {3: expected}

    async def test_shares_when_not_closed_are_invisible(self, server: StorageServer) -> None:
        index = fresh_index()
        upload = await begin(server, index, [1, 2], 4)
        await upload.write([piece(1, 0, b"done"), piece(2, 0, b"half")])
        assert plain(await server.find_shares(index)) == {}
        await upload.close(share_numbers(1))
        assert set(await server.find_shares(index)) == {1}
        assert plain(await server.read_shares(index, {ShareNumber(2): [WHOLE]})) == {}
        await upload.abort()
        assert set(await server.find_shares(index)) == {1}

    async def test_allocation_when_shares_are_held_names_all_of_them(self, server: StorageServer) -> None:
        index = fresh_index()
        await put(server, index, {0: b"aa", 1: b"bb"})
        allocation = await server.allocate(index, lease(b"s"), share_numbers(1, 2), 2)
        assert allocation.already == {0, 1}
        assert allocation.upload.share_numbers == {2}
        await allocation.upload.abort()

    async def test_allocation_when_nothing_is_asked_for_takes_nothing(self, server: StorageServer) -> None:
        index = fresh_index()
        await put(server, index, {4: b"aa"})
        allocation = await server.allocate(index, lease(b"s"), frozenset(), 2)
        assert allocation.already == {4}
        assert allocation.upload.share_numbers == frozenset()
        await allocation.upload.abort()

    async def test_allocation_when_a_share_is_being_uploaded_has_it_in_neither_set(self, server: StorageServer) -> None:
        index = fresh_index()
        upload = await begin(server, index, [0], 2)
        allocation = await server.allocate(index, lease(b"s"), share_numbers(0, 1), 2)
        assert allocation.already == frozenset()
        assert allocation.upload.share_numbers == {1}
        await allocation.upload.abort()
        await upload.abort()

    async def test_allocation_when_there_is_no_room_takes_nothing(self, server: StorageServer) -> None:
        index = fresh_index()
        allocation = await server.allocate(index, lease(), share_numbers(0, 1), 2**60)
        assert allocation.already == frozenset()
        assert allocation.upload.share_numbers == frozenset()
        assert plain(await server.find_shares(index)) == {}

    async def test_upload_when_aborted_leaves_room_for_the_same_shares(self, server: StorageServer) -> None:
        index = fresh_index()
        upload = await begin(server, index, [0, 1], 5)
        await upload.write([piece(0, 0, b"wrong"), piece(1, 0, b"wrong")])
        await upload.abort(share_numbers(0))
        await upload.abort()
        await upload.abort()
        await put(server, index, {0: b"right"})
        assert plain(await server.find_shares(index, [WHOLE])) == {0: [b"right"]}

    async def test_abort_when_closed_does_nothing(self, server: StorageServer) -> None:
        index = fresh_index()
        upload = await begin(server, index, [0], 4)
        await upload.write([piece(0, 0, b"kept")])
        await upload.close(share_numbers(0))
        await upload.abort(share_numbers(0))
        await upload.abort()
        assert plain(await server.find_shares(index, [WHOLE])) == {0: [b"kept"]}

    async def test_writes_when_in_any_order_and_repeated_make_one_share(self, server: StorageServer) -> None:
        index = fresh_index()
        upload = await begin(server, index, [0], 10)
        await upload.write([piece(0, 6, b"67", b"89")])
        await upload.write([piece(0, 0, b"012"), piece(0, 2, memoryview(b"2345")), piece(0, 4, bytearray(b"4567"))])
        await upload.close(share_numbers(0))
        assert plain(await server.find_shares(index, [WHOLE])) == {0: [b"0123456789"]}

    async def test_bytes_when_never_written_are_zeros(self, server: StorageServer) -> None:
        index = fresh_index()
        upload = await begin(server, index, [0, 1], 6)
        await upload.write([piece(0, 2, b"ab")])
        await upload.close(share_numbers(0, 1))
        assert plain(await server.find_shares(index, [WHOLE])) == {0: [b"\0\0ab\0\0"], 1: [bytes(6)]}

    async def test_write_when_it_contradicts_an_earlier_one_is_refused(self, server: StorageServer) -> None:
        index = fresh_index()
        upload = await begin(server, index, [0], 10)
        await upload.write([piece(0, 2, b"23456")])
        with pytest.raises(ConflictingWriteError):
            await upload.write([piece(0, 0, b"01", b"2X")])
        await upload.abort()
        assert plain(await server.find_shares(index)) == {}

    async def test_write_when_past_the_end_is_refused(self, server: StorageServer) -> None:
        index = fresh_index()
        upload = await begin(server, index, [0], 10)
        with pytest.raises(DataTooLargeError):
            await upload.write([piece(0, 8, b"891")])
        await upload.abort()

    async def test_upload_when_over_takes_neither_writes_nor_close(self, server: StorageServer) -> None:
        index = fresh_index()
        upload = await begin(server, index, [0, 1], 2)
        await upload.close(share_numbers(0))
        await upload.abort(share_numbers(1))
        for number in (0, 1):
            with pytest.raises(GridError):
                await upload.write([piece(number, 0, b"xx")])
            with pytest.raises(GridError):
                await upload.close(share_numbers(number))
        assert plain(await server.find_shares(index, [WHOLE])) == {0: [b"\0\0"]}

    async def test_upload_when_large_comes_back_byte_for_byte(self, server: StorageServer) -> None:
        index = fresh_index()
        data = os.urandom(3 * 2**20 + 17)
        upload = await begin(server, index, [0, 9], len(data))
        view, step = memoryview(data), 2**19 + 1
        for start in range(0, len(data), step):
            pieces = [view[begin : begin + 65536] for begin in range(start, min(start + step, len(data)), 65536)]
            pieces[-1] = pieces[-1][: min(start + step, len(data)) - (start + 65536 * (len(pieces) - 1))]
            await upload.write([piece(0, start, *pieces), piece(9, start, *pieces)])
        await upload.close(share_numbers(0, 9))
        half = len(data) // 2
        wants = {ShareNumber(0): [(0, half), (half, half + 1)], ShareNumber(9): [(half, half + 1), (1, 9)]}
        found = plain(await server.read_shares(index, wants))
        assert found == {0: [data[:half], data[half:]], 9: [data[half:], data[1:10]]}

    async def test_upload_when_of_empty_shares_stores_empty_shares(self, server: StorageServer) -> None:
        index = fresh_index()
        upload = await begin(server, index, [5], 0)
        await upload.close(share_numbers(5))
        assert plain(await server.find_shares(index, [WHOLE])) == {5: [b""]}

    async def test_shares_when_many_are_closed_at_once_are_all_there(self, server: StorageServer) -> None:
        index = fresh_index()
        shares = {number: b"share %d" % (100 + number) for number in range(20)}
        await put(server, index, shares)
        assert plain(await server.find_shares(index, [WHOLE])) == {number: [data] for number, data in shares.items()}

    async def test_leases_when_added_leave_the_shares_as_they_are(self, server: StorageServer) -> None:
        index, other = fresh_index(), fresh_index()
        await put(server, index, {0: b"sample", 1: b"others"})
        await server.test_and_write(other, slot_secrets(), {ShareNumber(2): vector((0, b"slot"))})
        for letter in (b"a", b"b", b"c", b"d", b"e", b"a", b"b"):
            await server.add_lease(index, lease(letter))
            await server.add_lease(other, lease(letter))
        assert plain(await server.find_shares(index, [WHOLE])) == {0: [b"sample"], 1: [b"others"]}
        assert await slot(server, other) == {2: b"slot"}

    async def test_corruption_report_when_the_share_is_held_or_not_is_accepted(self, server: StorageServer) -> None:
        index, other = fresh_index(), fresh_index()
        await put(server, index, {0: b"sample"})
        await server.test_and_write(other, slot_secrets(), {ShareNumber(0): vector((0, b"slot"))})
        await server.advise_corrupt("immutable", index, ShareNumber(0), "a block’s hash is wrong")
        await server.advise_corrupt("mutable", other, ShareNumber(0), "a signature is wrong")
        await server.advise_corrupt("immutable", fresh_index(), ShareNumber(3), "never seen")

    async def test_slot_when_it_grows_by_large_pieces_holds_them_all(self, server: StorageServer) -> None:
        """As a large file arrives: each piece behind the last, tests at the front, finally the front and the length."""
        index, expected = fresh_index(), b"\xff" + bytes(40)
        await server.test_and_write(index, slot_secrets(), {ShareNumber(3): vector((0, expected))})
        for number in range(6):
            piece_of = bytes([number]) * 70_000
            change = vector((len(expected), piece_of), tests=[(0, 41, expected[:41])])
            assert (await server.test_and_write(index, slot_secrets(), {ShareNumber(3): change})).passed
            expected += piece_of
            assert await slot(server, index) == {3: expected}
        stale = vector((len(expected), b"late"), tests=[(0, 1, b"\x01")])
        assert not (await server.test_and_write(index, slot_secrets(), {ShareNumber(3): stale})).passed
        expected = b"\x01" + expected[1:] + b"the hashes"
        ends = vector((0, b"\x01"), (len(expected) - 10, b"the hashes"), new_length=len(expected))
        assert (await server.test_and_write(index, slot_secrets(letter=b"s"), {ShareNumber(3): ends})).passed
        assert await slot(server, index) == {3: expected}

    async def test_slot_when_written_is_read_back(self, server: StorageServer) -> None:
        index = fresh_index()
        writes = {ShareNumber(0): vector((0, b"zero"), (4, b" and more")), ShareNumber(3): vector((0, b"three"))}
        answer = await server.test_and_write(index, slot_secrets(), writes, [WHOLE])
        assert answer.passed
        assert plain(answer.data) == {}
        assert await slot(server, index) == {0: b"zero and more", 3: b"three"}
        ranges = [(1, 2), (4, 100), (50, 1)]
        assert plain(await server.read_slot(index, share_numbers(3, 9), ranges)) == {3: [b"hr", b"e", b""]}

    async def test_slot_when_a_test_fails_stays_as_it_is_and_is_read(self, server: StorageServer) -> None:
        index = fresh_index()
        await server.test_and_write(
            index, slot_secrets(), {ShareNumber(0): vector((0, b"old")), ShareNumber(1): vector((0, b"one"))}
        )
        for tests in ([(0, 3, b"new")], [(0, 3, b"old"), (1, 1, b"")], [(0, 4, b"old!")], [(5, 1, b"x")]):
            writes = {ShareNumber(0): vector((0, b"new"), tests=tests), ShareNumber(2): vector((0, b"two"))}
            answer = await server.test_and_write(index, slot_secrets(), writes, [(1, 9), (0, 1)])
            assert not answer.passed
            assert plain(answer.data) == {0: [b"ld", b"o"], 1: [b"ne", b"o"]}
        assert await slot(server, index) == {0: b"old", 1: b"one"}

    async def test_slot_when_tests_hold_is_written_and_answers_with_what_was(self, server: StorageServer) -> None:
        index = fresh_index()
        await server.test_and_write(
            index, slot_secrets(), {ShareNumber(0): vector((0, b"version one"), tests=[(0, 1, b"")])}
        )
        tests = [(0, 7, b"version"), (8, 100, b"one"), (11, 5, b""), (3, 0, b"")]
        writes = {ShareNumber(0): vector((8, b"two"), tests=tests), ShareNumber(1): vector(tests=[(0, 9, b"")])}
        answer = await server.test_and_write(index, slot_secrets(), writes, [(8, 3)])
        assert answer.passed
        assert plain(answer.data) == {0: [b"one"]}
        assert await slot(server, index) == {0: b"version two", 1: b""}

    async def test_slot_when_written_past_its_end_has_zeros_between(self, server: StorageServer) -> None:
        index = fresh_index()
        await server.test_and_write(index, slot_secrets(), {ShareNumber(0): vector((0, b"0123456789"))})
        await server.test_and_write(index, slot_secrets(), {ShareNumber(0): vector(new_length=4)})
        assert await slot(server, index) == {0: b"0123"}
        await server.test_and_write(index, slot_secrets(), {ShareNumber(0): vector((8, b"89"), new_length=20)})
        assert await slot(server, index) == {0: b"0123\0\0\0\089"}
        await server.test_and_write(index, slot_secrets(), {ShareNumber(0): vector((12, b""))})
        assert await slot(server, index) == {0: b"0123\0\0\0\089\0\0"}

    async def test_slot_when_cut_to_nothing_is_gone(self, server: StorageServer) -> None:
        index = fresh_index()
        await server.test_and_write(
            index, slot_secrets(), {ShareNumber(0): vector((0, b"zero")), ShareNumber(1): vector((0, b"one"))}
        )
        writes = {ShareNumber(0): vector((0, b"ignored"), new_length=0), ShareNumber(5): vector(new_length=0)}
        answer = await server.test_and_write(index, slot_secrets(), writes, [WHOLE])
        assert answer.passed
        assert plain(answer.data) == {0: [b"zero"], 1: [b"one"]}
        assert await slot(server, index) == {1: b"one"}
        await server.test_and_write(index, slot_secrets(), {ShareNumber(1): vector(new_length=0)})
        assert await slot(server, index) == {}
        await server.test_and_write(index, slot_secrets(b"v"), {ShareNumber(1): vector((0, b"anew"))})
        assert await slot(server, index) == {1: b"anew"}

    async def test_slot_when_the_write_enabler_is_wrong_stays_as_it_is(self, server: StorageServer) -> None:
        index = fresh_index()
        await server.test_and_write(index, slot_secrets(b"w"), {ShareNumber(0): vector((0, b"mine"))})
        attempts: list[dict[ShareNumber, TestWrite]] = [
            {ShareNumber(0): vector((0, b"theirs"))},
            {ShareNumber(0): vector(new_length=0)},
            {ShareNumber(1): vector((0, b"theirs"))},
            {},
        ]
        for attempt in attempts:
            with pytest.raises(BadWriteEnablerError, match="The write enabler was recorded by nodeid '"):
                await server.test_and_write(index, slot_secrets(b"x"), attempt, [WHOLE])
        assert await slot(server, index) == {0: b"mine"}

    async def test_slot_when_only_read_through_its_write_call_changes_nothing(self, server: StorageServer) -> None:
        index = fresh_index()
        assert plain((await server.test_and_write(index, slot_secrets(), {}, [WHOLE])).data) == {}
        await server.test_and_write(index, slot_secrets(), {ShareNumber(0): vector((0, b"data"))})
        answer = await server.test_and_write(index, slot_secrets(letter=b"q"), {}, [(0, 2), (2, 2)])
        assert answer.passed
        assert plain(answer.data) == {0: [b"da", b"ta"]}

    async def test_indexes_when_different_do_not_meet(self, server: StorageServer) -> None:
        first, second = fresh_index(), fresh_index()
        await put(server, first, {0: b"first"})
        await put(server, second, {0: b"other"})
        assert plain(await server.find_shares(first, [WHOLE])) == {0: [b"first"]}
        assert plain(await server.find_shares(second, [WHOLE])) == {0: [b"other"]}
