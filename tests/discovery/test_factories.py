"""Which transport the client of an announced server gets."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.task import Clock as TwistedClock

from grid.discovery.announcement import identify
from grid.discovery.factories import Transport, Transports
from grid.engine.server_memory import ServerMemory
from grid.runtime import make_runtime
from grid.wire.http.format.announced import NURLS_FIELD, PLAIN_FIELD
from grid.wire.two_ways.fallback import FallbackServer
from tests.discovery.samples import announcement

NURL = f"pb://{'A' * 43}@127.0.0.1:1/swissnum#v=1"
HTTP_FIRST, FOOLSCAP_FIRST = "HTTP, else Foolscap", "Foolscap, else HTTP"
OURS, OTHERS = "grid/1", "tahoe-lafs/1.20.0"


class _Reactor(TwistedClock):
    def addSystemEventTrigger(self, *arguments: Any) -> None:
        """A runtime wants to hear of the end; there is none here."""


def made_by(choice: Transport, changes: dict[str, Any], *, plaintext_reads: bool = False) -> str:
    """What the client is that an announcement with these fields gets: a class, or the ways in their order."""
    said = announcement(**changes)
    transports = Transports(
        tub=lambda: None,
        pool=lambda: None,
        runtime=make_runtime(_Reactor()),
        memory=ServerMemory(),
        choice=choice,
        plaintext_reads=plaintext_reads,
    )
    client = transports.server_maker()(identify(said, 0.0), said)
    return repr(client).partition(": ")[2][:-1] if isinstance(client, FallbackServer) else type(client).__name__


@pytest.mark.parametrize(
    ("choice", "version", "client"),
    [
        ("foolscap", OURS, "FoolscapServer"),
        ("foolscap", OTHERS, "FoolscapServer"),
        ("http", OURS, "HttpServer"),
        ("http", OTHERS, "HttpServer"),
        ("auto", OURS, HTTP_FIRST),
        ("auto", OTHERS, FOOLSCAP_FIRST),
        ("auto", None, FOOLSCAP_FIRST),
        ("auto", 5, FOOLSCAP_FIRST),
    ],
)
def test_client_of_a_server_that_offers_both_is_of_the_chosen_transport(
    choice: Transport, version: object, client: str
) -> None:
    assert made_by(choice, {"my-version": version, NURLS_FIELD: [NURL]}) == client


@pytest.mark.parametrize("choice", ["auto", "http", "foolscap"])
@pytest.mark.parametrize("nurls", [None, [], ["pb://x"], "text", [NURL.replace("v=1", "v=2")]])
def test_client_of_a_server_without_a_usable_nurl_is_of_foolscap(choice: Transport, nurls: object) -> None:
    assert made_by(choice, {NURLS_FIELD: nurls}) == "FoolscapServer"


@pytest.mark.parametrize("version", [OURS, OTHERS, None, 5])
def test_client_of_a_server_that_is_read_in_the_clear_is_of_http(version: object) -> None:
    fields = {"my-version": version, NURLS_FIELD: [NURL], PLAIN_FIELD: ["tcp:127.0.0.1:2"]}
    assert made_by("auto", fields, plaintext_reads=True) == HTTP_FIRST
    assert made_by("http", fields, plaintext_reads=True) == "HttpServer"
    assert made_by("foolscap", fields, plaintext_reads=True) == "FoolscapServer"
