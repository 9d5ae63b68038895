from __future__ import annotations

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater

from grid.caps import LitCap
from grid.cli.transfer.post_order import run_post_order
from grid.cli.transfer.tree import Branch, Leaf, RemoteOrigin


def make_tree(depth: int, width: int, name: str = "") -> Branch:
    made = Branch(name)
    origin = RemoteOrigin(cap=LitCap(data=b""), where="")
    for number in range(width):
        made.leaves[f"f{number}"] = Leaf(f"f{number}", origin)
        if depth:
            made.branches[f"d{number}"] = make_tree(depth - 1, width, f"d{number}")
    return made


class Recorder:
    """Takes a turn of the event loop for each piece, and notes when it ended."""

    def __init__(self, fails: str = "never") -> None:
        self.done: list[str] = []
        self.running = 0
        self.most = 0
        self.fails = fails

    async def leaf(self, path: tuple[str, ...], branch: Branch, leaf: Leaf) -> None:
        await self._work("/".join((*path, leaf.name)))

    async def branch(self, path: tuple[str, ...], branch: Branch, above: Branch | None) -> None:
        assert (above is None) == (path == ())
        await self._work("/".join((*path, "")) or "/")

    async def _work(self, what: str) -> None:
        from twisted.internet import reactor

        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await deferLater(reactor, 0)
            if what == self.fails:
                raise ValueError(what)
            self.done.append(what)
        finally:
            self.running -= 1


@pytest.mark.parametrize("jobs", [1, 3, 50])
async def test_tree_when_run_does_everything_once_and_directories_after_their_contents(jobs: int) -> None:
    recorder = Recorder()
    tree = make_tree(2, 3)
    await run_post_order(tree, jobs, recorder.leaf, recorder.branch)
    files, directories = tree.count()
    assert len(set(recorder.done)) == len(recorder.done) == files + directories
    places = {what: place for place, what in enumerate(recorder.done)}
    for what, place in places.items():
        if what.endswith("/"):
            prefix = "" if what == "/" else what
            assert all(places[other] <= place for other in places if other.startswith(prefix))
    assert recorder.most <= jobs and (jobs == 1 or recorder.most > 1)


async def test_work_when_one_piece_fails_ends_with_its_error_and_nothing_left_running() -> None:
    recorder = Recorder(fails="d1/f1")
    with pytest.raises(ValueError, match="d1/f1"):
        await run_post_order(make_tree(2, 3), 4, recorder.leaf, recorder.branch)
    assert recorder.running == 0


async def test_work_when_cancelled_cancels_what_runs() -> None:
    recorder = Recorder()
    forever: Deferred[None] = Deferred()

    async def wait(path: tuple[str, ...], branch: Branch, leaf: Leaf) -> None:
        recorder.running += 1
        try:
            await forever
        finally:
            recorder.running -= 1

    task = Deferred.fromCoroutine(run_post_order(make_tree(0, 3), 1, wait, recorder.branch))
    assert recorder.running == 1
    task.cancel()
    errors: list[object] = []
    task.addErrback(errors.append)
    assert errors and recorder.running == 0


async def test_empty_directory_when_run_is_done() -> None:
    recorder = Recorder()
    await run_post_order(Branch(""), 2, recorder.leaf, recorder.branch)
    assert recorder.done == ["/"]
