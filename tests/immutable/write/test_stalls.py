"""Distinguishing slow writes from stalled ones, and splitting writes into messages."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from grid.engine.lateness import WRITE_HOPELESS_S, WRITE_SLOWEST_RATE
from grid.immutable.share.requests import WriteShares
from grid.immutable.write.server_writes import split_writes
from grid.immutable.write.stalls import STALL_FACTOR, STALL_FLOOR_S, UNANSWERED_S, StallWatch
from grid.ports import ServerId, ShareNumber, ShareWrite


def write(server: str, size: int = 0) -> WriteShares:
    return WriteShares(server_id=ServerId(server), writes=[], size=size)


def test_stalls_when_others_were_answered_names_the_one_that_is_not() -> None:
    watch = StallWatch()
    fast, stuck = write("fast"), write("stuck")
    watch.sent(fast, 0.0)
    watch.sent(stuck, 0.0)
    watch.ended(fast, 0.1)
    assert watch.wake_at() == STALL_FLOOR_S
    assert watch.stalled(STALL_FLOOR_S - 0.1, blocked=True) == []
    assert watch.stalled(STALL_FLOOR_S, blocked=True) == [stuck]
    assert watch.stalled(STALL_FLOOR_S, blocked=False) == []


def test_stalls_when_everybody_is_slow_has_more_patience() -> None:
    watch = StallWatch()
    slow, slower = write("slow"), write("slower")
    watch.sent(slow, 0.0)
    watch.sent(slower, 0.0)
    watch.ended(slow, 2.0)
    assert watch.stalled(STALL_FACTOR * 2.0 - 0.1, blocked=True) == []
    assert watch.stalled(STALL_FACTOR * 2.0, blocked=True) == [slower]


def test_stalls_when_nothing_was_answered_yet_waits_longer() -> None:
    watch = StallWatch()
    stuck = write("stuck")
    watch.sent(stuck, 0.0)
    assert watch.stalled(UNANSWERED_S - 0.1, blocked=True) == []
    assert watch.stalled(UNANSWERED_S, blocked=True) == [stuck]


def test_stalls_when_another_write_is_in_time_waits_for_that_first() -> None:
    watch = StallWatch()
    done, stuck, new = write("done"), write("stuck"), write("new")
    watch.sent(done, 0.0)
    watch.sent(stuck, 0.0)
    watch.ended(done, 0.1)
    watch.sent(new, 8.0)
    assert watch.stalled(8.5, blocked=True) == []
    watch.ended(new, None)
    assert watch.stalled(8.5, blocked=True) == [stuck]


def test_stalls_when_a_write_is_hopeless_names_it_whatever_else_goes_on() -> None:
    watch = StallWatch()
    stuck, new = write("stuck", size=200_000), write("new")
    watch.sent(stuck, 0.0)
    end = WRITE_HOPELESS_S + 200_000 / WRITE_SLOWEST_RATE
    watch.sent(new, end - 1)
    assert not watch.hopeless(stuck, end - 0.1)
    assert watch.stalled(end, blocked=False) == [stuck]


def test_stalls_when_nothing_is_outstanding_never_wakes() -> None:
    watch = StallWatch()
    assert watch.wake_at() is None
    done = write("done")
    watch.sent(done, 0.0)
    watch.ended(done, 1.0)
    watch.ended(done, 1.0)
    assert watch.wake_at() is None


@given(
    shares=st.lists(st.lists(st.binary(min_size=1, max_size=30), min_size=1, max_size=4), min_size=1, max_size=5),
    limit=st.integers(1, 50),
)
def test_split_when_writes_are_large_gives_the_same_bytes_in_messages_within_the_limit(
    shares: list[list[bytes]], limit: int
) -> None:
    writes = [ShareWrite(ShareNumber(number), 100, pieces) for number, pieces in enumerate(shares)]
    messages = split_writes(writes, limit)
    rebuilt = {number: bytearray(b"?" * 100) for number in range(len(shares))}
    for message in messages:
        assert 0 < sum(part.size for part in message) <= limit
        for part in message:
            assert part.offset == len(rebuilt[part.share_number])
            for piece in part.pieces:
                rebuilt[part.share_number] += piece
    for number, pieces in enumerate(shares):
        assert rebuilt[number][100:] == b"".join(pieces)
    assert len(messages) == -(-sum(write.size for write in writes) // limit)
