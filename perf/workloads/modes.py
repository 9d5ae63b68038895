"""Carries out many transfers on a schedule of perf.campaigns.arrivals: with limited concurrency, or by the clock."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from attrs import frozen

from perf.campaigns.arrivals import Schedule


@frozen(kw_only=True)
class Transfer:
    """One transfer's times in seconds from the start of the run. due_s: the scheduled start. error: "" on success."""

    index: int
    due_s: float
    started_s: float
    ended_s: float
    error: str = ""

    @property
    def seconds(self) -> float:
        """The time a user waited: from the scheduled start."""
        return self.ended_s - self.due_s


def run_schedule(plan: Schedule, operation: Callable[[int], object]) -> list[Transfer]:
    """Carry out all transfers in threads; return their results in order. A transfer that raises counts as failed.

    operation: performs the transfer with this index. In a closed loop, a transfer is due when a worker is free for it.
    """
    gate = threading.Barrier(len(plan.due_s) + 1) if plan.fresh else None
    over = threading.Event()
    origin = [time.perf_counter()]

    def one(index: int) -> Transfer:
        if gate is not None:
            gate.wait()
        due = plan.due_s[index]
        delay = origin[0] + due - time.perf_counter()
        if delay > 0:
            over.wait(delay)
        started, error = time.perf_counter() - origin[0], ""
        try:
            if over.is_set():
                raise InterruptedError("the run was interrupted")
            operation(index)
        except Exception as failure:  # noqa: BLE001 - whatever a system under test does wrong is a result
            error = f"{type(failure).__name__}: {failure}"[:500]
        ended = time.perf_counter() - origin[0]
        meant = due if plan.is_open or plan.fresh else started
        return Transfer(index=index, due_s=meant, started_s=started, ended_s=ended, error=error)

    with ThreadPoolExecutor(plan.workers) as pool:
        waiting = [pool.submit(one, index) for index in range(len(plan.due_s))]
        if gate is not None:
            origin[0] = time.perf_counter()
            gate.wait()
        try:
            return [future.result() for future in waiting]
        except BaseException:  # Ctrl-C: whatever has not started never does.
            over.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def summarize(transfers: Sequence[Transfer]) -> tuple[float, float, float, float]:
    """Least, mean and greatest seconds of successful transfers, and the run's duration; zeros if there are none."""
    took = [transfer.seconds for transfer in transfers if not transfer.error]
    total = max((transfer.ended_s for transfer in transfers), default=0.0)
    return (min(took), sum(took) / len(took), max(took), total) if took else (0.0, 0.0, 0.0, total)
