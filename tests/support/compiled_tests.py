"""Compiles the tests as pytest does, which rewrites their assertions, and what they import: python -m tests.support.compiled_tests.

Processes that run them side by side then find them compiled. In a fresh checkout each compiled them all, which took 15 of the 22 seconds
of processor time that it needed to collect them.
"""

from __future__ import annotations

import re
from compileall import compile_dir
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from pathlib import Path

# Nothing public compiles a test without running it.
from _pytest.assertion.rewrite import PYC_TAIL, _rewrite_test, _write_pyc_fp, get_cache_dir

from tests.support.warm_server import import_grid

TESTS = Path(__file__).resolve().parents[1]
TEST = re.compile(r"/(test_[^/]*|conftest)\.py$")


def main() -> None:
    """Compile all tests, and meanwhile import what most of them do."""
    paths = [path for path in TESTS.rglob("*.py") if TEST.search(str(path))]
    with ProcessPoolExecutor() as pool:
        compiled = pool.map(compile_test, paths, chunksize=16)
        compile_dir(TESTS, quiet=1, rx=TEST)
        for name in ("hypothesis", "pytest_twisted", "xdist.remote", "xdist.workermanage"):
            import_module(name)
        import_grid("")
        list(compiled)


def compile_test(path: Path) -> Path:
    """Compile a test to where pytest looks for it, whole or not at all; the compiled file."""
    source_hash, code = _rewrite_test(path, None)  # type: ignore[arg-type]
    compiled = get_cache_dir(path) / f"{path.stem}{PYC_TAIL}"
    compiled.parent.mkdir(exist_ok=True)
    made = compiled.with_suffix(".new")
    with made.open("wb") as file:
        _write_pyc_fp(file, source_hash, code)
    made.replace(compiled)
    return compiled


if __name__ == "__main__":
    main()
