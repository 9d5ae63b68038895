"""The rules of CONTRIBUTING.md that no linter knows, checked over every source by its syntax tree.

An exception to a rule is an entry in ALLOWED with its reason; an entry that nothing needs any more is an error.
"""

from __future__ import annotations

import ast
import configparser
import re
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest
from attrs import field, frozen

ROOT = Path(__file__).resolve().parent.parent

LONGEST_MODULE = 400
LONGEST_FUNCTION = 70

FORBIDDEN_NAMES = {"util", "utils", "common", "helper", "helpers", "misc", "interface", "interfaces"}

WORK_PUT_OFF = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")
BARE_IGNORE = re.compile(r"#\s*type:\s*ignore(?!\[[a-z])")
PRIVATE_KEY = re.compile(rb"-----BEGIN [A-Z ]*PRIVATE" + rb" KEY-----")

ALLOWED: dict[tuple[str, str], str] = {
    ("test put aside", "tests/immutable/test_vectors.py"): "the published vectors are not ours to ship, only to name",
    ("test put aside", "tests/interop/conftest.py"): "the peer is a program that only tox -e interop installs",
    ("test put aside", "tests/interop/programs/conftest.py"): "a program that cannot be installed is skipped by name",
    (
        "broad except",
        "src/grid/gateway/http/request.py::GatewayRequest._serve",
    ): "no mistake of ours may reach a client",
    ("broad except", "src/grid/wire/http/client/pool.py::Pool._connect"): "whatever it is, connecting failed",
    ("broad except", "src/grid/wire/single_flight.py::SingleFlight._land"): "nobody is left waiting for it",
    ("broad except", "src/grid/runtime.py::ThreadCpuPool._work"): "what a call raises is for whoever waits for it",
}
"""(rule, what it names) -> why that is right. What it names: a path from the root, with `::name` for a function."""

PURE_NAMES = (
    "grid.crypto.*",
    "grid.codec.*",
    "grid.placement.*",
    "grid.*.*plan",
    "grid.*.geometry",
    "grid.*.layout",
    "grid.*.ueb",
    "grid.*.encode",
    "grid.*.verify",
    "grid.*.sdmf",
    "grid.*.mdmf",
    "grid.*.versions",
    "grid.directory.pack",
    "grid.discovery.announcement*",
    "grid.storage.containers",
    "grid.storage.leases",
    "grid.storage.slots",
    "grid.wire.packed.share_ranges",
    "grid.wire.locators",
    "grid.wire.status",
    "grid.node.config",
    "grid.node.quantities",
)
"""Modules that are formats, kernels or plans by their names: the contract `pure` of setup.cfg must cover them."""

_SPEC_REFERENCE = re.compile(r"\[spec\b([^\]]*)\]")
_SPEC_ITEM = re.compile(r"(?:spec +)?(?:([a-z][a-z-]*)(?: +|$))?(?:(\d+(?:\.\d+)*)(?:-(\d+(?:\.\d+)*))?|([A-Z]))?$")
_HEADING = re.compile(r"^#+ +(?:Part +([A-Z])|(\d+(?:\.\d+)*))[. ]", re.MULTILINE)

Function = ast.FunctionDef | ast.AsyncFunctionDef


@frozen
class Module:
    """One source file, read and parsed once."""

    path: str
    text: str = field(repr=False)
    tree: ast.Module = field(repr=False)

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
def modules(*folders: str) -> tuple[Module, ...]:
    """Every Python file below these folders of the project."""
    found = []
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            found.append(Module(path.relative_to(ROOT).as_posix(), text, ast.parse(text)))
    assert found, f"nothing below {folders}"
    return tuple(found)


def sources() -> tuple[Module, ...]:
    """What is shipped or measured with."""
    return modules("src", "perf", "scripts")


def everything() -> tuple[Module, ...]:
    """The tests as well, without the file that you are reading."""
    return tuple(module for module in (*sources(), *modules("tests")) if module.path != "tests/test_tidy.py")


