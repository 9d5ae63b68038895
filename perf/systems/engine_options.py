"""Switches off one thing in the engine of this process, so that a campaign can say what that thing is worth.

The engine has no such switches of its own: users need none. What is measured is the engine itself with one of its numbers, or one of its
decisions, replaced before the first file is opened. A name that the engine no longer has is an error, never a switch without effect.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import ModuleType

from grid.engine import batches, flow_window, hedging
from grid.immutable.read import segment_batch, speculation
from grid.immutable.share import verify
from grid.mutable.read import layout_cache, read_plan
from grid.mutable.share import hash_rows

Constant = tuple[ModuleType, str]

BATCH: Sequence[Constant] = ((batches, "READ_BYTES"), (batches, "WIDE_READ_BYTES"))
CHUNK: Sequence[Constant] = tuple(
    (module, "CHUNK_LEAVES") for module in (verify, segment_batch, speculation, hash_rows, layout_cache)
)
KEPT: Sequence[Constant] = ((verify, "KEPT_CHUNKS"), (segment_batch, "KEPT_CHUNKS"))
WINDOW: Sequence[Constant] = ((flow_window, "WINDOW_BYTES"), (read_plan, "WINDOW_BYTES"))
START: Sequence[Constant] = ((flow_window, "START_BYTES"),)
"""Where each number stands: where it is defined, and wherever it was imported by name."""


def apply_options(options: Sequence[str]) -> None:
    """Switch these off, as perf.campaigns.labels.ENGINE names them; ValueError of another."""
    for option in options:
        name, _, value = option.partition("=")
        if name not in SWITCHES:
            raise ValueError(f"no option {option!r} of the engine; there are {', '.join(SWITCHES)}")
        SWITCHES[name](value)


def _unbatch(_: str) -> None:
    """One segment in a message: a batch has at least one, however few bytes it may have."""
    _replace(BATCH, 1)


def _unprefetch(_: str) -> None:
    """The hashes of one segment with its blocks, rather than those of a thousand; so that batches have one segment, too."""
    kept = verify.KEPT_CHUNKS * verify.CHUNK_LEAVES
    _replace(CHUNK, 1)
    _replace(KEPT, kept)


def _unhedge(_: str) -> None:
    """No answer is asked for twice, however late it is."""

    def never(*_: object, **__: object) -> bool:
        return False

    _expect(hedging.HedgeBudget, "permits")
    hedging.HedgeBudget.permits = never  # type: ignore[method-assign]


def _limit_window(value: str) -> None:
    """At most that many bytes of text in flight in a read."""
    _replace(WINDOW, int(value))
    _replace(START, min(flow_window.START_BYTES, int(value)))


SWITCHES: Mapping[str, Callable[[str], None]] = {
    "unbatched": _unbatch,
    "unprefetched": _unprefetch,
    "unhedged": _unhedge,
    "window": _limit_window,
}


def _replace(constants: Sequence[Constant], value: int) -> None:
    for module, name in constants:
        _expect(module, name)
        setattr(module, name, value)


def _expect(owner: object, name: str) -> None:
    if not hasattr(owner, name):
        raise ValueError(f"the engine has no {name} in {owner!r} any more: fix perf.systems.engine_options")
