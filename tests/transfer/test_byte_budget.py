"""Memory for files in transit: who begins when, and that all of it comes back."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.transfer.memory import ByteBudget, Holding, Needs, steady

LARGE = Needs(whole=8, first=5, last=4)


def test_budget_when_full_makes_others_wait_in_order() -> None:
    async def case() -> list[str]:
        budget, order = ByteBudget(10), list[str]()
        release = asyncio.Event()

        async def one(name: str, size: int) -> None:
            async with budget.hold(steady(size)):
                order.append(name)
                if name == "first":
                    await release.wait()

        tasks = []
        for name, size in (("first", 8), ("large", 5), ("small", 1)):
            tasks.append(asyncio.create_task(one(name, size)))
            await asyncio.sleep(0)
        assert order == ["first"], "a small one does not overtake"
        release.set()
        await asyncio.gather(*tasks)
        return order

    assert asyncio.run(case()) == ["first", "large", "small"]


def test_budget_when_a_block_is_larger_than_all_of_it_gives_all() -> None:
    async def case() -> None:
        budget = ByteBudget(10)
        async with asyncio.timeout(60):
            async with budget.hold(steady(1000)):
                pass
            async with budget.hold(steady(10)):
                pass

    asyncio.run(case())


def test_budget_when_a_holder_fails_or_a_waiter_is_cancelled_loses_nothing() -> None:
    async def case() -> None:
        budget = ByteBudget(10)
        with pytest.raises(RuntimeError):
            async with budget.hold(steady(7)):
                raise RuntimeError

        async def wait() -> None:
            async with budget.hold(steady(7)):
                pass

        async with budget.hold(steady(7)):
            waiter = asyncio.create_task(wait())
            await asyncio.sleep(0)
            waiter.cancel()
            await asyncio.gather(waiter, return_exceptions=True)
        async with asyncio.timeout(60), budget.hold(steady(10)):
            pass

    asyncio.run(case())


async def _turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_next_large_file_begins_once_the_one_before_was_read_and_waits_for_its_rest_until_that_ends() -> None:
    async def case() -> list[str]:
        budget, seen, leave = ByteBudget(10), list[str](), asyncio.Event()

        async def first() -> None:
            async with budget.hold(LARGE) as holding:
                await holding.rest()
                seen.append("first")
                await _turns()
                holding.ended()
                seen.append("first ends")
                await leave.wait()
                seen.append("first is gone")

        async def second() -> None:
            async with budget.hold(LARGE) as holding:
                seen.append("second")
                await holding.rest()
                seen.append("second has all")

        async def small() -> None:
            async with budget.hold(steady(1)):
                seen.append("small")

        tasks = [asyncio.create_task(each()) for each in (first, second, small)]
        await _turns()
        await _turns()
        assert seen == ["first", "first ends", "second"], "nobody overtakes the one that waits for its rest"
        leave.set()
        await asyncio.gather(*tasks)
        return seen

    assert asyncio.run(case())[3:5] == ["first is gone", "second has all"]


def test_only_one_file_begins_early_so_that_none_waits_for_another_that_waits() -> None:
    async def case() -> None:
        budget, begun, leave = ByteBudget(20), list[int](), asyncio.Event()

        async def one(number: int) -> None:
            async with budget.hold(LARGE) as holding:
                begun.append(number)
                await holding.rest()
                await leave.wait()
                holding.ended()

        tasks = [asyncio.create_task(one(number)) for number in range(9)]
        await _turns()
        assert begun == [0, 1], "4 of 20 are left: too few even for the beginning of a third"
        leave.set()
        async with asyncio.timeout(60):
            await asyncio.gather(*tasks)
        assert begun == list(range(9))

    asyncio.run(case())


def test_file_that_is_read_again_after_its_end_does_not_wait() -> None:
    async def case() -> None:
        budget = ByteBudget(10)
        async with asyncio.timeout(60), budget.hold(LARGE) as holding:
            holding.ended()
            async with budget.hold(LARGE) as other:
                assert (holding.size, other.size) == (4, 5)
                await holding.rest()
                assert (holding.size, other.size) == (8, 5)
                holding.ended()
                assert (holding.size, other.size) == (4, 5)
        async with asyncio.timeout(60), budget.hold(steady(10)):
            pass

    asyncio.run(case())


_needs = st.tuples(st.integers(1, 30), st.integers(1, 30), st.integers(0, 30)).map(lambda t: Needs(*t).within(30))


@given(st.lists(st.tuples(_needs, st.sampled_from(["read", "fail", "read again", "unread"])), max_size=12))
def test_every_file_gets_its_turn_and_all_memory_comes_back(files: Sequence[tuple[Needs, str]]) -> None:
    async def case() -> None:
        budget, held, most = ByteBudget(20), list[Holding](), 0

        async def one(needs: Needs, way: str) -> None:
            nonlocal most
            async with budget.hold(needs) as holding:
                held.append(holding)
                if way != "read again":
                    most = max(most, sum(each.size for each in held))
                await asyncio.sleep(0)
                if way == "unread":
                    return
                await holding.rest()
                assert holding.size == needs.within(20).whole
                await asyncio.sleep(0)
                if way == "fail":
                    raise RuntimeError
                holding.ended()
                if way == "read again":
                    await holding.rest()
                await asyncio.sleep(0)

        async with asyncio.timeout(60):
            ends = await asyncio.gather(*(one(*each) for each in files), return_exceptions=True)
            async with budget.hold(steady(20)) as everything:
                assert everything.size == 20
        assert [isinstance(end, RuntimeError) for end in ends] == [way == "fail" for _, way in files]
        assert not any(each.size for each in held)
        if all(way != "read again" for _, way in files):
            assert most <= 20

    asyncio.run(case())
