"""The OpenAPI document against what the gateway answers."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from grid.gateway.apischemas import SCHEMAS
from grid.gateway.apitable import ENDPOINTS, PARAMETERS
from grid.gateway.openapi import document
from grid.gateway.site import make_routes
from tests.gateway.rig import running_gateway
from tests.support.conformance import require_documented


def _paths() -> dict[str, Any]:
    paths: Any = document()["paths"]
    return dict(paths)


async def test_document_and_routes_when_compared_then_each_is_in_the_other(tmp_path: Path) -> None:
    async with running_gateway(tmp_path) as rig:
        documented = {path.split("/")[1] for path in _paths()}
        assert documented == set(make_routes(rig.gateway).segments)


async def test_document_when_fetched_then_is_json_of_this_version(tmp_path: Path) -> None:
    async with running_gateway(tmp_path) as rig:
        found = json.loads((await rig.ask("GET", "/openapi.json")).body)
        assert found == document()
        assert found["openapi"].startswith("3.1")


def test_table_when_read_then_names_known_parameters_and_no_operation_twice() -> None:
    seen = set()
    for endpoint in ENDPOINTS:
        assert set(endpoint.arguments) <= set(PARAMETERS)
        for method in endpoint.methods:
            assert (method, endpoint.path) not in seen
            seen.add((method, endpoint.path))


def test_actions_when_read_then_name_schemas_that_there_are_and_no_t_twice() -> None:
    named = set()
    for endpoint in ENDPOINTS:
        found = [action.t for action in endpoint.actions]
        assert len(found) == len(set(found)) > 0
        named |= {name for action in endpoint.actions for name in (action.json, action.lines) if name}
    referred = set(re.findall(r"#/components/schemas/(\w+)", json.dumps(SCHEMAS)))
    assert named | referred == set(SCHEMAS)


@pytest.mark.parametrize(
    ("method", "target", "status", "type", "body"),
    [
        ("GET", "/healthz", 200, "application/json; charset=utf-8", b'{"status": "ok"}'),
        ("GET", "/uri/x/a/b?t=json", 200, "text/plain", b'["unknown", {}]'),
        ("GET", "/status/down-1/event_json", 404, "text/html", b"no"),
        ("PUT", "/healthz", 405, "text/plain", b"no"),
        ("POST", "/uri/x?t=stream-manifest", 200, "text/html", b"ERROR: no\n"),
        ("GET", "/of-a-test", 299, "a/b", b""),
    ],
)
def test_answer_when_documented_is_let_pass(method: str, target: str, status: int, type: str, body: bytes) -> None:
    require_documented(method, target, status, {"content-type": type}, body)


@pytest.mark.parametrize(
    ("method", "target", "status", "type", "body"),
    [
        ("GET", "/healthz", 201, "application/json", b'{"status": "ok"}'),
        ("GET", "/healthz", 200, "text/plain", b'{"status": "ok"}'),
        ("GET", "/healthz", 200, "application/json", b'{"status": "well"}'),
        ("GET", "/uri/x?t=json", 206, "text/plain", b'["unknown", {}]'),
        ("GET", "/uri/x?t=json", 200, "text/plain", b'["other", {}]'),
        ("POST", "/uri/x?t=stream-manifest", 200, "text/html", b'{"path": []}\n'),
        ("PUT", "/healthz", 200, "text/plain", b""),
        ("GET", "/operations", 200, "text/plain", b""),
        ("DELETE", "/uri/x", 500, "text/plain", b""),
    ],
)
def test_answer_when_not_documented_is_held_up(method: str, target: str, status: int, type: str, body: bytes) -> None:
    with pytest.raises(AssertionError, match=r"documented|not a \w+"):
        require_documented(method, target, status, {"content-type": type}, body)
