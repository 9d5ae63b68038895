"""Numbers that only grow, by the names that monitors know. Pure. [spec webapi 9.3]"""

from __future__ import annotations

from collections.abc import Mapping


class Counters:
    """A counter is there from its first increment on."""

    def __init__(self) -> None:
        self._values: dict[str, int] = {}

    def add(self, name: str, count: int = 1) -> None:
        """Count so much more; nothing for zero, which leaves an absent counter absent."""
        if count:
            self._values[name] = self._values.get(name, 0) + count

    @property
    def values(self) -> Mapping[str, int]:
        """All of them."""
        return dict(self._values)
