"""Walks: order and uniqueness against a model; read-ahead, failures, cancellation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from twisted.internet.defer import CancelledError, Deferred

from grid.caps import ChkCap, DirectoryCap, KnownCap, LitCap, SdmfWriteCap, UnknownChild
from grid.directory import walk as walk_module
from grid.directory.edits import SetChild
from grid.directory.file_store import FileStore
from grid.directory.node import Directory
from grid.directory.pack import Child, Target, make_entry, pack_directory
from grid.directory.walk import AHEAD, REPORTED_AT_ONCE, Path, Visited, walk
from grid.errors import AuthorityError, FormatError, GridError, NotEnoughSharesError
from tests.support.depth import examples
from tests.support.tree_grid import TreeGrid

LIT = LitCap(data=b"small")
UNKNOWN = UnknownChild(read=b"ro.x-new")
CHKS = [ChkCap(key=bytes([n]) * 16, ueb_hash=bytes(32), needed=3, total=10, size=100 + n) for n in range(3)]
SSK = SdmfWriteCap(write_key=bytes(16), fingerprint=bytes(32))
COUNT = 5


@pytest.fixture(scope="module")
def grid() -> TreeGrid:
    """One grid for all tests here."""
    return TreeGrid()


@pytest.fixture(scope="module")
def caps(grid: TreeGrid) -> list[DirectoryCap]:
    """Directories whose contents each test makes its own."""
    return [grid.make().cap for _ in range(COUNT)]


def fill(grid: TreeGrid, cap: DirectoryCap, children: Mapping[str, Target]) -> None:
    """Make these the contents of a directory."""
    assert isinstance(cap.body, SdmfWriteCap)
    entries = {
        name: make_entry(name, Child(target=target), mutable=True, write_key=cap.body.write_key)
        for name, target in children.items()
    }
    grid.run(grid.store.open_mutable(cap).overwrite(pack_directory(entries)))


Graph = Mapping[DirectoryCap, Mapping[str, Target]]
"""What is in each directory, by its read cap."""


def visit(cap: DirectoryCap, path: Path, graph: Graph, found: set[str]) -> Iterator[tuple[Path, str | None]]:
    """The walk as its specification says it, one step after the other."""
    yield path, cap.to_string()
    files: list[tuple[Path, KnownCap]] = []
    folders: list[tuple[Path, DirectoryCap]] = []
    children = graph[cap.read_cap()]
    for name in sorted(children):
        target = children[name] if cap.authority == "write" else weaker(children[name])
        if isinstance(target, UnknownChild):
            yield (*path, name), (target.read or b"").decode()
            continue
        verify = target.verify_cap()
        if verify is not None:
            if verify.to_string() in found:
                continue
            found.add(verify.to_string())
        if isinstance(target, DirectoryCap):
            folders.append(((*path, name), target))
        else:
            files.append(((*path, name), target))
    for where, file in files:
        yield where, file.to_string()
    for where, folder in folders:
        yield from visit(folder, where, graph, found)


def weaker(target: Target) -> Target:
    return target if isinstance(target, UnknownChild) else target.read_cap()


Drawn = Target | tuple[int, bool]
"""A target, or (which directory, whether by its write cap)."""


def resolve(caps: list[DirectoryCap], children: Mapping[str, Drawn]) -> dict[str, Target]:
    """The children as they are stored."""
    resolved: dict[str, Target] = {}
    for name, drawn in children.items():
        if isinstance(drawn, tuple):
            resolved[name] = caps[drawn[0]] if drawn[1] else caps[drawn[0]].read_cap()
        else:
            resolved[name] = drawn
    return resolved


GRAPHS = st.lists(
    st.dictionaries(
        st.sampled_from(["a", "b", "c", "é", "zz"]),
        st.one_of(
            st.tuples(st.integers(0, COUNT - 1), st.booleans()),
            st.sampled_from([LIT, UNKNOWN, SSK, SSK.read_cap(), *CHKS]),
        ),
        max_size=5,
    ),
    min_size=COUNT,
    max_size=COUNT,
)


@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn=GRAPHS, writing=st.booleans())
def test_walk_when_directories_link_each_other_at_random_then_matches_the_model(
    grid: TreeGrid, caps: list[DirectoryCap], drawn: list[dict[str, Drawn]], writing: bool
) -> None:
    graph: Graph = {cap.read_cap(): resolve(caps, children) for cap, children in zip(caps, drawn, strict=True)}
    for cap in caps:
        fill(grid, cap, graph[cap.read_cap()])
    root = caps[0] if writing else caps[0].read_cap()
    verify = root.verify_cap()
    assert verify is not None
    expected = list(visit(root, (), graph, {verify.to_string()}))
    assert [(visited.path, visited.cap) for visited in grid.gather(walk(grid.client(), root))] == expected


def test_walk_when_it_reports_then_directories_come_with_children_and_sizes(grid: TreeGrid) -> None:
    inner = grid.run(grid.store.create_immutable_directory({"lit": Child(target=LIT)}))
    root = grid.make(children={"inner": Child(target=inner), "chk": Child(target=CHKS[1]), "ssk": Child(target=SSK)})
    top, *others = grid.gather(walk(grid.store, root.cap))
    assert top.children == grid.run(root.list()) and top.is_directory
    assert top.size == len(grid.run(grid.store.open_mutable(root.cap).read_all()))
    assert [(v.path, v.size, v.children and list(v.children)) for v in others] == [
        (("chk",), 101, None),
        (("ssk",), None, None),
        (("inner",), grid.run(grid.store.size(inner)), ["lit"]),
        (("inner", "lit"), 5, None),
    ]
    assert "URI:" not in repr(others)
    assert Visited(path=(), target=UnknownChild()).cap is None


def test_walk_when_its_cap_only_verifies_then_is_refused(grid: TreeGrid, caps: list[DirectoryCap]) -> None:
    verify = caps[0].verify_cap()
    assert verify is not None
    with pytest.raises(AuthorityError):
        grid.gather(walk(grid.store, verify))


def wide_tree(grid: TreeGrid, width: int) -> DirectoryCap:
    """A root over immutable directories of one file each."""
    children = {}
    for index in range(width):
        data = LitCap(data=b"%03d" % index * 18)
        inner = grid.run(grid.store.create_immutable_directory({"file": Child(target=data)}))
        children[f"{index:03}"] = Child(target=inner)
    return grid.make(children=children).cap


def opened(monkeypatch: pytest.MonkeyPatch) -> list[KnownCap]:
    """The directories that stores open from here on, in order."""
    noted: list[KnownCap] = []
    original = FileStore.directory

    def directory(store: FileStore, cap: DirectoryCap) -> Directory:
        noted.append(cap)
        return original(store, cap)

    monkeypatch.setattr(FileStore, "directory", directory)
    return noted


@pytest.mark.parametrize(("raw", "room"), [(2**20, True), (1, False)])
def test_walk_when_the_tree_is_wide_then_reads_ahead_and_not_too_far(
    grid: TreeGrid, monkeypatch: pytest.MonkeyPatch, raw: int, room: bool
) -> None:
    width = 30
    root = wide_tree(grid, width)
    monkeypatch.setattr(walk_module, "AHEAD_BYTES", raw)
    noted = opened(monkeypatch)

    async def body() -> list[int]:
        distances = []
        visits = 0
        async for visited in walk(grid.client(), root):
            if visited.is_directory:
                visits += 1
                # A consumer that takes its time: everything that is read ahead gets here.
                await grid.runtime.clock.sleep(60.0)
                distances.append(len(noted) - visits)
        return distances

    distances = grid.run(body())
    assert len(noted) == len(set(noted)) == width + 1
    assert max(distances) <= AHEAD
    steady = distances[1:-AHEAD]
    # Where there is room the next ones are always at hand; where there is none, they are once these are gone.
    assert (min(steady) == AHEAD) == room


@pytest.mark.parametrize("lenient", [False, True])
def test_walk_when_a_directory_cannot_be_read_then_it_is_reported_and_the_walk_ends_or_goes_on(
    grid: TreeGrid, lenient: bool
) -> None:
    gone = DirectoryCap(CHKS[0])
    garbled = DirectoryCap(grid.run(grid.store.put_mutable(b"no directory")))
    good = grid.run(grid.store.create_immutable_directory({"f": Child(target=LIT)}))
    root = grid.make(children={n: Child(target=t) for n, t in {"b": gone, "c": garbled, "a": good, "d": good}.items()})
    seen: list[Path] = []
    errors: list[tuple[Path, type]] = []

    def note(visited: Visited, error: GridError) -> None:
        assert visited.children is None
        errors.append((visited.path, type(error)))

    async def body() -> None:
        visits = walk(grid.store, root.cap, on_unreadable=note if lenient else None)
        async for visited in visits:
            assert visited.path not in seen
            seen.append(visited.path)

    if lenient:
        grid.run(body())
        assert errors == [(("b",), NotEnoughSharesError), (("c",), FormatError)]
        assert seen == [(), ("a",), ("a", "f"), ("b",), ("c",), ("d",), ("d", "f")]
    else:
        with pytest.raises(NotEnoughSharesError):
            grid.run(body())
        assert seen == [(), ("a",), ("a", "f"), ("b",)]


def test_walk_when_its_consumer_stops_then_nothing_is_read_any_more(grid: TreeGrid) -> None:
    root = wide_tree(grid, 20)

    async def stop_early() -> None:
        iterator = walk(grid.client(), root)
        async for visited in iterator:
            if visited.path:
                break
        await iterator.aclose()

    grid.run(stop_early())
    grid.runtime.settle()
    grid.events.clear()
    grid.runtime.settle()
    assert grid.events == []


def test_walk_when_cancelled_while_it_reads_then_ends_at_once(grid: TreeGrid) -> None:
    root = wide_tree(grid, 4)
    outcome: list[object] = []

    async def body() -> None:
        async for _ in walk(grid.client(), root):
            pass

    task = Deferred.fromCoroutine(body())
    task.addBoth(outcome.append)
    task.cancel()
    [failure] = outcome
    assert isinstance(failure.value, CancelledError)  # type: ignore[attr-defined]
    grid.runtime.settle()


def test_walk_when_a_chain_is_deep_then_recursion_is_no_limit(grid: TreeGrid) -> None:
    cap = grid.run(grid.store.create_immutable_directory({"end": Child(target=LIT)}))
    for _ in range(150):
        cap = grid.run(grid.store.create_immutable_directory({"n": Child(target=cap)}))
    visits = grid.gather(walk(grid.client(), cap))
    assert len(visits) == 152 and len(visits[-1].path) == 151


def test_walk_when_the_tree_changes_under_it_then_still_ends(grid: TreeGrid) -> None:
    root = grid.make()
    inner = grid.run(root.make_directory("inner"))

    async def body() -> list[Path]:
        seen = []
        async for visited in walk(grid.client(), root.cap):
            seen.append(visited.path)
            if len(seen) < 10:
                await inner.edit([SetChild(f"back{len(seen)}", root.cap)])
        return seen

    assert grid.run(body()) == [(), ("inner",)]


def test_walk_when_directories_are_large_then_they_are_not_kept_before_their_turn(
    grid: TreeGrid, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walk_module, "LARGE_BYTES", 100)
    large = {f"{number}": Child(target=LitCap(data=b"%d" % number)) for number in range(10)}
    inside = {f"d{number}": Child(target=grid.make(children=large).cap) for number in range(4)}
    root = grid.make(children=inside)
    found = grid.gather(walk(grid.client(), root.cap))
    assert [each.path for each in found if each.children is not None] == [(), *((name,) for name in sorted(inside))]
    assert len(found) == 5 + 4 * 10


def test_walk_when_its_consumer_never_pauses_then_it_does(grid: TreeGrid) -> None:
    many = {f"{number:05}": Child(target=LitCap(data=b"x")) for number in range(500)}
    root = grid.make(children=many)
    most = turns = 0

    async def body() -> None:
        nonlocal most, turns
        counted = 0

        def turn() -> None:
            nonlocal most, turns, counted
            most, turns, counted = max(most, counted), turns + 1, 0
            if turns < 1000:
                grid.runtime.clock.call_later(0, turn)

        turn()
        async for _ in walk(grid.store, root.cap):
            counted += 1

    grid.run(body())
    assert 0 < most <= 2 * REPORTED_AT_ONCE
    grid.runtime.settle()
