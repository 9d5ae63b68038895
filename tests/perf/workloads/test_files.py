"""Sizes fitted to published figures, and files made from seeds."""

from __future__ import annotations

from pathlib import Path

import pytest

from perf.campaigns.arrivals import IMAGES
from perf.workloads.files import image_sizes, make_files


@pytest.mark.parametrize("seed", range(5))
def test_a_hundred_images_have_exactly_the_published_least_greatest_and_mean(seed: int) -> None:
    sizes = image_sizes(seed=seed)

    assert len(sizes) == 100
    assert (min(sizes), max(sizes), sum(sizes)) == (IMAGES.least, IMAGES.most, 100 * IMAGES.mean)
    assert len(set(sizes)) > 80


def test_sizes_are_the_same_for_the_same_seed_and_others_for_another() -> None:
    assert image_sizes(seed=1) == image_sizes(seed=1)
    assert image_sizes(seed=1) != image_sizes(seed=2)


def test_too_few_images_are_refused() -> None:
    with pytest.raises(ValueError, match="no 2 sizes"):
        image_sizes(count=2)


def test_files_have_their_sizes_and_the_bytes_of_their_seed(tmp_path: Path) -> None:
    first = make_files(tmp_path / "first", [0, 1, 1500], "seed")
    again = make_files(tmp_path / "again", [0, 1, 1500], "seed")
    other = make_files(tmp_path / "other", [0, 1, 1500], "another")

    assert [path.stat().st_size for path in first] == [0, 1, 1500]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in again]
    assert first[2].read_bytes() != other[2].read_bytes()
