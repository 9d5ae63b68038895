"""All rules. Exceptions are entries of ALLOWED, each with a reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.tidy import habits, references, sizes, words
from tests.tidy.tree import Finding

Rule = Callable[[], Iterator[Finding]]

RULES: tuple[Rule, ...] = (
    sizes.long_modules,
    sizes.long_functions,
    habits.undocumented,
    habits.forbidden_names,
    habits.work_put_off,
    habits.bare_ignores,
    habits.reactor_importers,
    habits.broad_excepts,
    habits.waiting_handlers,
    habits.prints,
    habits.parser_asserts,
    habits.async_leftovers,
    habits.put_aside_tests,
    habits.untidy_test_folders,
    words.unexplained_words,
    references.dangling_references,
    references.private_keys,
    references.uncovered_pure_modules,
    sizes.short_modules,
    sizes.wide_classes,
    words.gone_words,
    words.phrases,
    words.gone_names,
)
