"""Passwords of share links: hashes, passes, and how often one can guess."""

from __future__ import annotations

import pytest

from grid.gateway.shared.passwords import (
    LINK_EACH_S,
    LINK_TRIES,
    LONGEST_PASSWORD,
    MAX_REMEMBERED,
    PASS_S,
    PEER_EACH_S,
    PEER_TRIES,
    Attempts,
    Passes,
    PasswordHash,
    hash_password,
)
from tests.support.virtual_time import VirtualClock

LINK, OTHER = b"a" * 32, b"b" * 32
HASH = PasswordHash(salt=b"s" * 16, key=b"k" * 32)


def test_only_the_password_matches_its_hash_however_it_was_typed() -> None:
    kept = hash_password("caf\u00e9 noir", b"s" * 16)
    assert kept.matches("caf\u00e9 noir") and kept.matches("cafe\u0301 noir")
    assert not any(kept.matches(text) for text in ("", "cafe noir", "CAF\u00c9 NOIR", "x" * (LONGEST_PASSWORD + 1)))
    assert hash_password("caf\u00e9 noir", b"t" * 16).key != kept.key
    assert b"noir" not in kept.key and "noir" not in repr(kept) and "key" not in repr(kept)


@pytest.mark.parametrize(("cost", "key"), [(0, b"k" * 32), (3, b"k" * 32), (2**20, b"k" * 32), (2**15, b"short")])
def test_hash_that_would_cost_too_much_to_check_is_refused(cost: int, key: bytes) -> None:
    with pytest.raises(ValueError, match="not the hash"):
        PasswordHash(salt=b"s", key=key, cost=cost)


def test_pass_opens_its_link_until_it_ends_and_nothing_else() -> None:
    clock = VirtualClock()
    passes = Passes(clock, b"secret")
    issued = passes.issue(LINK, HASH)
    assert passes.is_valid(issued, LINK, HASH)
    assert not passes.is_valid(issued, OTHER, HASH)
    assert not passes.is_valid(issued, LINK, PasswordHash(salt=b"s" * 16, key=b"x" * 32))
    assert not Passes(clock, b"another secret").is_valid(issued, LINK, HASH), "another start of the gateway"
    number, _, signature = issued.partition("-")
    for text in (
        "",
        "-",
        "x",
        f"{int(number) + 9}-{signature}",
        f"{number}-",
        f"{number}-\u00e9",
        f"{'9' * 99}-{signature}",
    ):
        assert not passes.is_valid(text, LINK, HASH), text
    clock.task_clock.advance(PASS_S + 1)
    assert not passes.is_valid(issued, LINK, HASH)


def test_address_waits_after_its_tries_and_then_gets_one_at_a_time() -> None:
    clock = VirtualClock()
    attempts = Attempts(clock)
    assert [attempts.wait_s(LINK, "10.0.0.1") for _ in range(PEER_TRIES)] == [0.0] * PEER_TRIES
    assert attempts.wait_s(LINK, "10.0.0.1") == pytest.approx(PEER_EACH_S)
    assert attempts.wait_s(LINK, "10.0.0.2") == attempts.wait_s(OTHER, "10.0.0.1") == 0.0
    clock.task_clock.advance(PEER_EACH_S)
    assert attempts.wait_s(LINK, "10.0.0.1") == 0.0
    assert attempts.wait_s(LINK, "10.0.0.1") > 0.0


def test_flood_from_many_addresses_is_limited_by_link_and_remembers_little() -> None:
    clock = VirtualClock()
    attempts = Attempts(clock)
    allowed = sum(attempts.wait_s(LINK, f"host {number}") == 0.0 for number in range(20_000))
    assert allowed == LINK_TRIES and attempts.remembered <= LINK_TRIES + 1
    clock.task_clock.advance(LINK_EACH_S)
    assert sum(attempts.wait_s(LINK, f"host {number}") == 0.0 for number in range(100)) == 1
    for number in range(3 * MAX_REMEMBERED):
        attempts.wait_s(number.to_bytes(32, "big"), "10.0.0.1")
    assert attempts.remembered <= 2 * MAX_REMEMBERED
