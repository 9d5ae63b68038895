"""The sources as the rules see them: every file of the tree read once, and parsed if it is Python."""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from attrs import field, frozen

ROOT = Path(__file__).resolve().parent.parent.parent

Finding = tuple[str, str]
"""The rule, and what breaks it: a path from the root, with `::name` for a part of a module. Found twice, it counts twice."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@frozen
class Module:
    """One source file, read and parsed once. nodes: all of the tree, which most rules go through."""

    path: str
    text: str = field(repr=False)
    tree: ast.Module = field(repr=False)
    nodes: tuple[ast.AST, ...] = field(repr=False)

    @property
    def name(self) -> str:
        """Dotted, as it is imported."""
        parts = list(Path(self.path).with_suffix("").parts)
        if parts[0] == "src":
            del parts[0]
        if parts[-1] == "__init__":
            del parts[-1]
        return ".".join(parts)


@cache
def modules(folder: str) -> tuple[Module, ...]:
    """Every Python file below this folder of the project."""
    found = []
    gc.disable()  # Nothing of all this is garbage yet.
    try:
        for path in sorted((ROOT / folder).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            tree = ast.parse(text)
            found.append(Module(path.relative_to(ROOT).as_posix(), text, tree, tuple(ast.walk(tree))))
    finally:
        gc.enable()
    assert found, f"nothing below {folder}"
    return tuple(found)


def sources() -> tuple[Module, ...]:
    """What is shipped or measured with."""
    return (*modules("src"), *modules("perf"), *modules("scripts"))


def everything() -> tuple[Module, ...]:
    """The tests too, except the rules themselves, which name what they forbid."""
    return tuple(module for module in (*sources(), *modules("tests")) if not is_rule(module.path))


def is_rule(path: str) -> bool:
    """Whether a file is a part of these checks."""
    return path == "tests/test_tidy.py" or path.startswith("tests/tidy/")


def functions(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, Function]]:
    """Every function below the node, with its dotted name inside the module."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + child.name, child
            yield from functions(child, prefix + child.name + ".")
        elif isinstance(child, ast.ClassDef):
            yield from functions(child, prefix + child.name + ".")
        elif not isinstance(child, ast.expr):  # No expression holds a function that has a name.
            yield from functions(child, prefix)