def functions(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, Function]]:
    """Every function below the node, with its dotted name inside the module."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + child.name, child
            yield from functions(child, prefix + child.name + ".")
        elif isinstance(child, ast.ClassDef):
            yield from functions(child, prefix + child.name + ".")
        else:
            yield from functions(child, prefix)


def long_modules() -> Iterator[tuple[str, str]]:
    """(rule, what) for each module that is two."""
    for module in everything():
        if len(module.text.splitlines()) > LONGEST_MODULE:
            yield "module length", module.path


def long_functions() -> Iterator[tuple[str, str]]:
    """(rule, what) for each function that is several."""
    for module in everything():
        for name, function in functions(module.tree):
            if (function.end_lineno or 0) - function.lineno + 1 > LONGEST_FUNCTION:
                yield "function length", f"{module.path}::{name}"


def undocumented() -> Iterator[tuple[str, str]]:
    """(rule, what) for each module, public class or public function of the sources that says nothing of itself."""
    for module in sources():
        if ast.get_docstring(module.tree) is None and module.text.strip():
            yield "docstring", module.path
        yield from _undocumented_in(module.path, module.tree, "")


def _undocumented_in(path: str, node: ast.Module | ast.ClassDef, prefix: str) -> Iterator[tuple[str, str]]:
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


def forbidden_names() -> Iterator[tuple[str, str]]:
    """(rule, what) for each module whose name says nothing."""
    for module in everything():
        if FORBIDDEN_NAMES & set(Path(module.path).with_suffix("").parts):
            yield "module name", module.path


def work_put_off() -> Iterator[tuple[str, str]]:
    """(rule, what) for each mark of something left for later."""
    for module in everything():
        for number, line in enumerate(module.text.splitlines(), 1):
            if WORK_PUT_OFF.search(line):
                yield "work put off", f"{module.path}:{number}"


def bare_ignores() -> Iterator[tuple[str, str]]:
    """(rule, what) for each type error silenced without saying which."""
    for module in everything():
        for number, line in enumerate(module.text.splitlines(), 1):
            if BARE_IGNORE.search(line):
                yield "bare type ignore", f"{module.path}:{number}"


def reactor_importers() -> Iterator[tuple[str, str]]:
    """(rule, what) for each module outside node, cli and library that takes the reactor from the air."""
    for module in modules("src"):
        if module.name.startswith(("grid.node", "grid.cli", "grid.library")):
            continue
        for node in ast.walk(module.tree):
            named = []
            if isinstance(node, ast.ImportFrom):
                named = [f"{node.module}.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Import):
                named = [alias.name for alias in node.names]
            if any(name.startswith("twisted.internet.reactor") for name in named):
                yield "reactor", module.path


def broad_excepts() -> Iterator[tuple[str, str]]:
    """(rule, what) for each handler, outside drive and cli, that catches whatever comes and does not raise it again."""
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


def prints() -> Iterator[tuple[str, str]]:
    """(rule, what) for each print of the package outside cli."""
    for module in modules("src"):
        if module.name.startswith("grid.cli"):
            continue
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
                yield "print", module.path


def parser_asserts() -> Iterator[tuple[str, str]]:
    """(rule, what) for each assert where bytes from outside are read: functions named parse_, and all of wire.

    `assert x is not None` is for the type checker, and passes.
    """
    for module in modules("src"):
        for name, function in functions(module.tree):
            reads_outside = name.rpartition(".")[2].startswith("parse_") or module.name.startswith("grid.wire.")
            asserts = [node for node in ast.walk(function) if isinstance(node, ast.Assert)]
            if reads_outside and not all(_tests_for_none(node.test) for node in asserts):
                yield "assert in a parser", f"{module.path}::{name}"


def _tests_for_none(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and ast.unparse(test).endswith((" is None", " is not None"))


def async_leftovers() -> Iterator[tuple[str, str]]:
    """(rule, what) for each use of inlineCallbacks, which `async def` has replaced."""
    for module in everything():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node).endswith("inlineCallbacks"):
                yield "inlineCallbacks", module.path


def put_aside_tests() -> Iterator[tuple[str, str]]:
    """(rule, what) for each test that is skipped or expected to fail."""
    for module in modules("tests"):
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Attribute) and node.attr in {"skip", "skipif", "xfail", "importorskip"}:
                yield "test put aside", module.path


def untidy_test_folders() -> Iterator[tuple[str, str]]:
    """(rule, what) for each folder of tests that is no package: two tests of one name would collide."""
    for folder in {path.parent for path in (ROOT / "tests").rglob("*.py")}:
        if not (folder / "__init__.py").exists():
            yield "test package", folder.relative_to(ROOT).as_posix()


@cache
def spec_sections(name: str) -> frozenset[str]:
    """The sections of docs/spec/NAME.md, as a reference names them; empty if there is no such file."""
    path = ROOT / "docs" / "spec" / f"{name}.md"
    if not path.exists():
        return frozenset()
    return frozenset(part or number for part, number in _HEADING.findall(path.read_text(encoding="utf-8")))


def unresolved(text: str) -> Iterator[str]:
    """Every reference to the specification in the text that leads nowhere, or is not one.

    Forms: [spec caps], [spec caps 2], [spec immutable 3, 10; placement 4-6], [spec immutable 12, step 3], [spec wire A],
    and a decision record by its path from the root beside them.
    """
    for inside in _SPEC_REFERENCE.findall(" ".join(re.sub(r"\n\s*#", " ", text).split())):
        name = ""
        for item in re.split(r"[,;] *", inside.strip()):
            if re.fullmatch(r"step \d+", item) or (item.startswith("docs/decisions/") and (ROOT / item).is_file()):
                continue
            match = _SPEC_ITEM.match(item)
            if match is None:
                yield inside.strip()
                break
            name = match[1] or name
            sections = spec_sections(name)
            if not sections or any(wanted and wanted not in sections for wanted in match.groups()[1:]):
                yield inside.strip()
                break


def dangling_references() -> Iterator[tuple[str, str]]:
    """(rule, what) for each reference to a section of the specification that is not there."""
    texts = [(module.path, module.text) for module in everything()]
    documents = [*ROOT.glob("*.md"), *(ROOT / "docs" / "decisions").glob("*.md")]
    texts += [(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")) for path in documents]
    for path, text in texts:
        for reference in unresolved(text):
            yield "spec reference", f"{path}: [spec {reference}]"


def private_keys() -> Iterator[tuple[str, str]]:
    """(rule, what) for each file of the tree with a private key in it; tests make theirs at run time."""
    for path in sorted(ROOT.rglob("*")):
        parts = path.relative_to(ROOT).parts
        generated = any(part.startswith(".") and part != ".ci" for part in parts) or parts[0] in {"build", "dist"}
        if not generated and path.is_file() and PRIVATE_KEY.search(path.read_bytes()):
            yield "private key", path.relative_to(ROOT).as_posix()


def uncovered_pure_modules() -> Iterator[tuple[str, str]]:
    """(rule, what) for each module that is pure by its name and missing from the import contract."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    patterns = config["importlinter:contract:pure"]["source_modules"].split()
    for module in modules("src"):
        named = any(fnmatch(module.name, name) for name in PURE_NAMES)
        if named and not any(_matches(pattern, module.name) for pattern in patterns):
            yield "pure contract", module.name


