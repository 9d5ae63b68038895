"""Private keys for files that tests make: a pool of real ones, given out in turn.

Finding a key takes longer than most tests. A file needs a key that no other file of its grid has; a test that makes more
than POOL_SIZE files in one grid gets a key twice, and fails, since the second file finds the shares of the first.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

import pytest

from grid.crypto import rsa
from grid.crypto.rsa import PrivateKey
from grid.mutable import key_supply

POOL_SIZE = 256


class KeyPool:
    """Makes POOL_SIZE keys as they are asked for, then begins anew. Threads may share it."""

    def __init__(self) -> None:
        self._keys: list[PrivateKey] = []
        self._given = 0
        self._lock = Lock()

    def generate_key(self) -> PrivateKey:
        """The next key."""
        with self._lock:
            index = self._given % POOL_SIZE
            self._given += 1
            if index == len(self._keys):
                self._keys.append(rsa.generate_key())
            return self._keys[index]


@contextmanager
def pooled_keys() -> Iterator[None]:
    """New files get keys of a pool."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_supply, "generate_key", KeyPool().generate_key)
        yield
