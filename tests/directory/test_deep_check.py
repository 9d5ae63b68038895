"""Deep checks and repairs: what they count and repair, and that one bad object does not end them."""

from __future__ import annotations

import random

import pytest
from attrs import evolve

from grid.caps import ChkCap, DirectoryCap, KnownCap, LitCap, UnknownChild
from grid.directory.deep_check import CheckCounters, Checked, deep_check
from grid.directory.pack import Child
from grid.errors import CapError, NotEnoughSharesError
from grid.mutable.sources import MemorySource
from grid.ports import ServerVersion
from grid.storage.calls.service import StorageService
from grid.storage.files.paths import SHARES, index_name
from grid.storage.settings import StorageSettings
from tests.support.tree_grid import TreeGrid


@pytest.fixture
def grid() -> TreeGrid:
    """Ten servers whose shares a test may take away."""
    return TreeGrid()


def tree(grid: TreeGrid) -> dict[str, KnownCap]:
    """A tree of every kind, by name; the root is ""."""
    chk = grid.run(grid.store.put_immutable(MemorySource(random.Random(1).randbytes(5000))))
    ssk = grid.run(grid.store.put_mutable(b"a mutable file"))
    held = grid.run(grid.store.put_mutable(b"one that others may write", format="mdmf"))
    inner = grid.run(grid.store.create_immutable_directory({"chk": Child(target=chk), "lit": Child(target=LIT)}))
    made: dict[str, KnownCap] = {"chk": chk, "ssk": ssk, "read": held.read_cap(), "inner": inner}
    children = {name: Child(target=cap) for name, cap in made.items()}
    children |= {"lit": Child(target=LIT), "new": Child(target=UnknownChild(read=b"ro.x-new"))}
    return made | {"": grid.make(children=children).cap}


LIT = LitCap(data=b"small")


def lose(grid: TreeGrid, cap: KnownCap, count: int) -> None:
    """Let that many servers lose their shares of a file."""
    assert cap.storage_index is not None
    name = index_name(cap.storage_index)
    folder = f"{SHARES}/{name[:2]}/{name}"
    holders = [disk for disk in grid.disks if disk.exists(folder)]
    for disk in holders[:count]:
        for number, _ in disk.list_directory(folder):
            disk.unlink(f"{folder}/{number}")
    assert len(holders) >= count


def check(
    grid: TreeGrid, cap: KnownCap, *, verify: bool = False, add_lease: bool = False, repair: bool = False
) -> tuple[list[Checked], CheckCounters]:
    """All results, and their totals."""
    counters = CheckCounters()
    results = grid.gather(
        deep_check(grid.client(), as_directory(cap), verify=verify, add_lease=add_lease, repair=repair)
    )
    for checked in results:
        counters.add(checked)
    return results, counters


def of(results: list[Checked], *path: str) -> Checked:
    """The result of one object."""
    [found] = [checked for checked in results if checked.visited.path == path]
    return found


@pytest.mark.parametrize("verify", [False, True])
def test_check_when_all_is_well_then_counts_what_has_shares_in_the_order_of_the_walk(
    grid: TreeGrid, verify: bool
) -> None:
    results, counters = check(grid, tree(grid)[""], verify=verify, add_lease=True)
    paths = [(), ("new",), ("chk",), ("lit",), ("read",), ("ssk",), ("inner",), ("inner", "lit")]
    assert [checked.visited.path for checked in results] == paths
    assert counters.to_json(repair=False) == {
        "count-objects-checked": 5,
        "count-objects-healthy": 5,
        "count-objects-unhealthy": 0,
        "count-objects-unrecoverable": 0,
        "count-corrupt-shares": 0,
    }
    literal, unknown = of(results, "lit"), of(results, "new")
    assert literal.health is not None and literal.health.healthy and not literal.counts
    assert unknown.health is None and unknown.error is None and not unknown.counts


