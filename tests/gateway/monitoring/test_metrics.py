"""Metrics that Prometheus scrapes from a gateway in use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attrs import frozen

from grid.gateway.shared.traffic import VIEWS, Served, Traffic
from tests.gateway.rig import Rig, running_gateway


@frozen
class Storage:
    """The storage server of a node, as it is shown."""

    def counters(self) -> dict[str, int]:
        return {"storage_server.get": 4, "storage_server.bytes_added": 9}

    async def statistics(self) -> dict[str, float | int | None]:
        return {"storage_server.disk_avail": 70, "storage_server.accepting_immutable_shares": 1}

    async def crawlers(self) -> dict[str, Any]:
        return {}

    def counting(self) -> dict[str, Any]:
        return {}

    expiry = ""


async def scraped(rig: Rig) -> dict[str, float]:
    """Samples by name and labels, as they are written."""
    reply = await rig.ask("GET", "/metrics")
    assert reply.status == 200
    lines = reply.body.decode().splitlines()
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}


def http(method: str, endpoint: str, view: str, status: str) -> str:
    labels = f'endpoint="{endpoint}",method="{method}",status="{status}",view="{view}"'
    return f"grid_http_requests_total{{{labels}}}"


async def test_metrics_when_the_gateway_was_used_have_all_that_operators_watch(tmp_path: Path) -> None:
    data = bytes(range(256)) * 8192
    async with running_gateway(tmp_path) as rig:
        cap = (await rig.ask("PUT", "/uri", data)).body.decode()
        mutable = (await rig.ask("PUT", "/uri?format=mdmf", data[:3000])).body.decode()
        directory = (await rig.ask("POST", "/uri?t=mkdir")).body.decode()
        for _ in range(2):
            assert (await rig.ask("GET", f"/uri/{cap}")).body == data
        assert (await rig.ask("GET", f"/uri/{mutable}")).body == data[:3000]
        assert (await rig.ask("GET", f"/uri/{directory}?t=json")).status == 200
        assert (await rig.ask("GET", "/uri/nonsense?t=json")).status == 200
        assert (await rig.ask("GET", f"/uri/{directory}?t=whatever")).status == 400
        assert (await rig.ask("GET", "/there-is-no-such-page")).status == 404
        found = await scraped(rig)
    assert found[http("PUT", "uri", "", "2xx")] == 2
    assert found[http("POST", "uri", "mkdir", "2xx")] == 1
    assert found[http("GET", "uri", "", "2xx")] == 3
    assert found[http("GET", "uri", "other", "4xx")] == 1
    assert found[http("GET", "other", "", "4xx")] == 1
    assert found['grid_http_request_seconds_count{endpoint="uri",method="PUT"}'] == 2
    assert found['grid_http_request_seconds_bucket{endpoint="uri",le="+Inf",method="GET"}'] == 6
    assert found['grid_http_request_bytes_total{method="PUT"}'] == len(data) + 3000
    assert found['grid_http_response_bytes_total{method="GET"}'] > 2 * len(data) + 3000
    assert found["grid_http_requests_active"] == 1
    assert found['grid_operations_total{kind="upload",outcome="done"}'] == 1
    assert found['grid_operations_total{kind="download",outcome="done"}'] == 2
    assert found['grid_operation_bytes_total{kind="download"}'] == 2 * len(data)
    assert found['grid_operation_seconds_count{kind="upload"}'] == 1
    assert sum(value for name, value in found.items() if name.startswith("grid_server_answer_seconds_count")) > 0
    assert found["grid_servers_known"] == found["grid_servers_connected"] == 0
    assert found["grid_happiness_margin"] == -7
    assert found["grid_open_files"] == 1
    assert found['grid_open_file_reads_total{cache="miss"}'] == 1
    assert found['grid_open_file_reads_total{cache="hit"}'] >= 1
    assert not any(name.startswith("grid_storage") for name in found)
    assert not any(secret in name for name in found for secret in ("URI", "nonsense", "whatever", "no-such"))


async def test_metrics_when_a_client_goes_away_count_its_request_as_cut(tmp_path: Path) -> None:
    async with running_gateway(tmp_path) as rig:
        wire = await rig.connect()
        wire.send(f"PUT /uri HTTP/1.1\r\nHost: {rig.host}\r\nContent-Length: 1000\r\n\r\n123".encode())
        while (await scraped(rig))["grid_http_requests_active"] < 2:
            pass
        wire.transport.abortConnection()  # type: ignore[union-attr]
        while (await scraped(rig))["grid_http_requests_active"] > 1:
            pass
        found = await scraped(rig)
        assert found[http("PUT", "uri", "", "cut")] == 1
        assert found['grid_http_request_bytes_total{method="PUT"}'] == 3


async def test_metrics_when_the_node_stores_have_its_server(tmp_path: Path) -> None:
    async with running_gateway(tmp_path) as rig:
        rig.gateway.storage = Storage()
        found = await scraped(rig)
    assert found['grid_storage_requests_total{operation="get"}'] == 4
    assert found["grid_storage_added_bytes_total"] == 9
    assert found["grid_storage_available_bytes"] == 70
    assert found["grid_storage_accepting"] == 1
    assert "grid_storage_buckets" not in found


def test_traffic_when_anything_is_asked_uses_few_names() -> None:
    traffic, heard = Traffic(), list[Served]()
    traffic.know({"", "uri"}, lambda: 0)
    traffic.watch(heard.append)
    assert traffic.called("", "") == ("root", "")
    assert traffic.called("uri", "json") == ("uri", "json")
    assert traffic.called("URI:CHK:secret", "secret") == ("other", "other")
    traffic.ended("BREW", ("uri", ""), 999, 1.0, 2, 3)
    traffic.ended("GET", ("uri", ""), None, 1.0, 2, 3)
    assert [(each.method, each.outcome) for each in heard] == [("other", "5xx"), ("GET", "cut")]


def test_views_when_compared_with_the_handlers_include_all_of_theirs() -> None:
    from grid.gateway.tree.directories import CHANGES, MOVES
    from grid.gateway.tree.mkdir import MAKERS
    from grid.gateway.tree.operation_resource import STARTS
    from grid.gateway.tree.streams import STREAMS

    assert {*CHANGES, *MOVES, *MAKERS, *STARTS, *STREAMS} <= VIEWS
