"""Metrics of the gateway for Prometheus, at `/metrics`.

Owns the names and labels. Labels have few values: kinds and outcomes, never an object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from grid.gateway.history.operation import KEPT, Operation
from grid.gateway.monitoring.statistics import Value
from grid.gateway.shared.services import Services
from grid.gateway.shared.traffic import Served

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800)
_FIRST_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class Metrics:
    """The metrics of one gateway, in a registry of their own."""

    def __init__(self, gateway: Services, listeners: Callable[[], int]) -> None:
        """listeners: returns how many clients currently follow the operations."""
        self._gateway = gateway
        self._registry = CollectorRegistry(auto_describe=True)
        kind = ["kind"]
        self._ended = Counter(
            "grid_operations", "Finished operations, by outcome.", ["kind", "outcome"], registry=self._registry
        )
        self._bytes = Counter(
            "grid_operation_bytes", "Bytes of file contents transferred.", kind, registry=self._registry
        )
        self._seconds = Histogram(
            "grid_operation_seconds", "Duration of operations.", kind, buckets=_SECONDS, registry=self._registry
        )
        self._answer_seconds = Histogram(
            "grid_server_answer_seconds",
            "Time from a request to a storage server until its answer.",
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
        self._active = Gauge("grid_operations_active", "Operations in progress.", kind, registry=self._registry)
        self._gauge("grid_servers_known", "Storage servers known.", lambda: len(gateway.client.servers()))
        self._gauge("grid_servers_connected", "Storage servers connected.", self._connected)
        self._gauge("grid_servers_with_room", "Storage servers connected that may take new files.", self._with_room)
        self._gauge(
            "grid_happiness_margin",
            "Servers with room beyond those that storing a file needs; negative: nothing can be stored.",
            lambda: self._with_room() - gateway.settings.happy,
        )
        self._gauge("grid_open_files", "Immutable files kept open between requests.", lambda: gateway.open_files.count)
        self._gauge("grid_event_listeners", "Browsers that follow operations.", listeners)
        for name in KEPT:
            self._active.labels(name)
        gateway.history.watch(self._watch)
        self._http = _Http(self._registry)
        self._gauge("grid_http_requests_active", "Requests in progress.", gateway.traffic.active)
        gateway.traffic.watch(self._http.count)
        self._s3 = _Door(self._registry, "s3", "S3")
        self._gauge("grid_s3_requests_active", "S3 requests in progress.", gateway.s3_traffic.active)
        gateway.s3_traffic.watch(self._s3.count)
        self._sftp = _Door(self._registry, "sftp", "SFTP")
        self._gauge("grid_sftp_requests_active", "SFTP requests in progress.", gateway.sftp_traffic.active)
        gateway.sftp_traffic.watch(self._sftp.count)
        self._registry.register(_OpenFileReads(gateway))
        self._storage = _Storage()
        self._registry.register(self._storage)

    def scrape(self, counters: Mapping[str, int], stats: Mapping[str, Value]) -> bytes:
        """Return all metrics as text. counters, stats: of the node's storage server; empty without one."""
        self._storage.counters, self._storage.stats = counters, stats
        running = self._gateway.history.active
        for name in KEPT:
            self._active.labels(name).set(sum(each.kind == name for each in running))
        return generate_latest(self._registry)

    def _watch(self, operation: Operation) -> None:
        seconds = operation.times.seconds
        if operation.is_active or seconds is None:
            return
        self._ended.labels(operation.kind, operation.outcome).inc()
        self._bytes.labels(operation.kind).inc(operation.progress.count)
        self._seconds.labels(operation.kind).observe(seconds)
        if operation.kind != "mapupdate":  # Its requests already count toward the operation that it belongs to.
            for row in operation.timeline.rows:
                if row.outcome == "answer" and row.ended_s is not None:
                    self._answer_seconds.labels(row.what).observe(row.ended_s - row.began_s)
                elif row.outcome == "fail":
                    self._failures.labels(row.what).inc()

    def _connected(self) -> int:
        return sum(server.is_connected for server in self._gateway.client.servers())

    def _with_room(self) -> int:
        return sum(server.has_room for server in self._gateway.client.servers())

    def _gauge(self, name: str, help: str, look: Callable[[], float]) -> None:
        Gauge(name, help, registry=self._registry).set_function(look)


