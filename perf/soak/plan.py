"""A soak's next steps: a seeded stream of operations and failures. Pure.

At most as many servers are away as every encoding tolerates, so no operation has a reason to fail, and any failure is a
defect.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Literal

from attrs import define, field, frozen

from perf.soak.mutable_plan import MutablePlan

MOST_AWAY = 2
"""Servers away at once. Every encoding below has happy >= k + MOST_AWAY and works without MOST_AWAY servers."""

ENCODINGS = ((1, 4, 3), (1, 10, 4), (2, 6, 4), (3, 10, 7), (3, 20, 7), (4, 12, 6), (5, 10, 7))
"""(k, n, happy). A server that dies after it was assigned its share is not replaced, so happy < n."""

SEGMENTS = (1 << 17, 1 << 20)
LARGEST = 20_000_000
PUT_PART = 0.3
"""The fraction of puts among operations on immutable files; the others read."""

WEB_PART = 0.35
"""The fraction of operations on immutable files that use the gateway."""

WEB_ENCODING = (3, 10, 7)
"""The encoding of the gateway's client."""

MUTABLE_PART = 0.45
"""The fraction of operations on mutable files and directories."""

Disturbance = Literal["kill", "freeze"]


@define
class StoredFile:
    """A stored file. key: hex, generates its contents. cap: gives access only to random bytes."""

    key: str
    size: int
    cap: str = field(repr=False)


@frozen
class Disturbed:
    """A server that goes away this long after the operations began."""

    server: int
    how: Disturbance
    after_s: float


class SoakPlan:
    """kept_bytes: bytes of files kept; older ones are forgotten. clients: number of clients to choose from."""

    def __init__(self, seed: int, *, clients: int, mortal: Sequence[int], largest: int, kept_bytes: int) -> None:
        """mortal: indices of the servers that may be killed. largest: bytes of the largest file."""
        self._random = random.Random(seed)
        self._clients = clients
        self._mortal = list(mortal)
        self._largest = largest
        self._kept_bytes = kept_bytes
        self.files: list[StoredFile] = []
        self.mutables = MutablePlan(self._random, ENCODINGS)

    def batch(self) -> list[dict[str, Any]]:
        """One to three operations to carry out in parallel."""
        operations = [self._operation() for _ in range(self._random.choice((1, 1, 2, 3)))]
        self.mutables.begin(operations)
        return operations

    def disturbance(self, away: int) -> Disturbed | None:
        """The server that goes away during the next operations, if any. away: servers that are away now."""
        if away >= MOST_AWAY or self._random.random() > 0.2:
            return None
        how: Disturbance = "freeze" if self._random.random() < 0.2 else "kill"
        return Disturbed(self._random.choice(self._mortal), how, self._random.uniform(0, 0.4))

    def last_look(self) -> list[dict[str, Any]]:
        """Full reads of every kept file by each client in turn, without caches."""
        about = {"op": "read", "offset": 0, "keep": False}
        return [
            {**about, "client": index % self._clients, "length": file.size, "key": file.key, "cap": file.cap}
            for index, file in enumerate(self.files)
        ]

    def returns(self) -> bool:
        """Whether an absent server comes back now."""
        return self._random.random() < 0.3

    def stored(self, operation: dict[str, Any], cap: str) -> list[StoredFile]:
        """Record a successful put; return the files to forget in exchange."""
        self.files.append(StoredFile(operation["key"], operation["size"], cap))
        forgotten = []
        while sum(file.size for file in self.files) > self._kept_bytes and len(self.files) > 1:
            forgotten.append(self.files.pop(0))
        return forgotten

    def _operation(self) -> dict[str, Any]:
        draw = self._random
        client = draw.randrange(self._clients)
        web = "web-" if draw.random() < WEB_PART else ""
        if draw.random() < MUTABLE_PART:
            return self.mutables.operation(client)
        if not self.files or draw.random() < PUT_PART:
            return {
                "op": f"{web}put",
                "client": client,
                "key": draw.randbytes(16).hex(),
                "size": self._size(self._largest),
                "encoding": WEB_ENCODING if web else draw.choice(ENCODINGS),
                "segment": draw.choice(SEGMENTS),
                "convergent": draw.random() < 0.5,
            }
        file = draw.choice(self.files)
        if draw.random() < 0.3:
            offset, length = 0, file.size
        else:
            offset = draw.randrange(file.size + 1)
            length = min(file.size - offset, self._size(file.size))
        read = {"op": f"{web}read", "client": client, "offset": offset, "length": length, "keep": draw.random() < 0.8}
        return {**read, "key": file.key, "cap": file.cap}

    def _size(self, largest: int) -> int:
        """A size uniform over orders of magnitude, from 10 bytes to 10 MB; occasionally 0."""
        if self._random.random() < 0.03:
            return 0
        return int((largest + 1) ** self._random.random())
