"""Restoring removed entries from the page of their directory."""

from __future__ import annotations

import pytest

from tests.browser.tabs import axe_script
from tests.browser.visitor import Visitor, faults

pytestmark = pytest.mark.browser


def test_removed_and_replaced_entries_are_put_back_where_they_were(visitor: Visitor) -> None:
    directory = visitor.make_directory({"a.txt": b"the first contents", "b.txt": b"other contents"})
    visitor.ask("DELETE", f"{directory}b.txt")
    visitor.ask("PUT", f"{directory}a.txt", b"the second contents")
    page = visitor.page
    page.set_viewport_size({"width": 320, "height": 700})
    visitor.go(directory)
    page.get_by_text("Recently removed or replaced here: 2").click()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    visitor.picture("narrow")
    assert faults(visitor, axe_script(), None) == []
    page.set_viewport_size({"width": 1280, "height": 900})
    visitor.picture("wide")
    page.get_by_role("button", name="Put back b.txt").click()
    page.locator("caption", has_text="2 entries").wait_for()
    page.wait_for_function("() => document.activeElement.textContent === 'b.txt'")
    assert page.locator("#announce").inner_text() == "Put back b.txt"
    page.get_by_text("Recently removed or replaced here: 1").wait_for()
    page.keyboard.press("z")
    assert page.evaluate("document.activeElement.textContent") == "Put back"
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.activeElement.textContent === 'a.txt'")
    assert visitor.ask("GET", f"{directory}a.txt") == b"the first contents"
