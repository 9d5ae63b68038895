"""Disables one feature of this process's engine, so a campaign can measure what that feature is worth.

The engine has no such switches, since users need none. The engine itself is measured with one of its numbers or
decisions replaced before the first file is opened. A name that the engine no longer has is an error, never silently
ignored.
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
"""Where each number is defined, and where it was imported by name."""


def apply_options(options: Sequence[str]) -> None:
    """Apply options named in perf.campaigns.labels.ENGINE; ValueError for any other."""
    for option in options:
        name, _, value = option.partition("=")
        if name not in SWITCHES:
            raise ValueError(f"no option {option!r} of the engine; there are {', '.join(SWITCHES)}")
        SWITCHES[name](value)


def _unbatch(_: str) -> None:
    """One segment per message: a batch always has at least one."""
    _replace(BATCH, 1)


def _unprefetch(_: str) -> None:
    """Fetch the hashes of one segment with its blocks, not of a thousand; this implies batches of one segment."""
    kept = verify.KEPT_CHUNKS * verify.CHUNK_LEAVES
    _replace(CHUNK, 1)
    _replace(KEPT, kept)


def _unhedge(_: str) -> None:
    """Never request an answer twice, however late it is."""

    def never(*_: object, **__: object) -> bool:
        return False

    _expect(hedging.HedgeBudget, "spend_on")
    hedging.HedgeBudget.spend_on = never  # type: ignore[method-assign]


def _limit_window(value: str) -> None:
    """Limit the bytes of text in flight in a read."""
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
