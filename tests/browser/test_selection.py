"""Several entries of a directory at once, by mouse, finger and keys; and names changed where they are."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from tests.browser.tabs import axe_script
from tests.browser.visitor import Visitor, faults

pytestmark = pytest.mark.browser


def test_entries_are_selected_downloaded_moved_and_removed_together(visitor: Visitor) -> None:
    directory = visitor.make_directory({f"{number}.txt": b"the contents of a file" for number in range(1, 13)})
    visitor.ask("PUT", f"{directory}sub/inner?t=mkdir")
    visitor.go(directory)
    page = visitor.page
    bar = page.locator(".selection")
    assert not bar.is_visible()

    page.get_by_role("checkbox", name="Select 2.txt", exact=True).click()
    page.get_by_role("checkbox", name="Select 11.txt", exact=True).click(modifiers=["Shift"])
    page.locator("tr", has_text="12.txt").locator("td").first.click(modifiers=["Control"])
    page.get_by_role("checkbox", name="Select 5.txt", exact=True).click()
    bar.get_by_text("10 selected").wait_for()
    visitor.picture("selected")
    assert faults(visitor, axe_script(), None) == []
    page.get_by_role("checkbox", name="Select 1.txt", exact=True).focus()
    page.keyboard.press("Escape")
    assert not bar.is_visible()
    for name in ("1.txt", "10.txt"):
        page.get_by_role("checkbox", name=f"Select {name}", exact=True).click()
    with page.expect_download() as started:
        bar.get_by_role("button", name="Download").click()
    with zipfile.ZipFile(Path(started.value.path())) as found:
        assert found.namelist() == ["1.txt", "10.txt"]

    bar.get_by_role("button", name="Move").click()
    page.locator("dialog").get_by_role("button", name="sub").click()
    page.locator("dialog").get_by_role("button", name="inner").wait_for()
    visitor.picture("picker")
    assert faults(visitor, axe_script(), None) == []
    page.locator("dialog").get_by_role("button", name="Move here").click()
    page.locator("caption", has_text="11 entries").wait_for()
    assert page.locator("#announce").inner_text() == "Moved 2 entries"
    assert page.get_by_text("Recently removed").count() == 0

    page.set_viewport_size({"width": 320, "height": 700})
    page.get_by_label("Select all entries shown").click()
    page.get_by_role("checkbox", name="Select sub", exact=True).click()
    bar.get_by_text("10 selected").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    small = page.evaluate(
        "[...document.querySelectorAll('.pick, .selection button')].filter("
        "each => each.getClientRects().length && each.getBoundingClientRect().height < 43.5).length"
    )
    assert small == 0
    visitor.picture("phone")
    bar.get_by_role("button", name="Delete").click()
    page.locator("dialog").get_by_role("button", name="Delete").click()
    page.locator("caption", has_text="1 entry").wait_for()
    page.get_by_text("Recently removed or replaced here: 1").click()
    page.get_by_role("button", name="Put back").click()
    page.locator("caption", has_text="11 entries").wait_for()


def test_name_is_changed_in_place_and_kept_when_the_key_is_escape(visitor: Visitor) -> None:
    visitor.go(visitor.make_directory({"a.txt": b"first", "b.txt": b"second"}))
    page = visitor.page
    page.keyboard.press("j")
    page.keyboard.press("F2")
    page.keyboard.type("other")
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.textContent") == "a.txt"
    page.keyboard.press("F2")
    page.keyboard.type("better <b>")
    visitor.picture("in-place")
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.activeElement.textContent === 'better <b>.txt'")
    assert page.locator("#announce").inner_text() == "Renamed a.txt to better <b>.txt"


def test_next_file_is_a_key_away(visitor: Visitor) -> None:
    directory = visitor.make_directory({"a.txt": b"first", "b.txt": b"second", "c <i>.txt": b"third"})
    visitor.go(f"{directory}b.txt?t=info")
    page = visitor.page
    page.get_by_text("2 of 3").wait_for()
    page.keyboard.press("]")
    page.locator("#preview pre").get_by_text("third").wait_for()
    assert page.get_by_role("heading", level=1).inner_text() == "c <i>.txt"
    page.set_viewport_size({"width": 320, "height": 700})
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert faults(visitor, axe_script(), None) == []
    visitor.picture("next")
    page.keyboard.press("[")
    page.locator("#preview pre").get_by_text("second").wait_for()