def test_check_when_shares_are_lost_then_says_which_objects_and_goes_on(grid: TreeGrid) -> None:
    caps = tree(grid)
    lose(grid, caps["chk"], 2)
    lose(grid, caps["ssk"], 8)
    results, counters = check(grid, caps[""])
    health = of(results, "chk").health
    assert health is not None and health.recoverable and not health.healthy
    assert counters.to_json(repair=False) == {
        "count-objects-checked": 5,
        "count-objects-healthy": 3,
        "count-objects-unhealthy": 2,
        "count-objects-unrecoverable": 1,
        "count-corrupt-shares": 0,
    }


@pytest.mark.parametrize("verify", [False, True])
def test_repair_when_some_can_be_repaired_then_they_are_and_the_rest_is_reported(grid: TreeGrid, verify: bool) -> None:
    caps = tree(grid)
    lose(grid, caps["chk"], 2)
    lose(grid, caps[""], 3)
    lose(grid, caps["ssk"], 9)
    lose(grid, caps["read"], 1)
    results, counters = check(grid, caps[""], repair=True, verify=verify)
    read_only = of(results, "read")
    assert read_only.health is not None and read_only.health.recoverable and not read_only.health.healthy
    assert read_only.repair is not None and not read_only.repair.attempted
    assert counters.to_json(repair=True) == {
        "count-objects-checked": 5,
        "count-objects-healthy-pre-repair": 1,
        "count-objects-unhealthy-pre-repair": 4,
        "count-objects-unrecoverable-pre-repair": 1,
        "count-corrupt-shares-pre-repair": 0,
        "count-objects-healthy-post-repair": 3,
        "count-objects-unhealthy-post-repair": 2,
        "count-objects-unrecoverable-post-repair": 1,
        "count-corrupt-shares-post-repair": 0,
        "count-repairs-attempted": 3,
        "count-repairs-successful": 2,
        "count-repairs-unsuccessful": 1,
    }
    again, after = check(grid, caps[""], verify=True)
    assert (after.before.healthy, after.before.unhealthy) == (3, 2)
    assert len(again) == len(results)


def crowd(grid: TreeGrid, left: int) -> tuple[dict[str, KnownCap], list[StorageService]]:
    """A tree on the first servers only, and the servers that were away."""
    servers = grid.servers[:]
    del grid.servers[left:]
    happy, grid.encoding = grid.encoding, evolve(grid.encoding, happy=left)
    grid.store = grid.client()
    caps = tree(grid)
    grid.encoding = happy
    return caps, servers[left:]


@pytest.mark.parametrize("verify", [False, True])
def test_repair_when_healthy_objects_are_on_too_few_servers_then_spreads_them_once(
    grid: TreeGrid, verify: bool
) -> None:
    caps, away = crowd(grid, 2)
    grid.servers.extend(away)
    _, found = check(grid, caps[""], verify=verify)
    assert (found.before.healthy, found.before.unhealthy) == (5, 0)
    assert (found.before.crowded, found.before.spreadable) == (5, 5)
    assert found.to_json(repair=False)["count-objects-crowded"] == 5
    _, mended = check(grid, caps[""], repair=True, verify=verify)
    assert (mended.repairs_attempted, mended.repairs_successful) == (4, 4)  # One is held by its read capability.
    assert (mended.before.crowded, mended.after.crowded, mended.after.healthy) == (5, 1, 5)
    counts = mended.to_json(repair=True)
    assert (counts["count-objects-crowded-pre-repair"], counts["count-objects-crowded-post-repair"]) == (5, 1)
    _, again = check(grid, caps[""], repair=True)
    assert (again.repairs_attempted, again.before.crowded) == (0, 1)
    del grid.servers[:2]
    results, lost = check(grid, caps[""])
    assert lost.before.unrecoverable == 1 and of(results, "chk").health is not None


