"""Handlers for monitors and supervisors of the node, including its log. [spec webapi 9.3-9.7]"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from attrs import evolve

from grid.gateway.api.openapi import document
from grid.gateway.content_type import content_type
from grid.gateway.faults import BadRequest, InsufficientStorage, NotFound, ServiceUnavailable, without_secrets
from grid.gateway.http.answers import Answer, AnyAnswer, json_answer, page, text_answer
from grid.gateway.http.exchange import Exchange
from grid.gateway.http.routing import Handler, allow
from grid.gateway.http.websocket import accept
from grid.gateway.monitoring.log_stream import LogReader, LogStreams
from grid.gateway.monitoring.metrics import CONTENT_TYPE, Metrics
from grid.gateway.monitoring.operation_status import EventStreams
from grid.gateway.monitoring.statistics import Statistics, StorageView, Value, pack_openmetrics
from grid.gateway.pages.markup import tag
from grid.gateway.pages.plots import parse_span
from grid.gateway.pages.shell import document as whole_page
from grid.gateway.pages.shell import facts
from grid.gateway.pages.statistics import render_statistics
from grid.gateway.pages.storage import render_no_storage, render_storage
from grid.gateway.shared.services import Services
from grid.ports import Sink

OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"

MAX_DETAILS = 65536
"""Bytes of one incident report."""

MAX_INCIDENTS = 100
"""Incident reports kept: anybody may send one, and they must not fill the disk."""

MAX_STATIC = 64 * 2**20
"""Bytes of a file among the operator's own pages; larger files belong in the grid."""

_OPERATORS_POLICY = ("Content-Security-Policy", "object-src 'none'; base-uri 'self'; frame-ancestors 'none'")
"""The operator's own pages may run their own scripts, as in 1.20."""

_NO_STORE = (("Cache-Control", "no-store"),)


class MonitoredNode(Protocol):
    """What the monitoring shows of the node besides its requests. storage: its own storage server, or None."""

    storage: StorageView | None
    statistics: Statistics
    streams: EventStreams
    logs: LogStreams


def routes(gateway: Services, node: MonitoredNode) -> Mapping[str, Handler]:
    """Handlers by first segment."""
    monitoring = _Monitoring(gateway, node)
    return {
        "statistics": monitoring.statistics,
        "metrics": monitoring.metrics,
        "storage": monitoring.storage,
        "helper_status": monitoring.helper_status,
        "report_incident": monitoring.report_incident,
        "storage-plugins": monitoring.storage_plugins,
        "static": monitoring.static,
        "private": monitoring.private,
        "openapi.json": monitoring.openapi,
    }


