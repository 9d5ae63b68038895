"""Moving links: metadata, refusals, concurrent moves by other clients, and clients that die midway."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from twisted.internet.defer import Deferred, DeferredList

from grid.caps import DirectoryCap, LitCap, StorageIndex, UnknownChild
from grid.directory import moving
from grid.directory.edits import Edit, RemoveChild, SetChild
from grid.directory.moving import follow_trail, move
from grid.directory.node import Directory
from grid.directory.pack import Child
from grid.directory.store import Trail
from grid.engine.grid import Encoding
from grid.errors import ConflictError, ExistingChildError, GridError, LinkChangedError, NoSuchChildError
from tests.support.depth import examples, spread
from tests.support.tree_grid import TreeGrid

FILE = LitCap(data=b"file")
OTHER = LitCap(data=b"other")


@pytest.fixture(scope="module")
def grid() -> TreeGrid:
    """One grid for all tests here; they make directories of their own."""
    return TreeGrid()


def made(grid: TreeGrid, *names: str) -> Directory:
    """A directory in which each name is a file."""
    return grid.make(children={name: Child(target=FILE) for name in names})


def branch(grid: TreeGrid, path: str, root: Directory | None = None) -> Directory:
    """A directory (a new one) in which there are directories at this path."""
    root = root or grid.make()
    grid.run(root.make_directories(path.split("/")))
    return root


def shift(grid: TreeGrid, source: DirectoryCap, name: str, target: DirectoryCap, new: str, **options: Any) -> None:
    """Move between directories known only by their capabilities."""
    grid.run(grid.client().move(Trail.of(source), name, Trail.of(target), new, **options))


def mv(grid: TreeGrid, root: DirectoryCap, old: str, new: str) -> None:
    """Move between paths of one root."""

    async def body() -> None:
        store = grid.client()
        *above, name = old.split("/")
        *target, new_name = new.split("/")
        trails = [await follow_trail(store, root, each) for each in (above, target)]
        await store.move(trails[0], name, trails[1], new_name)

    grid.run(body())


def below(grid: TreeGrid, root: DirectoryCap) -> set[StorageIndex | None]:
    """Storage indexes of all directories that a new client finds below a root."""
    store, found, waiting = grid.client(), {root.storage_index}, [root]
    while waiting:
        for child in grid.run(store.directory(waiting.pop()).list()).values():
            if isinstance(child.target, DirectoryCap) and child.target.storage_index not in found:
                found.add(child.target.storage_index)
                waiting.append(child.target)
    return found


def test_link_when_moved_then_user_metadata_goes_along_and_the_old_link_is_gone(grid: TreeGrid) -> None:
    source = grid.make(children={"a": Child(target=FILE, metadata={"user": 1, "tahoe": {"linkcrtime": 1.0}})})
    target = made(grid, "old")
    shift(grid, source.cap, "a", target.cap, "b")
    assert grid.names(source.cap) == []
    moved = grid.run(target.get(["b"]))
    assert moved.target == FILE and moved.metadata["user"] == 1
    assert moved.metadata["tahoe"] != {"linkcrtime": 1.0}
    shift(grid, target.cap, "b", target.cap, "old")
    assert grid.names(target.cap) == ["old"]
    with pytest.raises(NoSuchChildError):
        shift(grid, target.cap, "no", source.cap, "no")


def test_link_when_moved_onto_itself_then_nothing_is_written(grid: TreeGrid) -> None:
    trail = Trail.of(made(grid, "é").cap)
    grid.sent()
    grid.run(grid.store.move(trail, "é", trail, "e\u0301"))
    assert grid.sent() == {}


def test_link_when_not_to_overwrite_then_stays(grid: TreeGrid) -> None:
    source, target = made(grid, "a"), made(grid, "a")
    with pytest.raises(ExistingChildError):
        shift(grid, source.cap, "a", target.cap, "a", overwrite=False)
    assert grid.names(source.cap) == ["a"]


@pytest.mark.parametrize("new", ["a/moved", "a/b/moved", "a/b/c/moved", "again/moved", "again/b/c/moved"])
def test_directory_when_moved_below_itself_by_a_path_then_it_is_refused(grid: TreeGrid, new: str) -> None:
    root = branch(grid, "a/b/c")
    grid.run(root.edit([SetChild("again", grid.run(root.get(["a"])).target)]))
    before = below(grid, root.cap)
    with pytest.raises(GridError, match="below it"):
        mv(grid, root.cap, "a", new)
    assert grid.names(root.cap) == ["a", "again"] and below(grid, root.cap) == before


@pytest.mark.parametrize("path", ["a", "a/b", "a/b/c"])
@pytest.mark.parametrize("kind", ["itself", "by a read-only link", "through an immutable directory"])
def test_directory_when_moved_below_itself_by_a_capability_then_it_is_refused(
    grid: TreeGrid, path: str, kind: str
) -> None:
    root = branch(grid, "a/b/c")
    target = grid.run(root.get(path.split("/"))).target
    assert isinstance(target, DirectoryCap)
    if kind == "by a read-only link":
        # What moves is seen with the power to read alone, and so is everything below it.
        moved = grid.run(root.get(["a"])).target
        assert isinstance(moved, DirectoryCap)
        grid.run(root.edit([SetChild("a", DirectoryCap(moved.body.read_cap()))]))
    source = root
    if kind == "through an immutable directory":
        source = grid.make(children={"a": grid.run(root.get(["a"]))})
    with pytest.raises(GridError, match="below it"):
        shift(grid, source.cap, "a", target, "moved")
    assert grid.names(source.cap) == ["a"]


def test_directory_when_moved_by_the_capability_of_its_own_root_further_down_then_it_is_refused(grid: TreeGrid) -> None:
    root = branch(grid, "a/b")
    inner = grid.run(root.get(["a", "b"])).target
    assert isinstance(inner, DirectoryCap)
    grid.run(grid.store.directory(inner).edit([SetChild("up", root.cap)]))
    with pytest.raises(GridError, match="below it"):
        shift(grid, inner, "up", root.cap, "moved")


def test_directory_when_moved_beside_or_above_or_out_then_it_moves(grid: TreeGrid) -> None:
    root = branch(grid, "a/b/c")
    branch(grid, "side/deep", root)
    everything = below(grid, root.cap)
    mv(grid, root.cap, "a/b/c", "a/c")
    mv(grid, root.cap, "a/c", "c")
    mv(grid, root.cap, "a", "side/deep/a")
    assert grid.names(root.cap) == ["c", "side"] and below(grid, root.cap) == everything
    side, deep = (grid.run(root.get(path)).target for path in (["side"], ["side", "deep"]))
    assert isinstance(side, DirectoryCap) and isinstance(deep, DirectoryCap)
    shift(grid, root.cap, "c", side, "c")
    shift(grid, side, "c", root.cap, "c")
    assert below(grid, root.cap) == everything


def test_directory_when_it_links_to_its_target_that_is_elsewhere_too_then_it_moves(grid: TreeGrid) -> None:
    root = branch(grid, "a")
    grid.run(root.make_directories(["b"]))
    b = grid.run(root.get(["b"])).target
    grid.run(grid.store.directory(grid.run(root.get(["a"])).target).edit([SetChild("to b", b)]))  # type: ignore[arg-type]
    mv(grid, root.cap, "a", "b/a")
    assert grid.names(root.cap) == ["b"] and len(below(grid, root.cap)) == 3


def test_directory_when_too_much_is_below_it_to_search_then_it_is_refused_and_a_path_helps(
    grid: TreeGrid, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moving, "MAX_SEARCHED", 3)
    root = branch(grid, "a/b/c/d/e")
    elsewhere = grid.make()
    with pytest.raises(GridError, match=r"more than 3 directories are below it; .*link it there first"):
        shift(grid, root.cap, "a", elsewhere.cap, "a")
    assert grid.names(root.cap) == ["a"] and grid.names(elsewhere.cap) == []
    grid.run(root.edit([SetChild("elsewhere", elsewhere.cap)]))
    shift(grid, root.cap, "a", elsewhere.cap, "a")
    assert grid.names(root.cap) == ["elsewhere"] and grid.names(elsewhere.cap) == ["a"]


def test_directory_when_something_below_it_cannot_be_read_then_it_is_refused(grid: TreeGrid) -> None:
    lost = DirectoryCap(grid.run(grid.store.put_mutable(b"this is no directory")))
    inner = grid.make(children={"lost": Child(target=lost)})
    root, elsewhere = grid.make(children={"a": Child(target=inner.cap)}), grid.make()
    with pytest.raises(GridError, match="cannot be read"):
        shift(grid, root.cap, "a", elsewhere.cap, "a")
    assert grid.names(root.cap) == ["a"]


def test_object_when_it_holds_no_directories_then_nothing_is_searched(grid: TreeGrid) -> None:
    immutable = grid.run(grid.store.create_immutable_directory({"x": Child(target=FILE)}))
    unknown = UnknownChild(write=b"x-write", read=b"ro.x-read")
    for target in (FILE, immutable, unknown):
        source, other = grid.make(children={"a": Child(target=target)}), grid.make()
        shift(grid, source.cap, "a", other.cap, "b")
        assert grid.names(source.cap) == [] and grid.names(other.cap) == ["b"]


def test_removal_when_a_link_that_it_relies_on_is_gone_then_it_is_refused(grid: TreeGrid) -> None:
    root = branch(grid, "a")
    branch(grid, "b", root)
    a, b = (grid.run(root.get([name])).target for name in "ab")
    assert isinstance(a, DirectoryCap) and isinstance(b, DirectoryCap)
    for beside in ((("c", b),), (("b", a),)):
        with pytest.raises(LinkChangedError):
            grid.run(root.edit([RemoveChild("a", beside=beside)]))
    grid.run(root.edit([RemoveChild("a", beside=(("b", DirectoryCap(b.body.read_cap())),))]))
    assert grid.names(root.cap) == ["b"]


class Paused:
    """A directory, each use of which waits for as long as its client's script says, or dies there."""

    def __init__(self, store: PausedStore, cap: DirectoryCap) -> None:
        self.cap, self._store = cap, store
        self._directory = store.store.directory(cap)

    async def list(self) -> Mapping[str, Child]:
        """As `Directory.list`."""
        await self._store.pause()
        return await self._directory.list()

    async def edit(self, edits: Sequence[Edit]) -> object:
        """As `Directory.edit`, with a pause before and one after."""
        await self._store.pause()
        done = await self._directory.edit(edits)
        await self._store.pause()
        return done


