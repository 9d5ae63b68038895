"""Capabilities of the machine, and computing two rates from arrivals."""

from __future__ import annotations

from perf.network.doctor import LINE_NEEDS, facts, missing
from perf.network.probe import rate_of


def test_facts_that_do_not_hold_say_how_to_get_what_is_missing() -> None:
    found = facts()
    assert len({fact.name for fact in found}) == len(found)
    assert set(LINE_NEEDS) <= {fact.name for fact in found}
    assert all(fact.advice or fact.present or fact.needed_for.startswith("nothing") for fact in found)
    assert missing([]) == []


def test_rate_leaves_out_the_first_half_of_the_time() -> None:
    # Slow for a second, then a thousand bytes every tenth.
    arrivals = [(0.0, 10), (1.0, 20), *((1.0 + tenth / 10, 20 + tenth * 1000) for tenth in range(1, 11))]
    assert round(rate_of(arrivals)) == 80_000
    assert rate_of([(0.0, 10)]) == 0.0
