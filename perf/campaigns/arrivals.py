"""Seeded schedules of many transfers: start times, concurrency and file sizes. Pure.

Staccato is an open loop: transfers start at times drawn in advance, regardless of earlier ones. Each duration counts
from the scheduled start, so a system that falls behind cannot hide it.
"""

from __future__ import annotations

import random
import re
from typing import Literal, get_args

from attrs import frozen

Mode = Literal["serial", "parallel", "saturation", "limited", "staccato"]
MODES: tuple[Mode, ...] = get_args(Mode)


@frozen(kw_only=True)
class Schedule:
    """workers: concurrent transfers. due_s: the scheduled second of each transfer, in order.

    fresh: whether each transfer immediately gets its own thread, instead of one of a fixed number of workers.
    """

    workers: int
    due_s: tuple[float, ...]
    fresh: bool = False

    @property
    def is_open(self) -> bool:
        """Whether transfers start by the clock."""
        return any(self.due_s)


def schedule(mode: Mode, count: int, cores: int, seed: str, span_s: float | None = None) -> Schedule:
    """The schedule of a mode.

    span_s: seconds within which staccato starts all transfers; by default one per transfer.
    """
    at_once = (0.0,) * count
    match mode:
        case "serial":
            return Schedule(workers=1, due_s=at_once)
        case "parallel":
            return Schedule(workers=count, due_s=at_once, fresh=True)
        case "saturation":
            return Schedule(workers=count, due_s=at_once)
        case "limited":
            return Schedule(workers=min(count, cores), due_s=at_once)
        case "staccato":
            draw = random.Random(f"staccato/{seed}")
            span = float(count) if span_s is None else span_s
            return Schedule(workers=count, due_s=tuple(draw.uniform(0.0, span) for _ in range(count)), fresh=True)


_SPREAD = re.compile(r"(\d+) to (\d+), mean (\d+)")


@frozen
class Spread:
    """A distribution of sizes, given by its least, greatest and mean in bytes."""

    least: int
    most: int
    mean: int

    @staticmethod
    def of(text: str) -> Spread:
        """Parse `LEAST to MOST, mean MEAN`, or the published `images`; ValueError."""
        if text == "images":
            return IMAGES
        found = _SPREAD.fullmatch(text)
        if found is None:
            raise ValueError("as in 1000 to 9000, mean 4000")
        spread = Spread(*map(int, found.groups()))
        if not 0 < spread.least <= spread.mean <= spread.most:
            raise ValueError("the mean lies between the least and the greatest, which are more than 0")
        return spread

    def __str__(self) -> str:
        return f"{self.least} to {self.most}, mean {self.mean}"

    def sizes(self, count: int, seed: int) -> list[int]:
        """Draw `count` sizes; ValueError if that is impossible."""
        return fitted_sizes(count, self.least, self.most, self.mean, seed)

    def suits(self, count: int) -> bool:
        """Whether `count` files can have all three figures."""
        return count >= 3 and _is_possible(count, self.least, self.most, self.mean)


IMAGES = Spread(112_336, 10_924_380, 1_562_048)
"""The published set of a hundred JPEG 2000 files."""


def fitted_sizes(count: int, least: int, most: int, mean: int, seed: int) -> list[int]:
    """Sizes in seeded order with exactly this least, greatest and mean; ValueError if that is impossible.

    In between, they are spread as least x (most / least) ^ (u ^ p), with the p that gives the mean.
    """
    if count < 3 or not 0 < least <= mean <= most or not _is_possible(count, least, most, mean):
        raise ValueError(f"no {count} sizes from {least} to {most} have the mean {mean}")
    draw = random.Random(f"sizes/{seed}")
    places = [draw.random() for _ in range(count - 2)]
    wanted = mean * count - least - most

    def sizes(power: float) -> list[int]:
        return [round(least * (most / least) ** (place**power)) for place in places]

    low, high = 1e-6, 1e6
    for _ in range(200):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if sum(sizes(middle)) > wanted else (low, middle)
    found = _corrected(sizes(high), wanted, least, most)
    whole = [least, most, *found]
    draw.shuffle(whole)
    return whole


def _is_possible(count: int, least: int, most: int, mean: int) -> bool:
    return (count - 1) * least + most <= mean * count <= least + (count - 1) * most


def _corrected(sizes: list[int], wanted: int, least: int, most: int) -> list[int]:
    """Distribute the rounding error over sizes that can absorb it."""
    missing = wanted - sum(sizes)
    for index, size in enumerate(sizes):
        change = max(least - size, min(most - size, missing))
        sizes[index] += change
        missing -= change
    return sizes
