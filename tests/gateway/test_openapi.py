"""The OpenAPI document against what the gateway answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from grid.gateway.apitable import ENDPOINTS, PARAMETERS
from grid.gateway.openapi import document
from grid.gateway.site import make_routes
from tests.gateway.rig import running_gateway


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
