"""Checks and repairs of everything below a directory, from its page."""

from __future__ import annotations

import random

import pytest

from tests.browser.served import Served
from tests.browser.tabs import axe_script
from tests.browser.visitor import Visitor, faults

pytestmark = pytest.mark.browser


def test_everything_below_is_checked_live_stopped_and_repaired(visitor: Visitor, served: Served) -> None:
    random_bytes = random.Random(7).randbytes
    directory = visitor.make_directory({f"{number}.bin": random_bytes(300) for number in range(30)})
    for number in range(3):
        visitor.ask("PUT", f"{directory}sub/{number}.bin", random_bytes(300))
    page = visitor.page
    page.set_viewport_size({"width": 320, "height": 800})
    visitor.go(directory)
    served.order("hold")
    page.locator("#tree").get_by_label("Verify: read").check()
    page.get_by_role("button", name="Check everything below").click()
    page.get_by_role("heading", name="Verification of everything below").wait_for()
    page.locator("#operation progress").wait_for()
    visitor.picture("running")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert faults(visitor, axe_script(), None) == []
    page.get_by_role("button", name="Stop", exact=True).click()
    page.get_by_text("Stopped. These are the results so far.").wait_for()
    served.order("release")

    served.kill(0)
    served.kill(3)
    page.get_by_role("link", name="Back to the directory").click()
    page.get_by_role("link", name="Results of the last check").wait_for()
    page.get_by_role("button", name="Check everything below").click()
    page.locator(".notice", has_text="35 of 35 objects are not healthy, but all can be read.").wait_for()
    page.locator("#announce", has_text="A repair recreates the missing shares.").wait_for(state="attached")
    served.order("slow 50")
    page.get_by_role("button", name="Repair", exact=True).click()
    page.get_by_role("heading", name="Repair of everything below").wait_for()
    page.locator("#operation .busy").wait_for()
    served.order("slow 0")
    page.locator(".notice", has_text="Everything is healthy").wait_for()

    assert page.get_by_role("button", name="Stop", exact=True).count() == 0
    page.locator("#announce", has_text="Everything is healthy: 35 objects.").wait_for(state="attached")
    for width in (320, 768, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        visitor.picture(f"repaired-{width}")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width
        assert faults(visitor, axe_script(), None) == [], width
    page.locator("#unhealthy").get_by_role("link", name="sub/1.bin").click()
    page.get_by_role("heading", name="1.bin").wait_for()
