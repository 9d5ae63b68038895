"""What a slow phone has to load: the bytes and requests of the first page and of a directory of 500 files."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.visitor import Visitor, uri
from tests.gateway.test_weight import BUDGET, photos

pytestmark = pytest.mark.browser

SLOW = {"offline": False, "latency": 150, "downloadThroughput": 1_600_000 / 8, "uploadThroughput": 750_000 / 8}
"""A slow mobile network."""


def test_slow_phone_loads_few_bytes_in_few_requests_and_nothing_again(visitor: Visitor) -> None:
    made = visitor.ask("POST", "/uri?t=mkdir-with-children", photos(500), kind="application/json")
    page = visitor.page
    page.set_viewport_size({"width": 390, "height": 844})
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    session.send("Network.emulateNetworkConditions", SLOW)
    session.send("Emulation.setCPUThrottlingRate", {"rate": 4})
    asked: list[str] = []
    loaded: list[float] = []

    def note(event: Any) -> None:
        loaded.append(event["encodedDataLength"])

    session.on("Network.loadingFinished", note)
    page.on("request", lambda request: asked.append(request.url))
    visitor.go(f"{uri(made.decode().strip())}/")
    page.wait_for_function("() => document.querySelector('form.selection').hidden")

    assert page.locator("#listing tbody tr").count() == 500
    assert page.locator("#listing tbody bdi").last.text_content() == "holiday photo 0499.jpg"
    assert sum(loaded) < BUDGET / 3, loaded
    assert len({url for url in asked if url.startswith("http")}) <= 4, asked
    asked.clear()
    loaded.clear()
    visitor.go("/")
    page.locator("#drop button").first.wait_for()
    assert sum(loaded) < BUDGET / 6, loaded
    assert sum("/assets/" in url for url in asked) == 0 or sum(loaded) < 10_000, "assets come from the cache"
    session.detach()
