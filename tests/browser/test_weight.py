"""What a slow phone has to load: the bytes and requests of the first page and of a directory of 500 files."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.interactive import slow_down
from tests.browser.visitor import Visitor, uri
from tests.gateway.test_weight import BUDGET, photos

pytestmark = pytest.mark.browser

SUBMITS = """() => Math.max(...[...document.forms].map((form) =>
  [...form.elements].filter((each) => each.matches("button, [type=submit]")).length))"""
"""The most buttons of one form."""

DRAWN = """() => [...document.querySelectorAll("#listing tbody tr")].filter((row) =>
  row.firstElementChild.checkVisibility({ contentVisibilityAuto: true })).length"""
"""The rows whose contents the browser laid out."""

PLACES = """() => ['#drop', '.filter', '#listing', '#listing table'].map((each) =>
  Math.round(document.querySelector(each).getBoundingClientRect().y))"""
"""Where the parts of a directory's page are, from above."""

RANGE = """([from, to]) => {
  const boxes = document.querySelectorAll("#listing tbody .pick input");
  boxes[from].click();
  boxes[to].dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true, shiftKey: true }));
}"""
"""Selects entries as a click and a click with Shift do."""


def test_slow_phone_loads_few_bytes_in_few_requests_and_nothing_again(visitor: Visitor) -> None:
    made = visitor.ask("POST", "/uri?t=mkdir-with-children", photos(500), kind="application/json")
    page = visitor.page
    page.set_viewport_size({"width": 390, "height": 844})
    session = slow_down(page)
    session.send("Performance.enable")
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
    counted = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
    assert counted["Nodes"] < 500 * 16, "what parsing, styles and layout take follows from it"
    assert counted["JSEventListeners"] < 100, "scripts listen once, not once per row"
    assert page.evaluate(SUBMITS) < 10, "in a form, each costs Chromium a look at all others (decision 365)"
    assert page.locator("#listing tbody").count() == 25
    assert page.evaluate(DRAWN) <= 40, "groups of rows out of sight are not laid out"
    assert sum(loaded) < BUDGET / 6, loaded
    assert len({url for url in asked if url.startswith("http")}) <= 3, asked
    assert not any("queueview" in url for url in asked), "who uploads nothing loads nothing for uploads"
    asked.clear()
    loaded.clear()
    visitor.go("/")
    page.locator("#drop button").first.wait_for()
    assert sum(loaded) < BUDGET / 12, "scripts come from the cache"
    session.detach()


def test_list_stays_where_it_is_when_scripts_arrive(visitor: Visitor) -> None:
    made = visitor.ask("POST", "/uri?t=mkdir-with-children", photos(60), kind="application/json")
    directory = f"{uri(made.decode().strip())}/"
    page = visitor.page
    page.route("**/app.js", lambda route: route.abort())
    places = {}
    for width in (390, 1200):
        page.set_viewport_size({"width": width, "height": 844})
        visitor.go(directory)
        places[width] = page.evaluate(PLACES)
    bar = page.locator(".selection")
    late = (
        "each => { const s = getComputedStyle(each); return [s.animationName, s.animationDelay, s.animationFillMode]; }"
    )
    assert bar.evaluate(late) == ["late", "5s", "backwards"]
    page.evaluate("document.getAnimations().forEach((each) => each.finish())")
    assert bar.is_visible(), "if scripts never arrive, the actions appear"
    page.unroute("**/app.js")
    visitor.complaints.clear()  # The browser says that the script did not come.

    for width, before in places.items():
        page.set_viewport_size({"width": width, "height": 844})
        visitor.go(directory)
        page.wait_for_function("() => document.querySelector('form.selection').hidden")
        assert page.evaluate(PLACES) == before


def test_short_list_below_the_window_has_the_height_of_its_rows(visitor: Visitor) -> None:
    page = visitor.page
    page.set_viewport_size({"width": 390, "height": 300})
    for count in (2, 45):
        made = visitor.ask("POST", "/uri?t=mkdir-with-children", photos(count), kind="application/json")
        visitor.go(f"{uri(made.decode().strip())}/")
        height = page.evaluate("document.querySelector('#listing table').offsetHeight")
        page.locator("#listing tbody tr").last.scroll_into_view_if_needed()
        assert abs(page.evaluate("document.querySelector('#listing table').offsetHeight") - height) < 20 * count


def test_rows_in_several_groups_are_filtered_and_selected_as_one_list_on_a_phone(visitor: Visitor) -> None:
    made = visitor.ask("POST", "/uri?t=mkdir-with-children", photos(100), kind="application/json")
    page = visitor.page
    page.set_viewport_size({"width": 390, "height": 844})
    visitor.go(f"{uri(made.decode().strip())}/")
    groups = page.locator("#listing tbody:not([hidden])")
    assert groups.count() == 5
    full = page.evaluate("document.documentElement.scrollHeight")

    page.get_by_label("Find a name").fill("9.jpg")
    page.locator("[data-found]").get_by_text("10 of 100").wait_for()
    assert groups.count() == 5
    some = page.evaluate("document.documentElement.scrollHeight")
    page.get_by_label("Find a name").fill("0099")
    page.locator("[data-found]").get_by_text("1 of 100").wait_for()
    assert groups.count() == 1 and page.locator("#n99").is_visible()
    one = page.evaluate("document.documentElement.scrollHeight")
    assert full - some > 60 * 100 and some - one > 5 * 100, "what is not shown takes no place"
    page.get_by_label("Find a name").fill("")
    page.wait_for_function("() => document.querySelectorAll('#listing tbody:not([hidden])').length === 5")

    page.evaluate(RANGE, [15, 45])
    assert page.locator(".selection").get_by_text("31 selected").is_visible()
    page.evaluate("document.querySelectorAll('#listing tbody th a')[19].focus()")
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.textContent") == "holiday photo 0020.jpg"
    page.keyboard.press("F2")
    page.get_by_label("New name of holiday photo 0020.jpg").wait_for()
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.textContent") == "holiday photo 0020.jpg"
