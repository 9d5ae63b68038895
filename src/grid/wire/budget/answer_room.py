"""How the memory of answers is divided: small answers have room that large ones never take. Pure.

It only counts. grid.wire.budget.answer_budget decides who waits, and for how long. [decision 0130]
"""

from __future__ import annotations


class AnswerRoom:
    """An amount of memory, part of which only small answers may hold."""

    def __init__(self, total: int, *, small: int, kept: int, readers: int = 0) -> None:
        """small: an answer of up to this many bytes is small. kept: bytes of the total for small answers only.
        readers: bytes of large answers reserved for clients that read.
        """
        self._readers = readers
        self._total = total
        self._small = small
        self._kept = kept
        self._held_small = 0
        self._held_large = 0

    @property
    def held_size(self) -> int:
        """Bytes held now."""
        return self._held_small + self._held_large

    @property
    def free_size(self) -> int:
        """Free bytes."""
        return self._total - self.held_size

    def missing(self, small: int, large: int) -> int:
        """Bytes that must be released before small answers and large answers of these sizes fit together."""
        return max(small + large - self.free_size, large - (self._total - self._kept - self._held_large))

    def is_small(self, size: int) -> bool:
        """Whether an answer of that size is small."""
        return size <= self._small

    def most(self, size: int) -> int:
        """The most bytes that an answer like one of that size can ever hold."""
        return self._total if self.is_small(size) else self._total - self._kept

    def fits(self, held: int, size: int, *, large_waits: bool, is_read: bool = True) -> bool:
        """Whether an answer may grow from `held` to `size` bytes. A small one may use all room that no large one waits for.

        is_read: whether its client is expected to read it.
        """
        if size - held > self.free_size:
            return False
        if self.is_small(size):
            return not large_waits or self._held_small - self._held_by_small(held) + size <= self._kept
        others = self._held_large - (held - self._held_by_small(held))
        readers = 0 if is_read or not others else self._readers
        return others + size <= self._total - self._kept - readers

    def move(self, held: int, size: int) -> None:
        """Change an answer's room from `held` to `size` bytes."""
        self._add(held, -1)
        self._add(size, 1)

    def _held_by_small(self, held: int) -> int:
        return held if self.is_small(held) else 0

    def _add(self, size: int, sign: int) -> None:
        if self.is_small(size):
            self._held_small += sign * size
        else:
            self._held_large += sign * size
