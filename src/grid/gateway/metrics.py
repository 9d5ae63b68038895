"""What Prometheus scrapes at `/metrics`.

Owns the names and the labels, of which there are few values: kinds and outcomes, never an object.
"""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from grid.gateway.gateway import Gateway
from grid.gateway.operation import KEPT, Operation

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800)
_FIRST_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class Metrics:
    """The metrics of one gateway, in a registry of their own."""

    def __init__(self, gateway: Gateway, listeners: Callable[[], int]) -> None:
        """listeners: how many follow operations now."""
        self._gateway = gateway
        self._registry = CollectorRegistry(auto_describe=True)
        kind = ["kind"]
        self._ended = Counter(
            "grid_operations", "Operations that ended, by how.", ["kind", "outcome"], registry=self._registry
        )
        self._octets = Counter("grid_operation_bytes", "Octets of files moved.", kind, registry=self._registry)
        self._seconds = Histogram(
            "grid_operation_seconds", "Time that operations took.", kind, buckets=_SECONDS, registry=self._registry
        )
        self._answer_seconds = Histogram(
            "grid_server_answer_seconds",
            "Time from a request to a storage server to its answer.",
            ["request"],
            buckets=_FIRST_S,
            registry=self._registry,
        )
        self._failures = Counter(
            "grid_server_failures",
            "Requests that storage servers did not answer.",
            ["request"],
            registry=self._registry,
        )
        self._active = Gauge("grid_operations_active", "Operations under way.", kind, registry=self._registry)
        self._gauge("grid_servers_known", "Storage servers known.", lambda: len(gateway.client.servers()))
        self._gauge("grid_servers_connected", "Storage servers connected.", self._connected)
        self._gauge(
            "grid_happiness_margin",
            "Servers connected beyond those that storing a file takes; negative: none can be stored.",
            lambda: self._connected() - gateway.settings.happy,
        )
        self._gauge("grid_open_files", "Immutable files kept open between requests.", lambda: gateway.open_files.count)
        self._gauge("grid_event_listeners", "Browsers that follow operations.", listeners)
        for name in KEPT:
            self._active.labels(name)
        gateway.history.watch(self._watch)

    def scrape(self) -> bytes:
        """All of them, as text."""
        running = self._gateway.history.active
        for name in KEPT:
            self._active.labels(name).set(sum(each.kind == name for each in running))
        return generate_latest(self._registry)

    def _watch(self, operation: Operation) -> None:
        if operation.is_active or operation.ended_at is None:
            return
        self._ended.labels(operation.kind, operation.outcome).inc()
        self._octets.labels(operation.kind).inc(operation.count)
        self._seconds.labels(operation.kind).observe(operation.ended_at - operation.began_at)
        if operation.kind != "mapupdate":  # Its requests are those of the operation that it belongs to.
            for row in operation.timeline.rows:
                if row.outcome == "answer" and row.ended_s is not None:
                    self._answer_seconds.labels(row.what).observe(row.ended_s - row.began_s)
                elif row.outcome == "fail":
                    self._failures.labels(row.what).inc()

    def _connected(self) -> int:
        return sum(server.is_connected for server in self._gateway.client.servers())

    def _gauge(self, name: str, help: str, look: Callable[[], float]) -> None:
        Gauge(name, help, registry=self._registry).set_function(look)
