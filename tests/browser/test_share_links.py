"""Links that end, in a real browser: made and taken back by their owner, and opened by somebody else."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from grid.node.own_files import hand_over
from tests.browser.conftest import restore
from tests.browser.scene import Scene
from tests.browser.served import Served
from tests.browser.tabs import BEYOND, SMALL, axe_script
from tests.browser.visitor import Visitor, faults

pytestmark = pytest.mark.browser

PICTURE = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
)


def open_dialog(visitor: Visitor, served: Served, directory: str) -> Any:
    """The dialog Share of a directory, in the browser of its owner."""
    page = visitor.page
    visitor.go(f"/#own={hand_over(served.folder, time.time())}")
    page.locator("#own #aliases").wait_for()
    visitor.go(directory)
    page.get_by_role("link", name="Share", exact=True).click()
    return page.locator("dialog")


def check(visitor: Visitor, name: str, width: int = 320) -> None:
    """No fault of accessibility, and nothing cut off or, on a narrow phone, too small for fingers."""
    visitor.page.set_viewport_size({"width": width, "height": 900})
    visitor.picture(name)
    assert faults(visitor, axe_script(), None) == [], name
    assert visitor.page.evaluate(BEYOND) == [], name
    if width < 640:
        assert visitor.page.evaluate(SMALL) == [], name


@pytest.mark.parametrize("visitor", ["light", "dark"], indirect=True)
def test_link_that_ends_is_made_opened_and_taken_back(visitor: Visitor, served: Served, chromium: Any) -> None:
    directory = visitor.make_directory({"a.txt": b"the contents of a text", "b.png": PICTURE, "c.png": PICTURE})
    visitor.ask("PUT", f"{directory}sub?t=mkdir")
    page = visitor.page
    dialog = open_dialog(visitor, served, directory)
    dialog.get_by_label("Ends after").select_option("1 day")
    dialog.get_by_role("button", name="Make a link").click()
    made = dialog.get_by_role("textbox", name="Link that ends")
    made.wait_for()
    link = made.input_value()
    assert link.startswith(f"{served.address}/s/")
    assert dialog.get_by_role("img", name="QR code of the link that ends").is_visible()
    assert page.evaluate("document.activeElement !== document.body")
    check(visitor, "dialog")

    stranger = chromium.new_context(viewport={"width": 320, "height": 900})
    try:
        other = Visitor(stranger.new_page(), served.address, None, "stranger")
        other.page.goto(link)
        other.page.locator("#listing").get_by_role("link", name="a.txt", exact=True).wait_for()
        check(other, "listing")
        other.page.locator("#listing").get_by_role("link", name="b.png", exact=True).click()
        shown = other.page.locator("dialog.pane")
        shown.get_by_text("2 of 3").wait_for()
        check(other, "pane")
        other.page.keyboard.press("]")
        shown.get_by_text("3 of 3").wait_for()
        other.page.keyboard.press("Escape")
        other.page.wait_for_function("() => !history.state")
        other.page.goto(f"{link}/a.txt?t=info")
        other.page.locator("#preview pre").get_by_text("the contents of a text").wait_for()
        check(other, "file")
        with other.page.expect_download() as saved:
            other.page.get_by_role("link", name="Download").click()
        assert saved.value.path().read_bytes() == b"the contents of a text"
        for content in (other.page.content(), other.page.url):
            assert "URI:" not in content and "URI%3A" not in content

        dialog.get_by_role("button", name="Take back").first.click()
        page.locator("#announce", has_text="Taken back").wait_for(state="attached")
        assert dialog.get_by_role("button", name="Take back").count() == 0
        other.page.goto(link)
        other.page.get_by_role("heading", name="Nothing here").wait_for()
        check(other, "gone")
        assert [text for text in other.complaints if "404" not in text] == [] and other.strangers == []
    finally:
        stranger.close()


TIMES = "time, #listing td:nth-of-type(2)"


@pytest.mark.parametrize("zone", ["Asia/Kolkata", "America/St_Johns"])
def test_visitors_see_times_in_their_own_zone(served: Served, chromium: Any, zone: str) -> None:
    client = Scene(None, served)  # type: ignore[arg-type]  # It opens no page.
    path = client.directory()
    link = served.address + client.link_to(path, "holiday")
    plain = chromium.new_context(java_script_enabled=False)
    here = chromium.new_context(timezone_id=zone)
    try:
        page, other = plain.new_page(), here.new_page()
        page.goto(link)
        other.goto(link)
        listed = page.locator(TIMES).all_inner_texts()
        assert len(listed) == 6 and all(re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", each) for each in listed)
        shown = [datetime.strptime(each, "%Y-%m-%d %H:%M UTC").replace(tzinfo=UTC) for each in listed]
        local = [f"{each.astimezone(ZoneInfo(zone)):%Y-%m-%d %H:%M}" for each in shown]
        other.wait_for_function("() => document.querySelector('main time[title]')")
        assert other.locator(TIMES).all_inner_texts() == local
        assert [each.get_attribute("title") for each in other.locator(TIMES).all()] == listed
        other.goto(f"{link}a.txt?t=info")
        other.wait_for_function("() => document.querySelector('.facts time[title]')")
        assert set(other.locator(TIMES).all_inner_texts()) <= set(local)
        other.goto(f"{served.visits}{path}")
        other.wait_for_function("() => document.querySelector('#listing td[title]')")
        assert set(other.locator(TIMES).all_inner_texts()) <= set(local)
    finally:
        plain.close()
        here.close()
        restore(served)


@pytest.mark.parametrize("visitor", ["light", "dark"], indirect=True)
def test_link_with_a_password_and_one_download_is_made_in_the_dialog(
    visitor: Visitor, served: Served, chromium: Any
) -> None:
    directory = visitor.make_directory({"a.txt": b"the contents of a text"})
    page = visitor.page
    dialog = open_dialog(visitor, served, directory)
    dialog.get_by_text("More options").click()
    assert page.evaluate("document.activeElement !== document.body")
    for width in (320, 768, 1280):
        dialog.get_by_role("button", name="Make a link").scroll_into_view_if_needed()
        check(visitor, f"options at {width}", width)
    page.keyboard.press("Tab")
    page.keyboard.type("short")
    assert dialog.get_by_label("Password").input_value() == "short", "the first field follows its summary"
    dialog.get_by_role("button", name="Make a link").click()
    assert dialog.get_by_label("Password").evaluate("each => each.matches(':invalid')")
    dialog.get_by_label("Password").fill("correct horse")
    dialog.get_by_label("Number of downloads").fill("1")
    dialog.get_by_label("Last day").fill("2020-01-01")
    dialog.get_by_role("textbox", name="Name", exact=True).fill("for you")
    dialog.get_by_role("button", name="Make a link").click()
    dialog.get_by_role("alert").get_by_text("This day is over").wait_for()
    visitor.complaints.clear()  # The browser says that this was answered with 400, as it was.
    assert dialog.get_by_label("Password").input_value() == "correct horse", "what was typed is kept"
    dialog.get_by_label("Last day").fill(time.strftime("%Y-%m-%d", time.gmtime(time.time() + 86400)))
    dialog.get_by_role("button", name="Make a link").click()
    made = dialog.get_by_role("textbox", name="Link that ends")
    made.wait_for()
    link = made.input_value()
    row = dialog.locator("#share-links li").filter(has_text="for you")
    assert "with a password" in row.inner_text() and "0 of 1 downloads" in row.inner_text()
    assert dialog.get_by_label("Password").input_value() == ""

    stranger = chromium.new_context(viewport={"width": 320, "height": 900})
    try:
        other = Visitor(stranger.new_page(), served.address, None, "stranger")
        other.page.goto(link)
        other.page.get_by_label("Password").fill("correct horse")
        check(other, "password")
        other.page.get_by_role("button", name="Open").click()
        other.page.get_by_role("heading", name="for you").wait_for()
        other.page.goto(f"{link}/a.txt?t=info")
        with other.page.expect_download() as saved:
            other.page.get_by_role("link", name="Download").click()
        assert saved.value.path().read_bytes() == b"the contents of a text"
        other.page.goto(link)
        other.page.get_by_role("heading", name="Nothing here").wait_for()
        row.get_by_role("button", name="Take back").click()
        page.locator("#announce", has_text="Taken back: for you").wait_for(state="attached")
    finally:
        stranger.close()


def test_card_is_shown_to_no_browser_that_grid_web_did_not_open(visitor: Visitor) -> None:
    directory = visitor.make_directory({"a.txt": b"x"})
    visitor.go(f"{directory}?t=share")
    assert visitor.page.locator("[data-ending]").count() == 0
