"""Tests that were compiled ahead are what pytest loads."""

from __future__ import annotations

from pathlib import Path

from _pytest.assertion.rewrite import PYC_TAIL, _read_pyc

from tests.support.compiled_tests import compile_test

TEXT = "def test_one():\n    assert 1 == 1\n"


def test_test_when_compiled_ahead_is_loaded_with_its_assertions_rewritten(tmp_path: Path) -> None:
    path = tmp_path / "test_one.py"
    path.write_text(TEXT)
    compiled = compile_test(path)
    assert compiled == tmp_path / "__pycache__" / f"test_one{PYC_TAIL}"
    assert list(compiled.parent.iterdir()) == [compiled]
    code = _read_pyc(path, compiled)
    assert code is not None and "@pytest_ar" in code.co_names
    path.write_text(TEXT.replace("1 == 1", "1 == 2"))
    assert _read_pyc(path, compiled) is None
