"""Assigns tests to the processes of pytest-xdist, and orders them.

Whatever may run long starts first, so that no process is left alone with it in the end.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling

SHARED_GRIDS = {
    "tahoe-servers over HTTP": r"over_http\.py::.*[\[-]tahoe-servers\b|http_transport\.py::.*[\[-]tahoe-servers\b",
    "grid-servers over HTTP": r"over_http\.py::.*[\[-]grid-servers\b|http_transport\.py::.*[\[-]grid-servers\b",
    "mixed-servers over HTTP": r"over_http\.py::.*[\[-]mixed-servers\b",
    "tahoe-servers": r"[\[-]tahoe-servers\b",
    "grid-servers": r"[\[-]grid-servers\b",
    "mixed-servers": r"[\[-]mixed-servers\b",
    "gateways": r"test_(cli_through_gateway|gateway_exchanges|gateway_tahoe_cli)\.py::",
}
"""The grids that several modules of tests/interop share: name -> what is in the names of tests that use it."""

_LONG = re.compile(
    r"\b(subprocess|node_process|process_grid|grid_executable|local_grid|perf\.everything|RuleBasedStateMachine|schemathesis|running import)\b"
)
"""What is in the source of tests that start processes, or that Hypothesis drives through a state machine."""


class ByGrid(LoadScopeScheduling):
    """Keeps tests of one grid, or else of one module, together and in their order."""

    def _split_scope(self, nodeid: str) -> str:
        return _scope(nodeid)


def long_first(items: list[pytest.Item]) -> None:
    """Sort the tests for workers: modules with long tests before the others, the larger ones first."""
    key = sort_key(
        [item.nodeid for item in items], {item.nodeid: may_run_long(item.path) for item in items}.__getitem__
    )
    items.sort(key=lambda item: key(item.nodeid))


def sort_key(nodeids: list[str], is_long: Callable[[str], bool]) -> Callable[[str], tuple[bool, int, int]]:
    """The order of tests: those of one scope stay together, in the order that they have."""
    first: dict[str, int] = {}
    counts: dict[str, int] = {}
    long: dict[str, bool] = {}
    for place, nodeid in enumerate(nodeids):
        scope = _scope(nodeid)
        first.setdefault(scope, place)
        counts[scope] = counts.get(scope, 0) + 1
        long[scope] = long.get(scope, scope in SHARED_GRIDS) or is_long(nodeid)
    return lambda nodeid: (not long[_scope(nodeid)], -counts[_scope(nodeid)], first[_scope(nodeid)])


@cache
def may_run_long(path: Path) -> bool:
    """Whether the tests of a file start processes or drive state machines, by its source."""
    return bool(_LONG.search(path.read_text()))


def _scope(nodeid: str) -> str:
    shared = (name for name, pattern in SHARED_GRIDS.items() if re.search(pattern, nodeid))
    return next(shared, nodeid.partition("::")[0])