def test_repair_when_no_other_server_is_there_then_tries_nothing_and_counts_it(grid: TreeGrid) -> None:
    caps, _ = crowd(grid, 2)
    grid.sent()
    for _ in range(2):
        _, counters = check(grid, caps[""], repair=True)
        assert (counters.repairs_attempted, counters.before.crowded, counters.before.spreadable) == (0, 5, 0)


class FullServer(StorageService):
    """A server that has no room, and has said so."""

    @property
    def known_version(self) -> ServerVersion:
        return ServerVersion(
            application="full", maximum_immutable_share_size=0, maximum_mutable_share_size=2**40, available_space=0
        )


def test_repair_when_all_other_servers_are_full_then_tries_nothing_until_one_has_room(grid: TreeGrid) -> None:
    caps, away = crowd(grid, 2)
    settings = StorageSettings(readonly=True)
    full = [
        FullServer(one.identity, disk, grid.runtime, settings) for one, disk in zip(away, grid.disks[2:], strict=True)
    ]
    grid.servers.extend(full)
    grid.sent()
    check(grid, caps[""])
    asked = grid.sent()
    for _ in range(2):
        _, counters = check(grid, caps[""], repair=True)
        assert (counters.repairs_attempted, counters.before.crowded, counters.before.spreadable) == (0, 5, 0)
        assert grid.sent() == asked, "no more is read or sent than for a check"
    grid.servers[2:] = away
    _, counters = check(grid, caps[""], repair=True)
    assert (counters.repairs_attempted, counters.repairs_successful) == (4, 4)


def test_repair_when_the_cap_only_reads_and_all_is_well_then_is_not_unrecoverable(grid: TreeGrid) -> None:
    root = tree(grid)[""].read_cap()
    _, counters = check(grid, root, repair=True, verify=True)
    assert counters.before.healthy == counters.after.healthy == counters.objects_checked == 5
    assert counters.before.unrecoverable == counters.repairs_attempted == 0


def test_check_when_a_directory_cannot_be_read_then_it_is_counted_before_the_check_ends_or_goes_on(
    grid: TreeGrid,
) -> None:
    caps = tree(grid)
    lose(grid, caps["inner"], 10)
    seen: list[Checked] = []

    async def strict() -> None:
        async for checked in deep_check(grid.client(), as_directory(caps[""])):
            assert checked not in seen
            seen.append(checked)

    with pytest.raises(NotEnoughSharesError):
        grid.run(strict())
    last = of(seen, "inner").health
    assert last is not None and not last.recoverable and len(seen) == 7
    unreadable: list[tuple[str, ...]] = []
    results = grid.gather(
        deep_check(
            grid.client(), as_directory(caps[""]), on_unreadable=lambda visited, error: unreadable.append(visited.path)
        )
    )
    assert unreadable == [("inner",)] and len(results) == 7


def as_directory(cap: KnownCap) -> DirectoryCap:
    assert isinstance(cap, DirectoryCap)
    return cap


def test_check_when_a_cap_is_impossible_then_its_error_is_counted_and_the_rest_goes_on(
    grid: TreeGrid,
) -> None:
    bad = ChkCap(key=bytes(16), ueb_hash=bytes(32), needed=9, total=3, size=1000)
    root = grid.make(children={"bad": Child(target=bad), "lit": Child(target=LIT)})
    for repair in (False, True):
        results, counters = check(grid, root.cap, repair=repair)
        assert isinstance(of(results, "bad").error, CapError)
        assert (counters.objects_checked, counters.failed_checks) == (2, 1)
        assert (counters.before.healthy, counters.before.unhealthy) == (1, 1)
        assert counters.repairs_attempted == 0


def test_check_when_its_consumer_stops_then_nothing_goes_on(grid: TreeGrid) -> None:
    caps = tree(grid)

    async def stop_early() -> None:
        results = deep_check(grid.client(), as_directory(caps[""]), verify=True)
        async for _ in results:
            break
        await results.aclose()

    grid.run(stop_early())
    grid.runtime.settle()
    grid.sent()
    grid.runtime.settle()
    assert grid.sent() == {}
