"""Choosing how many files to copy at once, by a virtual clock over made-up rates."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from grid.cli.transfer.post_order import run_post_order
from grid.transfer.jobs import FIRST_JOBS, MOST_JOBS, PATIENCE_S, AutomaticJobs
from perf.sampling.fits import find_knee
from tests.cli.transfer.test_post_order import Recorder, make_tree

STEP_S = 0.1
DEGREES = [2, 4, 8, 16, 32]


class Copy:
    """A copy whose rate depends on the number of jobs. rate: files a second; size: bytes of each."""

    def __init__(self, rate: Callable[[int], float], size: float = 0.0) -> None:
        self.now, self.files, self.settled = 0.0, 0.0, list[int]()
        self.seen: list[int] = []
        self._rate, self._size = rate, size
        self.jobs = AutomaticJobs(
            lambda: (int(self.files), self.files * self._size), clock=lambda: self.now, settled=self.settled.append
        )

    def run(self, seconds: float) -> None:
        for _ in range(round(seconds / STEP_S)):
            limit = self.jobs.limit
            if limit not in self.seen:
                self.seen.append(limit)
            self.now += STEP_S
            self.files += self._rate(limit) * STEP_S


RATES: dict[str, tuple[Callable[[int], float], int]] = {
    "flat, as a server on one core": (lambda jobs: 40.0, 2),
    "grows to 8 and gains nothing more": (lambda jobs: 10.0 * min(jobs, 8), 8),
    "falls beyond 8": (lambda jobs: 10.0 * min(jobs, 8) - max(0, jobs - 8), 8),
    "grows as far as it is tried": (lambda jobs: 10.0 * jobs, MOST_JOBS),
    "grows by less than the knee": (lambda jobs: 40.0 + 0.02 * jobs, 2),
}


@pytest.mark.parametrize("name", RATES)
def test_number_is_the_knee_that_a_campaign_would_find(name: str) -> None:
    rate, expected = RATES[name]
    copy = Copy(rate)
    copy.run(30)
    assert copy.settled == [expected]
    assert copy.jobs.limit == expected
    assert copy.seen[0] == FIRST_JOBS
    assert max(copy.seen) <= min(2 * expected, MOST_JOBS)
    assert find_knee({degree: [rate(degree)] for degree in DEGREES}).degree == expected


def test_number_of_large_files_is_found_by_their_bytes() -> None:
    copy = Copy(lambda jobs: 0.01 * min(jobs, 4), size=1e9)
    copy.run(3 * PATIENCE_S + 5)
    assert copy.settled == [4]


def test_copy_that_stands_still_stays_where_it_began() -> None:
    copy = Copy(lambda jobs: 0.0)
    copy.run(60)
    assert copy.settled == [FIRST_JOBS]


async def test_tree_with_an_automatic_number_is_copied_within_its_limits() -> None:
    recorder = Recorder()
    ended = lambda: (len(recorder.done), 0.0)  # noqa: E731
    clock = lambda: 2.0 * len(recorder.done)  # noqa: E731 - each file takes two seconds, however many run
    jobs = AutomaticJobs(ended, clock=clock)
    tree = make_tree(2, 3)
    await run_post_order(tree, jobs, recorder.leaf, recorder.branch)
    assert len(recorder.done) == sum(tree.count())
    assert 1 < recorder.most <= 2 * FIRST_JOBS
    assert jobs.limit == FIRST_JOBS
