"""fsspec's suite for implementations, `fsspec.tests.abstract`, on a grid that the environment names.

It runs in a process of its own, in which the reactor is free to run: see tests/filesystem/programs.py.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fsspec.tests.abstract import (
    AbstractCopyTests,
    AbstractFixtures,
    AbstractGetTests,
    AbstractOpenTests,
    AbstractPipeTests,
    AbstractPutTests,
)

from grid.filesystem.system import GridFileSystem
from tests.support.key_pool import pooled_keys

PRIME_COUNT = 80
"""Enough for 3160 directories."""


@pytest.fixture(scope="module", autouse=True)
def keys() -> Iterator[None]:
    """Finding the keys of all its directories would take most of the suite's time."""
    with pooled_keys(PRIME_COUNT):
        yield


class GridFixtures(AbstractFixtures):
    """Where the suite works: below the alias `suite`."""

    @pytest.fixture
    def fs(self) -> Any:
        """The one file system of the process."""
        return GridFileSystem(directory=os.environ["GRID_SUITE_DIRECTORY"])

    @pytest.fixture
    def fs_path(self) -> str:
        """A directory that the suite makes."""
        return "suite/files"

    @pytest.fixture
    def fs_join(self) -> Callable[..., str]:
        """Paths have slashes."""
        return lambda *parts: "/".join(parts)


class TestCopy(AbstractCopyTests, GridFixtures):
    """Within the grid."""


class TestGet(AbstractGetTests, GridFixtures):
    """To this machine."""


class TestPut(AbstractPutTests, GridFixtures):
    """From this machine."""


class TestOpen(AbstractOpenTests, GridFixtures):
    """Files opened for writing that must not be there yet."""


class TestPipe(AbstractPipeTests, GridFixtures):
    """Bytes written to files that must not be there yet."""
