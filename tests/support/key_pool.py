"""A pool of private keys for files that tests make, handed out in turn.

Finding the primes of a key takes longer than most tests; two primes make a key, and a few make hundreds, which is why no key of
the pool protects anything. A file needs a key that no other file of its grid has; a test that makes more files in one grid
than the pool has keys gets a key twice, and fails, since the second file finds the shares of the first.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key

from grid.crypto.rsa import KEY_BITS, PrivateKey
from grid.mutable import key_supply
from tests.support.mutable_key import E, key_of

PRIME_COUNT = 24
"""Enough for 276 keys."""


class KeyPool:
    """Makes a key of every two primes, on demand, then reuses them. Threads may share it."""

    def __init__(self, prime_count: int) -> None:
        self._prime_count = prime_count
        self._size = prime_count * (prime_count - 1) // 2
        self._keys: list[PrivateKey] = []
        self._new = self._make()
        self._given = 0
        self._lock = Lock()

    def generate_key(self) -> PrivateKey:
        """The next key."""
        with self._lock:
            index = self._given % self._size
            self._given += 1
            if index == len(self._keys):
                self._keys.append(next(self._new))
            return self._keys[index]

    def _make(self) -> Iterator[PrivateKey]:
        primes: list[int] = []
        while len(primes) < self._prime_count:
            numbers = generate_private_key(E, KEY_BITS).private_numbers()
            for prime in (numbers.p, numbers.q):
                yield from (key_of(other, prime) for other in primes)
                primes.append(prime)


@contextmanager
def pooled_keys(prime_count: int = PRIME_COUNT) -> Iterator[None]:
    """New files get keys of a pool. prime_count: a multiple of two."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_supply, "generate_key", KeyPool(prime_count).generate_key)
        yield
