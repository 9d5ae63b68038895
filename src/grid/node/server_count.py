"""Asks an introducer how many storage servers a grid has. It connects to no server, and keeps nothing."""

from __future__ import annotations

from math import inf

from grid.discovery.announcement import Address, Announcement, address_of, identify
from grid.discovery.introducer_client import IntroducerClient, IntroducerSettings
from grid.errors import FormatError
from grid.node.config import NodeSettings
from grid.node.tubs import client_tub
from grid.ports import Clock
from grid.version import __version__
from grid.wire.foolscap.tub import stop_tub
from grid.wire.locators import Furl
from grid.wire.status import ConnectionState

ASK_S = 3.0
"""Seconds that the introducer has for its answer: nobody waits long for a number that only serves a warning."""


async def count_servers(settings: NodeSettings, introducer: Furl, clock: Clock) -> int | None:
    """How many storage servers are announced, those at one address counted once; None if the introducer does not answer soon.

    settings: of the node that asks. ConfigError if it may not connect.
    """
    addresses: set[Address] = set()

    def note(announcement: Announcement) -> None:
        try:
            identify(announcement, inf)
            addresses.add(address_of(announcement))
        except FormatError:
            return  # No client could use it.

    tub = client_tub(settings)
    client = IntroducerClient(
        IntroducerSettings(furl=introducer, version=f"grid/{__version__}", deadline_s=ASK_S), tub, clock, note
    )
    client.start()
    try:
        await client.settled(ASK_S)
        return len(addresses) if client.status.state is ConnectionState.CONNECTED else None
    finally:
        client.close()
        await stop_tub(tub, clock)
