"""Durations of a soak's operations, undisturbed and while servers were away, and which were too long. Pure.

A disturbed operation may take one and a half times the usual duration, plus the cost of meeting silent servers for the
first time; twice that is a defect.
"""

from __future__ import annotations

from collections.abc import Mapping
from statistics import quantiles
from typing import Any

FIRST_MEETING_S = 2.0
"""Seconds that an operation may spend on servers that it is the first to find silent."""

TOLERANCE = 2.0
"""Multiple of its bound that an operation may take, since the machine does other things as well."""

LEAST_SAMPLES = 20
SIZE_STEPS = (10_000, 1_000_000, 5_000_000)


class Durations:
    """Seconds by kind of operation and order of magnitude of size."""

    def __init__(self) -> None:
        self._calm: dict[str, list[float]] = {}
        self._disturbed: dict[str, list[float]] = {}

    def note(self, operation: Mapping[str, Any], seconds: float, *, disturbed: bool) -> None:
        """Record a duration. disturbed: whether a server was away or went away."""
        samples = self._disturbed if disturbed else self._calm
        samples.setdefault(_name(operation), []).append(seconds)

    def over_their_bounds(self) -> list[str]:
        """One line for each disturbed operation beyond TOLERANCE times its bound."""
        return [
            f"{name} took {seconds:.1f} s while servers were away; its bound is {bound:.1f} s"
            for name, samples in sorted(self._disturbed.items())
            for bound in [self._bound(name)]
            for seconds in samples
            if bound is not None and seconds > TOLERANCE * bound
        ]

    def lines(self) -> list[str]:
        """For each kind: the slowest tenth, undisturbed and disturbed, the worst, and the bound."""
        lines = []
        for name, samples in sorted(self._calm.items()):
            other, bound = self._disturbed.get(name, []), self._bound(name)
            lines.append(
                f"{name}: {len(samples)} undisturbed, p90 {_p90(samples):.2f} s, worst {max(samples):.2f} s; "
                f"{len(other)} disturbed, p90 {_p90(other):.2f} s, worst {max(other, default=0.0):.2f} s, "
                + ("too few for a bound" if bound is None else f"bound {bound:.2f} s")
            )
        return lines

    def _bound(self, name: str) -> float | None:
        """Seconds that a disturbed operation may take; None with too few undisturbed ones."""
        calm = self._calm.get(name, [])
        return FIRST_MEETING_S + 1.5 * quantiles(calm, n=10)[-1] if len(calm) >= LEAST_SAMPLES else None


def _p90(samples: list[float]) -> float:
    return quantiles(samples, n=10)[-1] if len(samples) > 1 else max(samples, default=0.0)


def _name(operation: Mapping[str, Any]) -> str:
    """The kind of an operation; all of a kind take about equally long."""
    size = operation.get("length", operation.get("size", 0)) or 0
    step = sum(size > most for most in SIZE_STEPS)
    return f"{operation['op']} {operation.get('kind', '')} {step}".replace("  ", " ")
