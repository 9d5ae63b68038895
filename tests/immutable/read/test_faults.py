"""Reading from servers that fail, lie, forget or fall silent: right bytes or a clear error, never a hang."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grid.caps import ChkCap
from grid.errors import DamagedFileError, GridError, NoServersError, NotEnoughSharesError
from grid.immutable.share.layout import parse_header
from tests.support.depth import examples
from tests.support.scripted_grid import ScriptedGrid, noise
from tests.support.share_vectors import ShareVector, load_share_vectors

PATIENCE_S = 6.0
"""What silent servers may cost while enough others answer; several may fall silent one after the other."""

HOPELESS_S = 400.0
"""When everything has been given up, second chances included."""

SMALL, LARGE, OLD = 5_000, 2_500_000, 1_500_000
"""Whole shares come with the first answer; blocks are read by themselves; the guess of the layout is wrong."""


def laid(size: int, server_count: int = 10, n: int = 10, k: int = 3) -> tuple[ScriptedGrid, bytes, ChkCap]:
    grid = ScriptedGrid(server_count)
    data = noise(size)
    segment_size = 131072 if size == OLD else 2**20
    file = grid.store(data, k=k, n=n, segment_size=segment_size)
    return grid, data, file.cap


@pytest.mark.each_pair
@pytest.mark.parametrize("size", [SMALL, LARGE, OLD])
@pytest.mark.parametrize("fault", ["dead_from", "silent_from"])
@pytest.mark.parametrize("call", range(6))
def test_get_when_a_server_fails_at_its_nth_call_uses_others(size: int, fault: str, call: int) -> None:
    for victim in range(10):
        grid, data, cap = laid(size)
        grid.script(victim, **{fault: call})
        assert grid.get(cap) == data
        reached = len(grid.servers[victim].calls) > call
        assert bool(grid.servers[victim].fired[fault.removesuffix("_from")]) is reached
        assert grid.now < PATIENCE_S
        grid.settle()


@pytest.mark.parametrize("size", [SMALL, LARGE, OLD])
@pytest.mark.parametrize("call", range(5))
def test_get_when_one_answer_is_lost_does_not_wait_for_it(size: int, call: int) -> None:
    for victim in range(10):
        grid, data, cap = laid(size)
        grid.script(victim, lost=frozenset([call]))
        assert grid.get(cap) == data
        assert grid.now < PATIENCE_S


@pytest.mark.parametrize("size", [SMALL, LARGE, OLD])
@pytest.mark.parametrize("fault", ["dead_from", "silent_from"])
@pytest.mark.parametrize("call", range(4))
def test_get_when_all_but_k_servers_fail_uses_the_last(size: int, fault: str, call: int) -> None:
    for last in range(0, 8, 3):
        grid, data, cap = laid(size)
        for victim in set(range(10)) - set(range(last, last + 3)):
            grid.script(victim, **{fault: call})
        assert grid.get(cap) == data
        assert grid.now < 4 * PATIENCE_S
        fired = sum(server.fired[fault.removesuffix("_from")] for server in grid.servers)
        assert fired or call >= (1 if size == SMALL else 2)


@pytest.mark.parametrize("size", [SMALL, LARGE, OLD])
@pytest.mark.parametrize("fault", ["dead_from", "silent_from"])
def test_get_when_too_few_servers_answer_says_so_in_bounded_time(size: int, fault: str) -> None:
    for call in range(4):
        grid, data, cap = laid(size)
        for victim in range(8):
            grid.script(victim, **{fault: call})
        # A server that answers its first call gives a small file away whole.
        if size == SMALL and call > 0:
            assert grid.get(cap) == data
            continue
        if call >= 2 and _readable(grid, cap, data):
            continue
        with pytest.raises(NotEnoughSharesError, match="are needed"):
            grid.get(cap)
        assert grid.now < HOPELESS_S


def _readable(grid: ScriptedGrid, cap: ChkCap, data: bytes) -> bool:
    """Whether the servers had given enough before they failed; never wrong bytes."""
    try:
        raw = grid.get(cap)
    except NotEnoughSharesError:
        return grid.now < HOPELESS_S
    assert raw == data
    return True


def test_get_when_all_servers_are_silent_ends_in_bounded_time() -> None:
    grid, _, cap = laid(LARGE)
    for index in range(10):
        grid.script(index, silent_from=0)
    with pytest.raises(NoServersError):
        grid.get(cap)
    assert grid.now < HOPELESS_S
    assert all(server.fired["silent"] for server in grid.servers)


def test_get_when_many_silent_servers_come_first_finds_the_others_behind_them() -> None:
    grid = ScriptedGrid(60)
    data = noise(LARGE)
    file = grid.store(data, holdings={})
    opened = grid.open(file.cap)
    order = [peer.identity.server_id for peer in opened._servers]
    for rank, server_id in enumerate(order):
        index = int(server_id[1:])
        if rank < 50:
            grid.script(index, silent_from=0)
        else:
            grid.lay(file, {index: [rank - 50]})
    assert grid.read(opened)[0] == data
    assert grid.now < 3 * PATIENCE_S


@pytest.mark.parametrize("size", [LARGE, OLD])
@pytest.mark.parametrize("call", range(3))
def test_get_when_servers_fail_only_once_gives_them_a_second_chance(size: int, call: int) -> None:
    grid = ScriptedGrid(3)
    data = noise(size)
    file = grid.store(data, segment_size=131072, holdings={0: [0], 1: [1], 2: [2]})
    for index in range(3):
        grid.script(index, broken=frozenset([call]))
    assert grid.get(file.cap) == data
    assert all(server.fired["broken"] for server in grid.servers)


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_get_when_a_server_raises_a_foreign_error_uses_others(size: int) -> None:
    for victim in range(10):
        grid, data, cap = laid(size)
        grid.script(victim, dead_from=0, failure=lambda: KeyError("from the wire"))
        assert grid.get(cap) == data


@pytest.mark.parametrize("size", [SMALL, LARGE, OLD])
@pytest.mark.parametrize("kind", ["many", "few", "long"])
def test_get_when_servers_answer_in_the_wrong_shape_never_gives_wrong_bytes(size: int, kind: str) -> None:
    for bad in ([0, 3, 7], range(7)):
        grid, data, cap = laid(size)
        for index in bad:
            grid.script(index, pieces=kind)
        assert grid.get(cap) == data
        assert grid.now < PATIENCE_S
    grid, data, cap = laid(size)
    for index in range(10):
        grid.script(index, pieces=kind)
    if not _whole_or_error(grid, cap, data):
        assert grid.now < HOPELESS_S
    assert any(server.fired["pieces"] for server in grid.servers)


def _whole_or_error(grid: ScriptedGrid, cap: ChkCap, data: bytes) -> bool:
    try:
        raw = grid.get(cap)
    except GridError:
        return False
    assert raw == data
    return True


@pytest.mark.parametrize("size", [SMALL, LARGE, OLD])
def test_get_when_shares_are_swapped_reports_and_replaces_them(size: int) -> None:
    grid = ScriptedGrid(5)
    data = noise(size)
    file = grid.store(data, holdings={index: [index, index + 5] for index in range(5)})
    for index in range(3):
        grid.script(index, swap={index: index + 5, index + 5: index})
    assert grid.get(file.cap) == data
    swapped = [server for server in grid.servers if server.fired["swap"]]
    assert swapped and all(server.advisories for server in swapped)


@pytest.mark.parametrize("size", [SMALL, LARGE, OLD])
def test_get_when_servers_forget_shares_between_calls_uses_others(size: int) -> None:
    grid, data, cap = laid(size)
    for index in range(7):
        grid.script(index, forget=frozenset([index]))
    assert grid.get(cap) == data
    assert any(server.fired["forget"] for server in grid.servers) is (size != SMALL)


@pytest.mark.parametrize("claims", [{10, 11, 255}, {256, 1000, 2**31}, {-1}])
def test_get_when_servers_claim_numbers_that_no_share_has_passes_them_over(claims: set[int]) -> None:
    grid, data, cap = laid(SMALL)
    for index in range(10):
        grid.script(index, claims=frozenset(claims))
    assert grid.get(cap) == data
    assert not any(server.advisories for server in grid.servers)


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_get_when_servers_claim_shares_that_they_do_not_hold_uses_those_that_exist(size: int) -> None:
    grid = ScriptedGrid()
    data = noise(size)
    file = grid.store(data, holdings={7: [7], 8: [8], 9: [9]})
    for index in range(7):
        grid.script(index, claims=frozenset(range(10)))
    assert grid.get(file.cap) == data
    assert grid.now < PATIENCE_S


@pytest.mark.parametrize("size", [SMALL, LARGE, OLD])
def test_get_when_shares_are_cut_short_anywhere_uses_others(size: int) -> None:
    grid, data, cap = laid(size)
    share = grid.servers[0].shares[cap.storage_index][0]
    layout = parse_header(share)
    ends = {0, 3, 4, 35, 36, 37, layout.plaintext_tree_offset, layout.block_tree_offset, layout.chain_offset + 5}
    for cut in sorted(ends | {layout.ueb_offset + 2, layout.ueb_offset + 100, len(share) // 2, len(share) - 1}):
        grid, data, cap = laid(size)
        for index in range(7):
            grid.script(index, short={index: cut})
        assert grid.get(cap) == data
        assert grid.now < PATIENCE_S


@settings(max_examples=examples(60))
@given(
    size=st.sampled_from([SMALL, OLD]),
    flips=st.dictionaries(st.integers(0, 6), st.tuples(st.integers(0, 10**6), st.integers(1, 255)), min_size=1),
)
def test_get_when_up_to_seven_shares_are_false_anywhere_gives_the_file(
    size: int, flips: dict[int, tuple[int, int]]
) -> None:
    grid, data, cap = laid(size)
    for index, (position, mask) in flips.items():
        length = len(grid.servers[index].shares[cap.storage_index][index])
        grid.script(index, corrupt={(index, position % length): mask})
    assert grid.get(cap) == data
    assert grid.now < PATIENCE_S


def test_get_when_a_block_is_false_tells_its_server_and_keeps_the_rest_of_the_share() -> None:
    grid = ScriptedGrid(4)
    data = noise(3_000_000)
    file = grid.store(data, k=3, n=4, segment_size=300_000)
    for index in range(2):
        grid.script(index, corrupt={(index, 36 + 100_000 * (5 * index + 1)): 1})
    # Shares 0 and 1 are false in different segments: with share 2 or 3 alone neither could be left out altogether.
    grid.script(3, dead_from=0)
    with pytest.raises(NotEnoughSharesError):
        grid.get(file.cap)
    grid.script(3)
    assert grid.get(file.cap) == data
    for index in range(2):
        assert grid.servers[index].advisories[0][0] == index
        assert "does not match its hash" in grid.servers[index].advisories[0][1]


def test_get_when_every_share_has_a_false_block_elsewhere_combines_the_others() -> None:
    grid = ScriptedGrid(6)
    data = noise(600_000)
    file = grid.store(data, k=3, n=6, segment_size=60_000)
    for index in range(6):
        grid.script(index, corrupt={(index, 36 + 20_000 * index): 1})
    assert grid.get(file.cap) == data
    assert sum(bool(server.advisories) for server in grid.servers) >= 3


@pytest.mark.parametrize("vector", load_share_vectors(), ids=lambda vector: vector.name)
def test_get_when_shares_are_the_published_ones_does_as_stated(vector: ShareVector) -> None:
    grid = ScriptedGrid(5)
    for number, share in vector.shares.items():
        grid.servers[number % 5].shares.setdefault(vector.cap.storage_index, {})[number] = share
    if vector.get == "ok":
        assert grid.get(vector.cap) == vector.text
    else:
        with pytest.raises(DamagedFileError if vector.get == "damaged" else NotEnoughSharesError):
            grid.get(vector.cap)
    assert grid.now < PATIENCE_S


def test_get_when_servers_are_slow_but_alive_does_not_ask_twice() -> None:
    for size, rate in ((400_000, 100e3), (LARGE, 300e3)):
        grid, _, cap = laid(size)
        for index in range(10):
            grid.script(index, rate=rate, delay_s=0.2)
        _, result = grid.read(grid.open(cap))
        assert result.hedged_bytes == 0
        assert sum(server.read_bytes for server in grid.servers) < size + 20_000


def test_get_when_the_whole_network_is_slow_keeps_hedges_within_their_budget() -> None:
    grid = ScriptedGrid()
    data = noise(30 * 2**20)
    file = grid.store(data)
    for index in range(10):
        grid.script(index, rate=100e3, delay_s=0.3)
    assert grid.get(file.cap) == data
    assert sum(server.read_bytes for server in grid.servers) < 1.05 * len(data) + 8 * 2**20 / 3


def test_get_when_one_server_is_slow_prefers_the_others() -> None:
    grid = ScriptedGrid()
    data = noise(40 * 2**20)
    file = grid.store(data)
    for index in range(10):
        grid.script(index, rate=20e6)
    for victim in range(4):
        grid.script(victim, rate=500e3)
    assert grid.get(file.cap) == data
    assert sum(grid.servers[index].fired["slow"] > 0 for index in range(4)) >= 1
    assert grid.now < 40


def test_range_when_a_fast_server_slows_down_asks_another_for_its_block() -> None:
    data = noise(8_000_000)
    for place in range(3):
        grid = ScriptedGrid()
        file = grid.open(grid.store(data).cap)
        for index in range(10):
            grid.script(index, rate=100e6, delay_s=0.01)
        for offset in (0, 2**21):
            grid.read(file, offset, 1)
        used = [index for index in range(10) if "read_shares" in grid.servers[index].calls]
        assert len(used) == 3
        grid.script(used[place], delay_s=1.5)
        start = grid.now
        assert grid.read(file, 2**22, 1)[0] == data[2**22 : 2**22 + 1]
        assert grid.servers[used[place]].calls == ["read_shares"]
        assert grid.now - start < 0.5


def _each_reason(grid: ScriptedGrid, check: Callable[[str], bool]) -> bool:
    return all(check(reason) for server in grid.servers for _, reason in server.advisories)


def test_get_when_it_reports_corruption_says_why_in_few_words() -> None:
    grid, data, cap = laid(SMALL)
    for index in range(7):
        grid.script(index, corrupt={(index, 600 + index): 0x80})
    assert grid.get(cap) == data
    assert any(server.advisories for server in grid.servers)
    assert _each_reason(grid, lambda reason: 0 < len(reason) < 200)


@pytest.mark.parametrize("size", [SMALL, LARGE])
@pytest.mark.parametrize("noise_byte", [0, 0xFF, None])
def test_get_when_a_share_is_zeros_or_noise_tells_its_server(size: int, noise_byte: int | None) -> None:
    for victim in range(10):
        grid, data, cap = laid(size)
        held = grid.servers[victim].shares[cap.storage_index]
        for number, share in held.items():
            held[number] = noise(len(share), 7) if noise_byte is None else bytes([noise_byte]) * len(share)
        assert grid.get(cap) == data
        grid.settle()
        read = "read_shares" in grid.servers[victim].calls or "find_shares" in grid.servers[victim].calls
        assert len(grid.servers[victim].advisories) == read


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_get_when_a_share_is_cut_short_tells_its_server(size: int) -> None:
    told = set()
    for victim in range(10):
        grid, data, cap = laid(size)
        (number,) = grid.servers[victim].shares[cap.storage_index]
        grid.script(victim, short={number: len(grid.servers[victim].shares[cap.storage_index][number]) // 2})
        assert grid.get(cap) == data
        grid.settle()
        assert grid.servers[victim].fired["short"] or not grid.servers[victim].advisories
        told |= {victim} if grid.servers[victim].advisories else set()
    assert len(told) >= 3, "all shares that a read takes to be useful"
