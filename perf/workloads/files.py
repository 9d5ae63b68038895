"""Test files: sizes fitted to published figures, and new, incompressible contents."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from perf.campaigns.arrivals import IMAGES

COUNT = 100
"""The number of published JPEG 2000 files."""

PIECE = 1 << 20


def image_sizes(count: int = COUNT, seed: int = 0) -> list[int]:
    """Sizes in random order with exactly the published least, greatest and mean; ValueError for too few."""
    return IMAGES.sizes(count, seed)


def make_files(folder: Path, sizes: Sequence[int], seed: str) -> list[Path]:
    """Create the folder with a file of each size; the same seed gives the same bytes."""
    folder.mkdir(parents=True)
    paths = []
    for number, size in enumerate(sizes):
        draw = random.Random(f"{seed}/{number}")
        path = folder / f"file{number:05}"
        with path.open("wb") as file:
            for offset in range(0, size, PIECE):
                file.write(draw.randbytes(min(PIECE, size - offset)))
        paths.append(path)
    return paths
