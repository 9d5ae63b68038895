"""Which tests run with every change, and which only in `make test-deep` (decision 347).

A test whose rows hold one claim again and again carries one of three marks; pytest then leaves out the rows that add nothing new:

- `each_value`: rows in which each value of each parameter occurs.
- `each_pair`: rows in which each value of each parameter meets each value of the others.
- `rows(count)`: that many rows, evenly spread, of a test whose rows differ by a seed.

The rows left out get the mark `deep`. No test may be deep in all of its rows: its claim would be gone from `make test`. The mark
`nightly("tests/test_x.py::test_y")` makes an exception for a costly test, whose claim that other test, or those, hold by
cheaper means with every change.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, settings

T = TypeVar("T")

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "dev")
DEEP = PROFILE in {"deep", "search"}
"""Whether this run looks at everything."""

SEARCH_EXAMPLES = 5000
SHARE = 6
"""Every change runs one in this number of the examples that a test asks for."""

Value = tuple[int, str]
"""The number of a parameter, and the name of its value."""


def load_profile() -> None:
    """Have Hypothesis draw as many examples as HYPOTHESIS_PROFILE says: dev, ci, deep or search."""
    settings.register_profile(
        "dev", max_examples=40, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
    )
    parent = settings.get_profile("dev")
    # The same examples at every run: a change turns red because of itself, never because of the day's luck.
    settings.register_profile("ci", parent=parent, max_examples=25, derandomize=True, database=None)
    # Other examples every night. A failing one is printed and is the whole reproduction, here and with `search`.
    settings.register_profile("deep", parent=parent, max_examples=200)
    # By hand, for hours.
    settings.register_profile("search", parent=parent, max_examples=SEARCH_EXAMPLES)
    settings.load_profile(PROFILE)


def examples(deep: int) -> int:
    """`max_examples` of a property that has a number of its own. deep: the number in a deep run."""
    return max(deep, SEARCH_EXAMPLES) if PROFILE == "search" else deep if DEEP else -(-deep // SHARE)


def spread(values: Sequence[T], step: int) -> Sequence[T]:
    """All of the values in a deep run, else every step-th: for loops inside a test."""
    return values if DEEP else values[::step]


def covering(rows: Sequence[Sequence[Value]], size: int) -> set[int]:
    """Indexes of a few rows that hold every combination of `size` values which any row holds, and each value about as often as the others."""
    held = [set(combinations(row, min(size, len(row)))) for row in rows]
    missing = set().union(*held)
    chosen: set[int] = set()
    uses: Counter[Value] = Counter()
    while missing:
        best = max(
            range(len(rows)), key=lambda index: (len(held[index] & missing), -sum(uses[value] for value in rows[index]))
        )
        chosen.add(best)
        missing -= held[best]
        uses.update(rows[best])
    return chosen


class Depth:
    """The plugin; tests/conftest.py registers it, before pytest chooses by marks."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: Sequence[pytest.Item]) -> None:
        """Mark the rows that repeat others' claims."""
        tests: dict[str, list[pytest.Function]] = {}
        for item in items:
            if isinstance(item, pytest.Function):
                tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
        for rows in tests.values():
            _mark(rows)
        if not any("::" in argument for argument in config.args):
            _require_daily(tests)


def _mark(rows: Sequence[pytest.Function]) -> None:
    kept = set() if rows[0].get_closest_marker("nightly") else _kept(rows)
    for index in set(range(len(rows))) - kept:
        rows[index].add_marker("deep")


def _require_daily(tests: Mapping[str, Sequence[pytest.Function]]) -> None:
    """Raise UsageError for a claim that only a deep run would hold."""
    nightly = {name for name, rows in tests.items() if all(row.get_closest_marker("deep") for row in rows)}
    for name in nightly:
        mark = tests[name][0].get_closest_marker("nightly")
        if mark is None:
            raise pytest.UsageError(f"{name}: every row is deep, so make test would not hold what it claims")
        for other in mark.args:
            folder_is_whole = any(each.startswith(other.partition("::")[0] + "::") for each in tests)
            if other in nightly or (folder_is_whole and other not in tests):
                raise pytest.UsageError(f"{name}: {other}, which is to hold its claim, is not in make test")


def _kept(rows: Sequence[pytest.Function]) -> set[int]:
    for name, size in (("each_value", 1), ("each_pair", 2)):
        if rows[0].get_closest_marker(name):
            # Of names that pytest gives to the values, one for each list of values: `k, n` is one parameter.
            return covering([list(enumerate(row.callspec._idlist)) for row in rows], size)
    if mark := rows[0].get_closest_marker("rows"):
        count = min(mark.args[0], len(rows))
        return {index * len(rows) // count for index in range(count)}
    return set(range(len(rows)))
