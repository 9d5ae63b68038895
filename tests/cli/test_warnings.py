"""Warnings of the engines and of gateways, as commands print them."""

from __future__ import annotations

import json

import click
import pytest

from grid.cli.connection import Warnings
from grid.cli.terminal.invocation import Invocation
from grid.cli.webapi.http import GatewayClient
from grid.ports import Event
from tests.cli.webapi.scripted import reactor, reply, scripted


def test_warning_when_repeated_then_is_printed_once_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    warnings, passed = Warnings(), list[Event]()
    observe = warnings.heard_by(passed.append)
    for text in ("a newer\nversion", "a newer\nversion", "another", ""):
        observe(Event(at=0.0, what="warning", detail=text))
    observe(Event(at=0.0, what="reject", detail="no warning"))
    told = capsys.readouterr()
    assert told.out == "" and told.err.count("\n") == 2
    assert told.err.splitlines()[1] == "grid: warning: another" and len(passed) == 5


def test_warning_when_the_command_prints_json_is_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    with click.Context(click.Command("ls"), obj=Invocation(as_json=True)):
        warnings = Warnings()
        for text in ("a newer\nversion", "a newer\nversion"):
            warnings.tell(text)
    told = capsys.readouterr()
    assert told.out == "" and json.loads(told.err) == {"event": "warning", "message": "a newer version"}


async def test_warning_when_a_gateway_sends_one_then_reaches_the_command() -> None:
    told: list[str] = []
    async with scripted([reply("URI:", X_Grid_Warning="an older version"), reply("URI:")]) as (_, store):
        given = store.client
        client = GatewayClient(given.address, given.runtime, reactor, told.append)
        try:
            for _ in range(2):
                assert await client.text("GET", ["uri"]) == "URI:"
        finally:
            await client.close()
    assert [text for text in told if text] == ["an older version"]
