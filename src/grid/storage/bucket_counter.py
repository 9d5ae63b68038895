"""How many storage indexes a server holds shares of. [spec storage-server 10.4]"""

from __future__ import annotations

from collections.abc import Sequence

from grid.storage.crawler import State
from grid.storage.paths import PREFIXES

SAMPLED_PREFIXES = PREFIXES[:1]
"""Those whose storage indexes are kept by name, for whoever wants to try the server."""
MAX_SAMPLES = 1000


class BucketCounter:
    """The counter's part in a crawl; implements CycleTask. It looks into no share directory."""

    name = "bucket_counter"
    first_delay_s = 300.0
    cycle_s = 3600.0

    def is_state(self, state: State) -> bool:
        """Whether the counts so far can be added to."""
        counts = state.get("bucket-counts")
        return (
            isinstance(counts, dict)
            and all(isinstance(row, dict) and all(isinstance(n, int) for n in row.values()) for row in counts.values())
            and (state["current-cycle"] is None or str(state["current-cycle"]) in counts)
            and isinstance(state.get("storage-index-samples"), dict)
        )

    def begin_cycle(self, state: State) -> None:
        """Begin to count."""
        state["bucket-counts"] = {str(state["current-cycle"]): {}}
        state.setdefault("last-complete-bucket-count", None)
        state.setdefault("storage-index-samples", {})

    async def visit_prefix(self, state: State, prefix: str, names: Sequence[str]) -> None:
        """Count."""
        state["bucket-counts"][str(state["current-cycle"])][prefix] = len(names)
        if prefix in SAMPLED_PREFIXES:
            state["storage-index-samples"][prefix] = [state["current-cycle"], list(names[:MAX_SAMPLES])]

    async def visit(self, state: State, name: str, now: float) -> None:
        """Nothing."""

    async def end_cycle(self, state: State, now: float) -> None:
        """Sum up."""
        state["last-complete-bucket-count"] = sum(state["bucket-counts"][str(state["current-cycle"])].values())
