"""Sizes: of modules, functions, and class attributes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.tidy.tree import Finding, Module, everything, functions, sources

SHORTEST_MODULE = 60
LONGEST_MODULE = 400
LONGEST_FUNCTION = 70
MOST_OF_A_PLAN = 12
MOST_OF_A_CLASS = 14


def long_modules() -> Iterator[Finding]:
    """Modules that are two."""
    for module in everything():
        if len(module.text.splitlines()) > LONGEST_MODULE:
            yield "module too long", module.path


def short_modules() -> Iterator[Finding]:
    """Modules of the sources that belong with their only importer, or their nearest sibling."""
    for module in sources():
        if not module.path.endswith("__init__.py") and len(module.text.splitlines()) < SHORTEST_MODULE:
            yield "module too short", module.path


def long_functions() -> Iterator[Finding]:
    """Functions that are several."""
    for module in everything():
        for name, function in functions(module.tree):
            if (function.end_lineno or 0) - function.lineno + 1 > LONGEST_FUNCTION:
                yield "function too long", f"{module.path}::{name}"


def wide_classes() -> Iterator[Finding]:
    """Classes with too many attributes: one finding for each attribute above the limit."""
    for module in sources():
        for node in module.nodes:
            if isinstance(node, ast.ClassDef):
                most = MOST_OF_A_PLAN if is_plan(module, node) else MOST_OF_A_CLASS
                for _ in range(len(attributes(node)) - most):
                    yield "class too wide", f"{module.path}::{node.name}"


def is_plan(module: Module, node: ast.ClassDef) -> bool:
    """Whether a class decides and leaves doing to a driver."""
    return node.name.endswith("Plan") or module.name.endswith("_plan")


def attributes(node: ast.ClassDef) -> set[str]:
    """The attributes of a class: its fields, and those that its methods assign to self."""
    found = {
        child.target.id
        for child in node.body
        if isinstance(child, ast.AnnAssign)
        and isinstance(child.target, ast.Name)
        and "ClassVar" not in ast.unparse(child.annotation)
    }
    for part in ast.walk(node):
        match part:
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                found.add(name)
    return found