class Died(Exception):
    """The client is no more."""


class PausedStore:
    """A client whose steps happen when a script wants them. pauses: one for each step, None to die there."""

    def __init__(self, grid: TreeGrid, pauses: Sequence[int | None]) -> None:
        self.store, self.runtime = grid.client(), grid.runtime
        self._pauses = list(pauses)

    async def pause(self) -> None:
        """Wait as long as the script says; not at all when it has ended."""
        duration = self._pauses.pop(0) if self._pauses else 0
        if duration is None:
            raise Died
        await self.runtime.clock.sleep(duration)

    def directory(self, cap: DirectoryCap) -> Paused:
        """One directory."""
        return Paused(self, cap)


def together(grid: TreeGrid, root: DirectoryCap, moves: Sequence[tuple[str, str]], scripts: Any) -> list[Any]:
    """Both moves at once, from the root; the outcome of each: (whether it was done, None or the failure)."""

    async def one(old: str, new: str, pauses: Sequence[int | None]) -> None:
        store: Any = PausedStore(grid, pauses)
        *above, name = old.split("/")
        *target, new_name = new.split("/")
        trails = [await follow_trail(store, root, each) for each in (above, target)]
        await move(store, trails[0], name, trails[1], new_name)

    async def both() -> list[Any]:
        tasks = [Deferred.fromCoroutine(one(*names, script)) for names, script in zip(moves, scripts, strict=True)]
        return await DeferredList(tasks, consumeErrors=True)

    return grid.run(both())