class _Monitoring:
    def __init__(self, gateway: Services, node: MonitoredNode) -> None:
        self._gateway = gateway
        self._node = node
        self._metrics = Metrics(gateway, lambda: node.streams.count)

    async def statistics(self, exchange: Exchange) -> AnyAnswer:
        """`/statistics`."""
        allow(exchange, "GET", "HEAD", "POST")
        await exchange.form()
        values = await self._values()
        match exchange.arguments.t.lower():
            case "json":
                return json_answer(values)
            case "openmetrics":
                return Answer(200, OPENMETRICS, pack_openmetrics(values), _NO_STORE)
            case "":
                samples, span = self._node.statistics.samples.all(), parse_span(exchange.arguments.shown("span"))
                return page(render_statistics(values["counters"], values["stats"], self._gateway.doors, samples, span))
        raise BadRequest("statistics are available as t=json and t=openmetrics", shape="page")

    async def metrics(self, exchange: Exchange) -> AnyAnswer:
        """`/metrics`."""
        allow(exchange, "GET", "HEAD")
        counters, stats = await self._of_storage()
        return Answer(200, CONTENT_TYPE, self._metrics.scrape(counters, stats), _NO_STORE)

    async def storage(self, exchange: Exchange) -> AnyAnswer:
        """`/storage`."""
        allow(exchange, "GET", "HEAD", "POST")
        await exchange.form()
        storage, is_for_programs = self._node.storage, exchange.arguments.t.lower() == "json"
        if storage is None:
            if is_for_programs:
                raise NotFound("no storage server runs in this node")
            return page(render_no_storage())
        stats, crawlers = await storage.statistics(), await storage.crawlers()
        if is_for_programs:
            return json_answer({"stats": stats, **crawlers})
        nickname, counters = self._gateway.settings.nickname, storage.counters()
        return page(render_storage(nickname, counters, stats, crawlers, storage.counting(), storage.expiry))

    async def helper_status(self, exchange: Exchange) -> AnyAnswer:
        """`/helper_status`: says that this node runs no upload helper."""
        allow(exchange, "GET", "HEAD", "POST")
        await exchange.form()
        if exchange.arguments.t.lower() == "json":
            return json_answer({})
        return page(render_plain("Upload helper", "No upload helper runs in this node.", None))

    async def report_incident(self, exchange: Exchange) -> AnyAnswer:
        """`/report_incident`."""
        if exchange.method != "POST":
            raise BadRequest("use POST to report an incident")
        if exchange.body.size is not None and exchange.body.size > MAX_DETAILS:
            raise BadRequest(f"a report has at most {MAX_DETAILS} bytes")
        await exchange.form()
        details = without_secrets(exchange.arguments.text("details") or "")[:MAX_DETAILS]
        directory = self._gateway.settings.incidents_directory
        if directory is None:
            raise NotFound("this gateway keeps no reports")
        now = self._gateway.store.runtime.clock.unix_time()
        report = json.dumps({"time": now, "details": details}, indent=1) + "\n"
        await self._gateway.store.runtime.cpu.run(keep_incident, directory, now, report)
        return text_answer("An incident report has been saved to logs/incidents/ in the node directory.")

    async def storage_plugins(self, exchange: Exchange) -> AnyAnswer:
        """`/storage-plugins/NAME`: always NotFound, since there are none."""
        raise NotFound("no such storage plugin is enabled")

    async def static(self, exchange: Exchange) -> AnyAnswer:
        """`/static/...`: the operator's own files."""
        allow(exchange, "GET", "HEAD")
        data = await self._gateway.store.runtime.cpu.run(
            read_static, self._gateway.settings.static_directory, exchange.segments[1:]
        )
        if data is None:
            raise NotFound("there is no such file", shape="page")
        found = content_type(exchange.segments[-1])
        encoding = (("Content-Encoding", found.encoding),) if found.encoding else ()
        return Answer(200, found.type, data, (_OPERATORS_POLICY, *encoding))

    async def private(self, exchange: Exchange) -> AnyAnswer:
        """`/private/logs/v1`, which requires the node's token."""
        self._gateway.require_token(exchange.headers.get("authorization"))
        if exchange.segments[1:] != ("logs", "v1"):
            raise NotFound("there is no such page")
        logs = self._node.logs
        if logs.is_full:
            raise ServiceUnavailable(
                "too many clients are following the log; try again later", headers=(("Retry-After", "30"),)
            )
        reader = LogReader()
        answer = accept(exchange, reader.next, reader.nudge, reader.end)

        async def follow(sink: Sink) -> None:
            logs.add(reader)
            try:
                await answer.write(sink)
            finally:
                logs.remove(reader)

        return evolve(answer, write=follow)

    async def openapi(self, exchange: Exchange) -> AnyAnswer:
        """`/openapi.json`."""
        allow(exchange, "GET", "HEAD")
        return Answer(200, "application/json; charset=utf-8", json.dumps(document()).encode("ascii"))

    async def _values(self) -> dict[str, dict[str, Value]]:
        return self._node.statistics.values(*await self._of_storage())

    async def _of_storage(self) -> tuple[Mapping[str, int], Mapping[str, Value]]:
        """Counters and statistics of the node's own storage server; empty without one."""
        storage = self._node.storage
        return ({}, {}) if storage is None else (storage.counters(), await storage.statistics())


def render_plain(title: str, lead: str, values: Mapping[str, Value] | None) -> str:
    """A page with a few numbers. values: by the names that monitors know."""
    rows = facts(*((name, "–" if value is None else str(value)) for name, value in sorted((values or {}).items())))
    return whole_page(title, tag("h1", title), tag("p", lead, class_="lead"), rows if values else None)


def keep_incident(directory: Path, now: float, report: str) -> None:
    """Save a report; InsufficientStorage if there are too many or the disk is full. Blocking."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if sum(1 for _ in directory.iterdir()) >= MAX_INCIDENTS:
            raise InsufficientStorage("there are too many reports already; remove old ones from logs/incidents")
        file = directory / f"incident-{now:.6f}.json"
        file.touch(mode=0o600, exist_ok=False)
        file.write_text(report, encoding="ascii")
    except OSError as error:
        raise InsufficientStorage(f"the report cannot be saved: {error.strerror}") from None


def read_static(directory: Path, segments: tuple[str, ...]) -> bytes | None:
    """Read a file below the directory; None if it is missing or must not be shown. Blocking."""
    if not segments or any(not name or name.startswith(".") or "/" in name or "\0" in name for name in segments):
        return None
    try:
        base = directory.resolve(strict=True)
        file = base.joinpath(*segments).resolve(strict=True)
        if not file.is_relative_to(base) or not file.is_file() or file.stat().st_size > MAX_STATIC:
            return None
        return file.read_bytes()
    except (OSError, ValueError, RuntimeError):
        return None
