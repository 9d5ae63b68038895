"""Files of a directory in the preview pane."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.tabs import axe_script
from tests.browser.visitor import Visitor, faults

pytestmark = pytest.mark.browser

MARKDOWN = (
    b"# A title\n\n- one\n- *two*\n\n[a link](https://example.org/) <script>document.title = 'ran'</script>\n\n"
    b"![picture](https://example.org/pixel.png)\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
)
SVG = b"<svg xmlns='http://www.w3.org/2000/svg' width='40' height='30'><rect width='40' height='30'/></svg>"


def test_files_are_previewed_in_a_pane_one_after_the_other(visitor: Visitor) -> None:
    visitor.go(visitor.make_directory({"1.txt": b"the first text", "2.md": MARKDOWN, "3.svg": SVG, "4.bin": bytes(90)}))
    page = visitor.page
    title = page.title()
    axe = axe_script()
    page.locator("#listing").get_by_role("link", name="1.txt", exact=True).click()
    pane = page.locator("dialog.pane")
    pane.locator("pre", has_text="the first text").wait_for()
    page.keyboard.press("ArrowRight")
    pane.get_by_role("heading", name="A title").wait_for()
    link = pane.get_by_role("link", name="a link")
    assert set((link.get_attribute("rel") or "").split()) >= {"noopener", "noreferrer"}
    assert page.title() == title and pane.locator("article img, article script").count() == 0
    for width in (320, 768, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        visitor.picture(f"markdown-{width}")
        assert page.evaluate("(e => e.scrollWidth <= e.clientWidth)(document.querySelector('dialog'))"), width
        assert faults(visitor, axe, None) == [], width
    pane.get_by_role("button", name="Show as plain text").click()
    pane.locator("pre", has_text="# A title").wait_for()
    pane.get_by_role("link", name="Next: 3.svg").click()
    page.wait_for_function("() => document.querySelector('dialog img')?.naturalWidth === 40")
    page.wait_for_function("() => document.activeElement.getAttribute('rel') === 'next'")
    page.keyboard.press("]")
    pane.get_by_role("heading", name="4.bin").wait_for()
    pane.get_by_text("4 of 4").wait_for()
    page.keyboard.press("Escape")
    pane.wait_for(state="detached")
    page.wait_for_function("() => document.activeElement.textContent === '4.bin'")


def test_heading_and_neighbors_stay_where_they_are_while_the_contents_come(visitor: Visitor) -> None:
    page = visitor.page
    visitor.go(visitor.make_directory({"0.txt": b"a text with a few words " * 300, "1.txt": b"short"}))
    held: list[Any] = []

    def hold(route: Any) -> None:
        held.append(route)

    page.route(lambda address: "0.txt" in address and "t=info" not in address, hold)
    page.locator("#listing").get_by_role("link", name="0.txt", exact=True).click()
    pane = page.locator("dialog.pane")
    step = pane.get_by_role("link", name="Next: 1.txt")
    step.wait_for()
    before = step.bounding_box()
    while not held:
        page.wait_for_timeout(20)
    held[0].continue_()
    pane.locator("pre", has_text="a few words").wait_for()
    assert step.bounding_box() == before
    step.click()
    pane.locator("pre", has_text="short").wait_for()
    assert pane.get_by_role("link", name="Previous: 0.txt").bounding_box()["y"] == before["y"]


def test_finger_that_moves_over_the_pane_leads_to_the_neighbor_and_one_that_scrolls_does_not(visitor: Visitor) -> None:
    files = {f"{number}.txt": b"a text with a few words " * 300 for number in range(3)}
    visitor.go(visitor.make_directory(files))
    page = visitor.page
    page.set_viewport_size({"width": 320, "height": 640})
    session = page.context.new_cdp_session(page)
    session.send("Emulation.setTouchEmulationEnabled", {"enabled": True})

    def move(*places: tuple[int, int], fingers: int = 1) -> None:
        for kind, at in (("touchStart", places[0]), *(("touchMove", place) for place in places), ("touchEnd", None)):
            points = [{"x": at[0] + 40 * n, "y": at[1], "id": n} for n in range(fingers)] if at else []
            session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    pane = page.locator("dialog.pane")
    page.locator("#listing").get_by_role("link", name="0.txt", exact=True).click()
    where = pane.locator(".neighbors li").nth(1)
    where.get_by_text("1 of 3").wait_for()
    box = pane.locator("h1").bounding_box()
    assert box
    x, y = 60, int(box["y"] + box["height"] / 2)
    move((x + 200, y), (x + 100, y), (x, y + 5))
    where.get_by_text("2 of 3").wait_for()
    for ways in ([(x + 200, y), (x + 170, y)], [(x + 80, y + 60), (x, y)]):
        move(*ways)
    move((x + 100, y), (x, y), fingers=2)
    move((x, y), (x + 100, y), (x + 200, y))
    where.get_by_text("1 of 3").wait_for()
    move((x, y), (x + 200, y))
    move((x + 200, y), (x, y))
    where.get_by_text("2 of 3").wait_for()
    session.detach()


def test_file_is_shared_from_the_pane_by_a_link_a_capability_and_a_code(visitor: Visitor) -> None:
    visitor.go(visitor.make_directory({"1.txt": b"the first text of two, which is not that short", "2.txt": b"b"}))
    page = visitor.page
    page.locator("#listing").get_by_role("link", name="1.txt", exact=True).click()
    page.locator("dialog.pane").get_by_role("link", name="Share", exact=True).click()
    dialog = page.locator("dialog").last
    dialog.get_by_role("heading", name="Share 1.txt").wait_for()
    dialog.get_by_role("img", name="QR code of the link").wait_for()
    for width in (320, 768, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        visitor.picture(f"share-{width}")
        assert page.evaluate("(e => e.scrollWidth <= e.clientWidth)([...document.querySelectorAll('dialog')].at(-1))")
        assert faults(visitor, axe_script(), None) == [], width
    dialog.get_by_role("button", name="Copy: Link").click()
    dialog.get_by_text("Copied", exact=True).wait_for()
    link = page.evaluate("navigator.clipboard.readText()")
    assert visitor.ask("GET", link.removeprefix(visitor.address)).startswith(b"the first text")
    page.keyboard.press("Escape")
    page.wait_for_function("() => document.querySelectorAll('dialog').length === 1")
    assert page.evaluate("document.activeElement.textContent") == "Share"


def test_back_closes_the_pane_and_forward_opens_it_again(visitor: Visitor) -> None:
    directory = visitor.make_directory({"1.txt": b"the first text", "2.txt": b"the second text", "3.bin": bytes(90)})
    page = visitor.page
    visitor.go("/")
    visitor.go(directory)
    pane = page.locator("dialog.pane")
    for way in ("back", "button", "back"):
        page.locator("#listing").get_by_role("link", name="1.txt", exact=True).click()
        pane.locator("pre", has_text="the first text").wait_for()
        page.keyboard.press("]")
        pane.locator("pre", has_text="the second text").wait_for()
        if way == "back":
            page.go_back()
        else:
            pane.get_by_role("button", name="Close").click()
        pane.wait_for(state="detached")
        page.wait_for_function("() => document.activeElement.textContent === '2.txt' && !history.state")
        assert page.url == visitor.address + directory

    page.go_forward()
    pane.locator("pre", has_text="the second text").wait_for()
    pane.get_by_role("link", name="Details").click()
    page.locator(".facts").wait_for()
    page.go_back()
    pane.locator("pre", has_text="the second text").wait_for()
    pane.get_by_role("link", name="Share", exact=True).click()
    page.get_by_role("heading", name="Share 2.txt").wait_for()
    page.go_back()
    page.wait_for_function("() => document.querySelector('dialog') === null")
    assert page.url == visitor.address + directory
    page.go_back()
    page.wait_for_url(f"{visitor.address}/")
