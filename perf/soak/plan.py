"""What a soak does next: a seeded stream of operations, and who is killed meanwhile. Pure.

As many servers may be away at once as every encoding bears: then no operation has a reason to fail, and any that does
is a defect.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Literal

from attrs import define, field, frozen

from perf.soak.mutable_plan import MutablePlan

MOST_AWAY = 2
"""Servers away at once. Every encoding below has happy >= k + MOST_AWAY, and MOST_AWAY servers are never needed."""

ENCODINGS = ((1, 4, 3), (1, 10, 4), (2, 6, 4), (3, 10, 7), (3, 20, 7), (4, 12, 6), (5, 10, 7))
"""(k, n, happy); a server that dies once it was given its share is not replaced, so that happy < n."""

SEGMENTS = (1 << 17, 1 << 20)
LARGEST = 20_000_000
PUT_PART = 0.3
"""Of all operations on immutable files; the others read."""

WEB_PART = 0.35
"""Of all operations on immutable files: those through the gateway."""

WEB_ENCODING = (3, 10, 7)
"""What the gateway's client encodes with."""

MUTABLE_PART = 0.45
"""Of all operations: those on mutable files and directories."""

Disturbance = Literal["kill", "freeze"]


@define
class StoredFile:
    """A file that was put. key: hex, what its contents come from. cap: a secret only of random bytes."""

    key: str
    size: int
    cap: str = field(repr=False)


@frozen
class Disturbed:
    """A server is to go away this long after the operations began."""

    server: int
    how: Disturbance
    after_s: float


class SoakPlan:
    """kept_bytes: bytes of files kept; what is older is forgotten. clients: how many there are to choose from."""

    def __init__(self, seed: int, *, clients: int, mortal: Sequence[int], largest: int, kept_bytes: int) -> None:
        """mortal: the indices of the servers that may be killed. largest: bytes of the largest file."""
        self._random = random.Random(seed)
        self._clients = clients
        self._mortal = list(mortal)
        self._largest = largest
        self._kept_bytes = kept_bytes
        self.files: list[StoredFile] = []
        self.mutables = MutablePlan(self._random, ENCODINGS)

    def batch(self) -> list[dict[str, Any]]:
        """One to three operations to carry out at the same time."""
        operations = [self._operation() for _ in range(self._random.choice((1, 1, 2, 3)))]
        self.mutables.begin(operations)
        return operations

    def disturbance(self, away: int) -> Disturbed | None:
        """Who goes away during the next operations, if anybody; away: servers that are away now."""
        if away >= MOST_AWAY or self._random.random() > 0.2:
            return None
        how: Disturbance = "freeze" if self._random.random() < 0.2 else "kill"
        return Disturbed(self._random.choice(self._mortal), how, self._random.uniform(0, 0.4))

    def last_look(self) -> list[dict[str, Any]]:
        """A read of every file that is kept, as a whole, by each client in turn, with nothing remembered."""
        about = {"op": "read", "offset": 0, "keep": False}
        return [
            {**about, "client": index % self._clients, "length": file.size, "key": file.key, "cap": file.cap}
            for index, file in enumerate(self.files)
        ]

    def returns(self) -> bool:
        """Whether a server that is away comes back now."""
        return self._random.random() < 0.3

    def stored(self, operation: dict[str, Any], cap: str) -> list[StoredFile]:
        """A put has succeeded; the files that are to be forgotten for it."""
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
        """As often between 10 and 100 bytes as between 1 and 10 MB; 0 now and then."""
        if self._random.random() < 0.03:
            return 0
        return int((largest + 1) ** self._random.random())
