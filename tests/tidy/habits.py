"""Habits: docstrings, exceptions, prints, the reactor, tests that are run, and work that is done."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.tidy.tree import ROOT, Finding, Function, everything, functions, modules, sources

FORBIDDEN_NAMES = {"util", "utils", "common", "helper", "helpers", "misc", "interface", "interfaces"}

WORK_PUT_OFF = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")
BARE_IGNORE = re.compile(r"#\s*type:\s*ignore(?!\[[a-z])")


def undocumented() -> Iterator[Finding]:
    """(rule, what) for each module, public class or public function of the sources without a docstring."""
    for module in sources():
        if ast.get_docstring(module.tree) is None and module.text.strip():
            yield "docstring", module.path
        yield from _undocumented_in(module.path, module.tree, "")


def _undocumented_in(path: str, node: ast.Module | ast.ClassDef, prefix: str) -> Iterator[Finding]:
    for child in node.body:
        if not isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) or child.name.startswith("_"):
            continue
        if ast.get_docstring(child) is None and not _says_enough(child):
            yield "docstring", f"{path}::{prefix}{child.name}"
        if isinstance(child, ast.ClassDef):
            yield from _undocumented_in(path, child, f"{prefix}{child.name}.")


def _says_enough(node: ast.ClassDef | Function) -> bool:
    """A Protocol's stub of a property, an overload, or the setter of a documented property."""
    decorators = {ast.unparse(decorator).rpartition(".")[2] for decorator in node.decorator_list}
    if decorators & {"overload", "setter", "override"}:
        return True
    only = node.body[0] if len(node.body) == 1 else None
    stub = isinstance(only, ast.Expr) and isinstance(only.value, ast.Constant) and only.value.value is ...
    return stub and "property" in decorators


def forbidden_names() -> Iterator[Finding]:
    """(rule, what) for each module whose name says nothing about its contents."""
    for module in everything():
        if FORBIDDEN_NAMES & set(Path(module.path).with_suffix("").parts):
            yield "module name", module.path


def work_put_off() -> Iterator[Finding]:
    """(rule, what) for each mark of something left for later."""
    for module in everything():
        for number, line in enumerate(module.text.splitlines(), 1):
            if WORK_PUT_OFF.search(line):
                yield "work put off", f"{module.path}:{number}"


def bare_ignores() -> Iterator[Finding]:
    """(rule, what) for each type error silenced without saying which."""
    for module in everything():
        for number, line in enumerate(module.text.splitlines(), 1):
            if BARE_IGNORE.search(line):
                yield "bare type ignore", f"{module.path}:{number}"


def waiting_handlers() -> Iterator[Finding]:
    """(rule, what) for each handler that awaits more than a cleanup: the exception's frames live as long as it does."""
    for module in sources():
        for node in module.nodes:
            if not isinstance(node, ast.ExceptHandler) or _raises_again(node):
                continue
            waits = ast.Await | ast.AsyncFor | ast.AsyncWith | ast.Yield
            if any(isinstance(each, waits) for statement in node.body for each in ast.walk(statement)):
                yield "await in a handler", f"{module.path}:{node.lineno}"


def reactor_importers() -> Iterator[Finding]:
    """(rule, what) for each module outside node, cli and library that imports the reactor."""
    for module in modules("src"):
        if module.name.startswith(("grid.node", "grid.cli", "grid.library")):
            continue
        for node in module.nodes:
            named = []
            if isinstance(node, ast.ImportFrom):
                named = [f"{node.module}.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Import):
                named = [alias.name for alias in node.names]
            if any(name.startswith("twisted.internet.reactor") for name in named):
                yield "reactor", module.path


def broad_excepts() -> Iterator[Finding]:
    """(rule, what) for each handler, outside drive and cli, that catches everything and does not raise it again."""
    for module in modules("src"):
        if module.name == "grid.drive" or module.name.startswith("grid.cli"):
            continue
        for name, function in functions(module.tree):
            for node in ast.walk(function):
                if isinstance(node, ast.ExceptHandler) and _is_broad(node.type) and not _raises_again(node):
                    yield "broad except", f"{module.path}::{name}"


def _is_broad(caught: ast.expr | None) -> bool:
    if caught is None:
        return True
    parts = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    return any(isinstance(part, ast.Name) and part.id in {"Exception", "BaseException"} for part in parts)


def _raises_again(handler: ast.ExceptHandler) -> bool:
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


def prints() -> Iterator[Finding]:
    """(rule, what) for each print of the package outside cli."""
    for module in modules("src"):
        if module.name.startswith("grid.cli"):
            continue
        for node in module.nodes:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
                yield "print", module.path


def parser_asserts() -> Iterator[Finding]:
    """(rule, what) for each assert where bytes from outside are read: functions named parse_, and all of wire.

    `assert x is not None` is for the type checker, and passes.
    """
    for module in modules("src"):
        for name, function in functions(module.tree):
            reads_outside = name.rpartition(".")[2].startswith("parse_") or module.name.startswith("grid.wire.")
            asserts = (node for node in ast.walk(function) if isinstance(node, ast.Assert))
            if reads_outside and not all(_tests_for_none(node.test) for node in asserts):
                yield "assert in a parser", f"{module.path}::{name}"


def _tests_for_none(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and ast.unparse(test).endswith((" is None", " is not None"))


def async_leftovers() -> Iterator[Finding]:
    """(rule, what) for each use of inlineCallbacks, which `async def` has replaced."""
    for module in everything():
        for node in module.nodes:
            name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
            if name.endswith("inlineCallbacks"):
                yield "inlineCallbacks", module.path


def put_aside_tests() -> Iterator[Finding]:
    """(rule, what) for each test that is skipped or expected to fail."""
    for module in modules("tests"):
        for node in module.nodes:
            if isinstance(node, ast.Attribute) and node.attr in {"skip", "skipif", "xfail", "importorskip"}:
                yield "test put aside", module.path


def untidy_test_folders() -> Iterator[Finding]:
    """(rule, what) for each folder of tests that is not a package: two tests of one name would collide."""
    for folder in {path.parent for path in (ROOT / "tests").rglob("*.py")}:
        if not (folder / "__init__.py").exists():
            yield "test package", folder.relative_to(ROOT).as_posix()
