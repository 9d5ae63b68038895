"""Private names of Twisted, Foolscap and pyOpenSSL that Grid uses: decision 0196 lists each with its test.

Found by looking at the classes: in a class of ours that inherits from one of theirs, every underscored name that
theirs has too and ours uses or replaces. So a name of ours that collides with one of theirs by chance is found as well.
"""

from __future__ import annotations

import ast
import inspect
import pkgutil
import re
from collections import defaultdict
from functools import cache
from importlib import import_module
from pathlib import Path

import grid

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "docs" / "decisions" / "0196-private-names.md"
LIBRARIES = ("twisted", "foolscap", "treq", "OpenSSL")

_OURS = re.compile(r"def (_[a-zA-Z]\w*)|\bself\.(_[a-zA-Z]\w*)")
_ROW = re.compile(r"^\| `(\w+)` \| (.+?) \| .+? \| (.+?) \|$", re.MULTILINE)
_NAME = re.compile(r"`(\w+)`")


@cache
def private_names_of(theirs: type) -> frozenset[str]:
    """Every underscored name that a class of theirs defines or uses on itself."""
    try:
        text = inspect.getsource(theirs)
    except (OSError, TypeError):
        return frozenset()
    return frozenset(name for pair in _OURS.findall(text) for name in pair if name)


def classes() -> set[type]:
    """Every class of Grid that inherits from a library's."""
    found = set()
    for module in pkgutil.walk_packages(grid.__path__, "grid."):
        if module.name.endswith(("__main__", "._lanes")):
            continue
        for value in vars(import_module(module.name)).values():
            if isinstance(value, type) and value.__module__.startswith("grid.") and theirs_of(value):
                found.add(value)
    return found


def theirs_of(ours: type) -> list[type]:
    return [base for base in ours.__mro__ if base.__module__.partition(".")[0] in LIBRARIES]


def inherited_uses() -> dict[str, set[str]]:
    """Class of ours -> underscored names that its library bases have and it uses or replaces."""
    found: dict[str, set[str]] = defaultdict(set)
    for ours in classes():
        used = {name for name in private_names_of(ours) if not name.startswith("__")}
        for theirs in theirs_of(ours):
            found[ours.__name__] |= used & private_names_of(theirs)
    return {name: names for name, names in found.items() if names}


def outside_uses() -> dict[str, set[str]]:
    """ "imports" and "objects" -> underscored names imported from a library, and those asked of an object not our own."""
    trees = [ast.parse(path.read_text()) for path in (ROOT / "src" / "grid").rglob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    ours = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}
    ours |= {node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
             and isinstance(node.value, ast.Name) and node.value.id in {"self", "cls", "twin"}}  # fmt: skip
    ours |= {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    imports: set[str] = set()
    objects: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in LIBRARIES:
            path = (node.module or "").split(".")
            imports |= {part for part in path if part.startswith("_")}
            imports |= {alias.name for alias in node.names if alias.name.startswith("_")}
        elif isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            on_itself = isinstance(node.value, ast.Name) and node.value.id in {"self", "cls", "os", "sys"}
            if not on_itself and node.attr not in ours:
                objects.add(node.attr)
    return {"imports": imports, "objects": objects}


def listed() -> tuple[dict[str, set[str]], set[str]]:
    """Class -> names, as the record has them; and the tests that it names."""
    rows = _ROW.findall(RECORD.read_text())
    assert rows
    return (
        {name: set(_NAME.findall(names)) for name, names, _ in rows},
        {test for *_, tests in rows for test in _NAME.findall(tests)},
    )


def test_private_names_when_compared_with_the_record_are_those_that_it_lists() -> None:
    assert inherited_uses() | outside_uses() == listed()[0]


def test_tests_that_the_record_names_are_there() -> None:
    texts = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    assert {test for test in listed()[1] if f"def {test}(" not in texts} == set()
