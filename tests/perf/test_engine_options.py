"""Engine features that campaigns switch off in a warm client: no copy of a number keeps them on."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from perf.campaigns.labels import ENGINE
from perf.systems.engine_options import SWITCHES, apply_options

# A process of its own: what is switched off stays off.
_LOOK = """
import json, sys
from perf.systems.engine_options import apply_options
apply_options(sys.argv[1:])
import grid.immutable.get, grid.mutable.node
from grid.engine.hedging import HedgeBudget
names = ("READ_BYTES", "WIDE_READ_BYTES", "CHUNK_LEAVES", "WINDOW_BYTES")
rooms = ("grid.engine.", "grid.immutable.", "grid.mutable.read.", "grid.mutable.share.hash_rows")
found = {
    f"{module.__name__} {name}": getattr(module, name)
    for module in list(sys.modules.values()) for name in names
    if module.__name__.startswith(rooms) and hasattr(module, name)
}
class Late:
    late = silent = True
budget = HedgeBudget(10**9)
budget.learn()
print(json.dumps({"numbers": found, "hedges": budget.spend_on([Late()], 1, head=True)}))
"""


def look(*options: str) -> tuple[dict[str, int], bool]:
    """All numbers of the engine that options change, in every module, and whether it hedges."""
    done = subprocess.run([sys.executable, "-c", _LOOK, *options], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    return found["numbers"], found["hedges"]


def test_every_option_of_a_label_has_a_switch() -> None:
    assert set(SWITCHES) == set(ENGINE)


def test_options_change_every_copy_of_their_numbers_and_no_others() -> None:
    usual, hedges = look()
    assert hedges
    changed, still = look("unbatched", "unprefetched", "unhedged", "window=1000000")
    assert not still
    assert changed.keys() == usual.keys()
    wanted = {"READ_BYTES": 1, "WIDE_READ_BYTES": 1, "CHUNK_LEAVES": 1, "WINDOW_BYTES": 1_000_000}
    assert {key: value for key, value in changed.items() if value != wanted[key.partition(" ")[2]]} == {}
    assert all(value > 1_000_000 for key, value in usual.items() if not key.endswith("CHUNK_LEAVES"))


def test_option_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="no option 'faster'"):
        apply_options(["faster"])
