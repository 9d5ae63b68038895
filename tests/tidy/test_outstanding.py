"""The rules that some places break still: no others do, and the list of them is as short as it can be."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.tidy import outstanding
from tests.tidy.allowed import ALLOWED
from tests.tidy.rules import SHRINKING, Rule


@pytest.mark.parametrize("rule", SHRINKING, ids=lambda rule: rule.__name__)
def test_rule_is_broken_nowhere_but_where_the_list_says(rule: Rule) -> None:
    found = outstanding.excess((entry for entry in rule() if entry not in ALLOWED), outstanding.read())
    lines = [f"{name}: {what}, {count} more than allowed" for (name, what), count in sorted(found.items())]
    assert not found, "\n".join(["", *lines, "Fix these. If a file only moved: python -m tests.tidy --accept"])


def test_outstanding_when_something_has_been_put_right_is_shorter() -> None:
    found = Counter(entry for rule in SHRINKING for entry in rule() if entry not in ALLOWED)
    assert not outstanding.read() - found, "run `python -m tests.tidy`, which takes these out"


def test_outstanding_when_found_more_often_than_listed_is_an_excess() -> None:
    allowed = Counter({("phrase (told)", "a.py"): 2, ("phrase (told)", "b.py"): 1})
    found = [("phrase (told)", "a.py")] * 3 + [("module too short", "c.py")]
    assert outstanding.excess(found, allowed) == Counter(
        {("phrase (told)", "a.py"): 1, ("module too short", "c.py"): 1}
    )