RACES = [
    ([("A", "B/x/A"), ("B", "A/y/B")], ["A/y", "B/x"]),
    ([("p/A", "q/B/x/A"), ("q/B", "p/A/y/B")], ["p/A/y", "q/B/x"]),
    ([("p/A", "B/x/A"), ("B", "p/A/y/B")], ["p/A/y", "B/x"]),
    ([("p/A", "q/A"), ("q", "p/A/q")], ["p/A", "q"]),
]
"""Two moves, each of which alone is all right, and that together make a loop which nothing leads to; and what is there."""


class Stage:
    """Restore the tree for each example: creating new directories takes too long."""

    def __init__(self, grid: TreeGrid, paths: Sequence[str]) -> None:
        every = {"/".join(path.split("/")[:depth]) for path in paths for depth in range(len(path.split("/")) + 1)}
        self._grid = grid
        self._directories = {path: grid.make() for path in sorted(every)}
        self.root = self._directories[""].cap

    def at(self, path: str) -> Directory:
        """The directory that is laid out there."""
        return self._directories[path]

    def lay(self) -> None:
        """Each directory in the one above it, and nothing else anywhere."""
        for path, directory in self._directories.items():
            inside = {
                below.rpartition("/")[2]: each.cap
                for below, each in self._directories.items()
                if below and below.rpartition("/")[0] == path
            }
            found = self._grid.run(directory.list())
            if {name: child.target for name, child in found.items()} == inside:
                continue
            gone = [RemoveChild(name) for name in found if name not in inside]
            self._grid.run(directory.edit([*gone, *(SetChild(name, cap) for name, cap in inside.items())]))


