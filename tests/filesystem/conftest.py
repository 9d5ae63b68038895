"""Third-party packages that the file system's tests use; a missing one is skipped by name."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

import pytest


@pytest.fixture(scope="session")
def require() -> Callable[[str], None]:
    """Skips the test unless the packages are installed."""

    def require(names: str) -> None:
        missing = [name for name in names.split() if find_spec(name) is None]
        if missing:
            pytest.skip(f"not installed: {', '.join(missing)}")

    return require
