"""The rules of CONTRIBUTING.md that no linter checks, applied to every source.

An exception is an entry of tests/tidy/allowed.py with its reason; an entry that nothing needs any more is an error.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache

import pytest

from tests.tidy import habits, references, sizes, words
from tests.tidy.allowed import ALLOWED
from tests.tidy.rules import RULES, Rule
from tests.tidy.tree import modules


@pytest.fixture(scope="module", autouse=True)
def sources_let_go() -> Iterator[None]:
    """Let go of the parsed sources: millions of objects, which the collector would go through in all later modules."""
    yield
    modules.cache_clear()


@cache
def entries_found(rule: Rule) -> frozenset[tuple[str, str]]:
    """What a rule finds in the tree, which it searches once."""
    return frozenset(rule())


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_rule_when_checked_over_the_tree_finds_nothing_but_what_is_allowed(rule: Rule) -> None:
    found = sorted(entries_found(rule) - set(ALLOWED))
    assert not found, "\n" + "\n".join(f"{name}: {what}" for name, what in found)


def test_allowances_when_nothing_needs_them_any_more_are_removed() -> None:
    found = {entry for rule in RULES for entry in entries_found(rule)}
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
    assert list(references.unresolved(text))


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
    assert not list(references.unresolved(text))


def test_broad_except_when_in_a_tuple_or_bare_is_seen() -> None:
    text = "try: pass\nexcept (ValueError, Exception): pass\nexcept KeyError: pass\nexcept: undo(); raise"
    handlers = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ExceptHandler)]
    assert [habits._is_broad(handler.type) for handler in handlers] == [True, False, True]
    assert [habits._raises_again(handler) for handler in handlers] == [False, False, True]


def test_attributes_of_a_class_are_its_fields_and_what_its_methods_assign() -> None:
    text = "class A:\n a: int\n b: ClassVar[int]\n def m(self):\n  self.c = self.d.e = 1\n  self.f += 1\n  other.g = 1"
    (node,) = ast.parse(text).body
    assert isinstance(node, ast.ClassDef)
    assert sizes.attributes(node) == {"a", "c", "f"}


def test_prose_of_a_module_is_its_comments_and_strings_and_no_names() -> None:
    assert words.prose('told = "so many"  # for ever\n').split("\n") == ['"so many"', "for ever"]
