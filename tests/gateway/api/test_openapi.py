"""The OpenAPI document compared with the gateway's answers."""

from __future__ import annotations

import json
import re
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from grid.gateway.api.openapi import document
from grid.gateway.api.parameters import PARAMETERS
from grid.gateway.api.schemas import SCHEMAS
from grid.gateway.api.table import ENDPOINTS
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


GUARDED = {
    "content-security-policy": "sandbox",
    "cross-origin-resource-policy": "same-origin",
    "x-content-type-options": "nosniff",
}


@pytest.mark.parametrize("missing", GUARDED)
def test_answer_when_it_lets_a_browser_do_anything_is_rejected(missing: str) -> None:
    headers = {name: value for name, value in GUARDED.items() if name != missing}
    with pytest.raises(AssertionError):
        require_documented("GET", "/healthz", 200, {"content-type": "application/json", **headers}, b'{"status": "ok"}')


@pytest.mark.parametrize(
    ("method", "target", "status", "type", "body", "is_documented"),
    [
        ("GET", "/healthz", 200, "application/json; charset=utf-8", b'{"status": "ok"}', True),
        ("GET", "/uri/x/a/b?t=json", 200, "text/plain", b'["unknown", {}]', True),
        ("GET", "/status/down-1/event_json", 404, "text/html", b"no", True),
        ("PUT", "/healthz", 405, "text/plain", b"no", True),
        ("POST", "/uri/x?t=stream-manifest", 200, "text/html", b"ERROR: no\n", True),
        ("GET", "/of-a-test", 299, "a/b", b"", True),
        ("GET", "/healthz", 201, "application/json", b'{"status": "ok"}', False),
        ("GET", "/healthz", 200, "text/plain", b'{"status": "ok"}', False),
        ("GET", "/healthz", 200, "application/json", b'{"status": "well"}', False),
        ("GET", "/uri/x?t=json", 206, "text/plain", b'["unknown", {}]', False),
        ("GET", "/uri/x?t=json", 200, "text/plain", b'["other", {}]', False),
        ("POST", "/uri/x?t=stream-manifest", 200, "text/html", b'{"path": []}\n', False),
        ("PUT", "/healthz", 200, "text/plain", b"", False),
        ("GET", "/operations", 200, "text/plain", b"", False),
        ("DELETE", "/uri/x", 500, "text/plain", b"", False),
    ],
)
def test_answer_when_it_is_as_documented_passes_and_no_other_does(
    method: str, target: str, status: int, type: str, body: bytes, is_documented: bool
) -> None:
    refusal = pytest.raises(AssertionError, match=r"documented|not a \w+")
    with nullcontext() if is_documented else refusal:
        require_documented(method, target, status, {"content-type": type, **GUARDED}, body)
