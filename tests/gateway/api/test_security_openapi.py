"""Valid and invalid requests made from the gateway's OpenAPI document: no 5xx, no traceback, nothing undocumented."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.gateway.running import RunningGateway, running_process
from tests.support.depth import examples

EXAMPLES = settings(max_examples=examples(120), deadline=None, suppress_health_check=list(HealthCheck))

NOT_OURS = {501, 503}
"""A method of an object that has none such; no servers."""


CHECKED = [status_code_conformance, content_type_conformance, response_schema_conformance]


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    """One gateway for all."""
    with running_process(tmp_path_factory.mktemp("openapi")) as gateway:
        yield gateway
        assert "Traceback" not in gateway.logged()


@pytest.fixture(scope="module")
def operations(gateway: RunningGateway) -> list[Any]:
    """What the document describes, read once for all examples."""
    document = json.loads(gateway.ask("GET", "/openapi.json").body)
    schema = schemathesis.openapi.from_dict(document)
    found = [found.ok() for found in schema.get_all_operations() if isinstance(found, Ok)]
    assert found
    return found


@EXAMPLES
@given(st.data())
def test_request_when_made_from_the_document_is_answered_and_no_5xx(
    gateway: RunningGateway, operations: list[Any], data: st.DataObject
) -> None:
    operation = data.draw(st.sampled_from(operations))
    case = data.draw(operation.as_strategy())
    response = case.call(base_url=f"http://{gateway.host}")
    assert response.status_code < 500 or response.status_code in NOT_OURS, (operation.label, response.status_code)
    assert "Traceback" not in response.text
    case.validate_response(response, checks=CHECKED)