def _matches(pattern: str, name: str) -> bool:
    return name == pattern or (pattern.endswith(".**") and name.startswith(pattern[:-2]))


RULES: tuple[Callable[[], Iterator[tuple[str, str]]], ...] = (
    long_modules,
    long_functions,
    undocumented,
    forbidden_names,
    work_put_off,
    bare_ignores,
    reactor_importers,
    broad_excepts,
    prints,
    parser_asserts,
    async_leftovers,
    put_aside_tests,
    untidy_test_folders,
    dangling_references,
    private_keys,
    uncovered_pure_modules,
)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_rule_when_checked_over_the_tree_finds_nothing_but_what_is_allowed(
    rule: Callable[[], Iterator[tuple[str, str]]],
) -> None:
    found = sorted({entry for entry in rule() if entry not in ALLOWED})
    assert not found, "\n" + "\n".join(f"{name}: {what}" for name, what in found)


def test_allowances_when_nothing_needs_them_any_more_are_removed() -> None:
    found = {entry for rule in RULES for entry in rule()}
    assert not set(ALLOWED) - found


@pytest.mark.parametrize(
    "text",
    [
        "[spec nothing 1]",
        "[spec caps 99]",
        "[spec caps 2.9]",
        "[spec immutable 8, 10, 99]",
        "[spec immutable 12; placement 77]",
        "[spec caps 2-99]",
        "[spec wire Z]",
        "[spec immutable section 2]",
        "[spec]",
        "[spec immutable\n# 99]",
        "[spec caps 2; docs/decisions/0000-never.md]",
    ],
)
def test_spec_reference_when_it_leads_nowhere_is_found(text: str) -> None:
    assert list(unresolved(text))


@pytest.mark.parametrize(
    "text",
    [
        "[spec caps]",
        "[spec caps 2]",
        "[spec storage-server 9.1]",
        "[spec immutable 2, 3, 11]",
        "[spec immutable 12, 14; placement 7]",
        "[spec immutable 4; spec mutable 2]",
        "[spec immutable 12, step 3]",
        "[spec wire A]",
        "[spec wire 2-4]",
        "[spec immutable\n    # 10]",
        "[spec caps 2; docs/decisions/0001-record-decisions.md]",
    ],
)
def test_spec_reference_when_it_resolves_is_passed(text: str) -> None:
    assert not list(unresolved(text))


def test_broad_except_when_in_a_tuple_or_bare_is_seen() -> None:
    text = "try: pass\nexcept (ValueError, Exception): pass\nexcept KeyError: pass\nexcept: undo(); raise"
    handlers = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ExceptHandler)]
    assert [_is_broad(handler.type) for handler in handlers] == [True, False, True]
    assert [_raises_again(handler) for handler in handlers] == [False, False, True]