class _Http:
    """Requests by endpoint, method and outcome."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = Counter(
            "grid_http_requests",
            "Finished requests: by method, first part of the path, t= and class of status.",
            ["method", "endpoint", "view", "status"],
            registry=registry,
        )
        self._seconds = Histogram(
            "grid_http_request_seconds",
            "Time from the end of a request's head to the end of its answer.",
            ["method", "endpoint"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._received = Counter(
            "grid_http_request_bytes", "Bytes of the bodies of requests.", ["method"], registry=registry
        )
        self._sent = Counter(
            "grid_http_response_bytes", "Bytes of the bodies of answers.", ["method"], registry=registry
        )

    def count(self, served: Served) -> None:
        """Count a request."""
        self._requests.labels(served.method, served.endpoint, served.view, served.outcome).inc()
        self._seconds.labels(served.method, served.endpoint).observe(served.seconds)
        self._received.labels(served.method).inc(served.received)
        self._sent.labels(served.method).inc(served.sent)


class _Door:
    """Requests to the S3 or SFTP door, by operation."""

    def __init__(self, registry: CollectorRegistry, name: str, shown: str) -> None:
        kinds = ["operation", "status"]
        self._requests = Counter(
            f"grid_{name}_requests",
            f"Finished {shown} requests: by operation and class of status.",
            kinds,
            registry=registry,
        )
        self._seconds = Histogram(
            f"grid_{name}_request_seconds",
            f"Time from the end of the head of one of the {shown} requests to the end of its answer.",
            ["operation"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._received = Counter(
            f"grid_{name}_request_bytes",
            f"Bytes of the bodies of {shown} requests.",
            ["operation"],
            registry=registry,
        )
        self._sent = Counter(
            f"grid_{name}_response_bytes",
            f"Bytes of the bodies of answers to {shown} requests.",
            ["operation"],
            registry=registry,
        )

        # Looking up labels costs more than counting does, and a mounted directory may ask thousands of times a second.
        self._counters: dict[tuple[str, str], tuple[Counter, Histogram, Counter, Counter]] = {}

    def count(self, served: Served) -> None:
        """Count a request."""
        kind = served.endpoint, served.outcome
        found = self._counters.get(kind)
        if found is None:
            name = served.endpoint
            found = self._counters[kind] = (
                self._requests.labels(*kind), self._seconds.labels(name), self._received.labels(name), self._sent.labels(name)
            )  # fmt: skip
        requests, seconds, received, sent = found
        requests.inc()
        seconds.observe(served.seconds)
        if served.received:
            received.inc(served.received)
        if served.sent:
            sent.inc(served.sent)


class _OpenFileReads(Collector):
    """How often a read found its file already open."""

    def __init__(self, gateway: Services) -> None:
        self._files = gateway.open_files

    def collect(self) -> Iterable[Metric]:
        """Collect the current values."""
        family = CounterMetricFamily(
            "grid_open_file_reads", "Chunks read of immutable files, by whether the file was open.", labels=["cache"]
        )
        family.add_metric(["hit"], self._files.found_open)
        family.add_metric(["miss"], self._files.opened)
        yield family


class _Storage(Collector):
    """The node's own storage server, with the names of /statistics."""

    def __init__(self) -> None:
        self.counters: Mapping[str, int] = {}
        self.stats: Mapping[str, Value] = {}

    def collect(self) -> Iterable[Metric]:
        """Return the values passed to the last scrape; nothing without a storage server."""
        if not self.stats:
            return
        requests = CounterMetricFamily("grid_storage_requests", "Calls of the storage server.", labels=["operation"])
        for name, count in sorted(self.counters.items()):
            if name != _BYTES_ADDED:
                requests.add_metric([name.removeprefix("storage_server.")], count)
        yield requests
        added = self.counters.get(_BYTES_ADDED, 0)
        yield CounterMetricFamily("grid_storage_added_bytes", "Bytes of immutable shares accepted.", value=added)
        for name, key, words in _STORAGE_GAUGES:
            value = self.stats.get(f"storage_server.{key}")
            if value is not None:
                yield GaugeMetricFamily(name, words, value=value)


_BYTES_ADDED = "storage_server.bytes_added"

_STORAGE_GAUGES = (
    ("grid_storage_available_bytes", "disk_avail", "Bytes of the disk that shares may still use."),
    ("grid_storage_disk_bytes", "disk_total", "Bytes of the whole disk."),
    ("grid_storage_reserved_bytes", "reserved_space", "Bytes of the disk that are reserved."),
    ("grid_storage_allocated_bytes", "allocated", "Bytes reserved for uploads in progress."),
    ("grid_storage_accepting", "accepting_immutable_shares", "Whether new shares are accepted."),
    ("grid_storage_buckets", "total_bucket_count", "Files and directories with shares here."),
)