@pytest.fixture(scope="module")
def small() -> TreeGrid:
    """A grid on which a publish is cheap: two servers, one of which is enough."""
    return TreeGrid(2, Encoding(k=1, n=2, happy=1))


@pytest.fixture(scope="module")
def stages(small: TreeGrid) -> list[Stage]:
    """The tree of each race."""
    return [Stage(small, paths) for _, paths in RACES]


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(race=st.integers(0, len(RACES) - 1), scripts=st.tuples(*[st.lists(st.integers(0, 3), max_size=14)] * 2))
def test_directories_when_two_clients_move_each_into_the_other_then_nothing_is_lost(
    small: TreeGrid, stages: list[Stage], race: int, scripts: Any
) -> None:
    moves, stage = RACES[race][0], stages[race]
    stage.lay()
    before = below(small, stage.root)
    outcomes = together(small, stage.root, moves, scripts)
    assert below(small, stage.root) == before
    for is_done, failure in outcomes:
        assert is_done or issubclass(failure.type, GridError), failure


@pytest.mark.parametrize("race", range(len(RACES)))
def test_directories_when_two_clients_move_in_step_then_nothing_is_lost(
    small: TreeGrid, stages: list[Stage], race: int
) -> None:
    """One client waits at a step until the other has reached about the same one: the data that each has read is outdated when it writes."""
    moves, stage = RACES[race][0], stages[race]
    met = 0
    for step in spread(range(14), 2):
        for other in spread(range(max(0, step - 2), min(14, step + 2)), 2):
            stage.lay()
            before = below(small, stage.root)
            scripts = [[0] * step + [5], [0] * other + [5]]
            outcomes = together(small, stage.root, moves, scripts)
            assert below(small, stage.root) == before, scripts
            met += any(not is_done and failure.check(ConflictError) for is_done, failure in outcomes)
    assert met


@pytest.mark.parametrize("race", range(len(RACES)))
def test_directory_when_its_mover_dies_at_any_step_then_it_is_linked_somewhere(
    small: TreeGrid, stages: list[Stage], race: int
) -> None:
    moves, stage = RACES[race][0], stages[race]
    died = 0
    for step in range(20):
        stage.lay()
        before = below(small, stage.root)
        [(is_done, failure)] = together(small, stage.root, moves[:1], [[0] * step + [None]])
        assert is_done or failure.check(Died)
        died += not is_done
        assert below(small, stage.root) == before
        if not is_done:
            old, new = moves[0]
            try:
                mv(small, stage.root, old, new)
            except NoSuchChildError:
                small.run(small.store.directory(stage.root).get(new.split("/")))
            assert below(small, stage.root) == before
        else:
            break
    assert 5 < died < 20


@pytest.mark.parametrize("paths", [["p", "q"], ["p/x", "q"]], ids=["file", "directory"])
def test_link_when_another_client_moves_it_back_meanwhile_then_it_is_linked_somewhere(
    small: TreeGrid, paths: list[str]
) -> None:
    """The first waits before each of its steps in turn; the second begins and ends meanwhile."""
    stage = Stage(small, paths)
    places = [stage.at("p"), stage.at("q")]
    crossed = 0
    for step in range(3, 10):
        stage.lay()
        if "p/x" not in paths:
            small.run(places[0].edit([SetChild("x", FILE)]))
        first, second = together(small, stage.root, [("p/x", "q/x"), ("q/x", "p/x")], [[0] * step + [4], [2]])
        assert ["x"] in [small.names(place.cap) for place in places], step
        crossed += second[0] and not first[0] and first[1].check(ConflictError) is not None
    assert crossed
