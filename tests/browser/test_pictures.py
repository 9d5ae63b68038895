"""Directories of photographs as small pictures: what is loaded, and what is not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.browser.photographs import SMALL, draw, photograph
from tests.browser.scene import PICTURE, Scene
from tests.browser.served import Served
from tests.browser.tabs import WIDTHS
from tests.browser.visitor import Visitor, uri

pytestmark = pytest.mark.browser

SHOWN = """() => Object.fromEntries([...document.querySelectorAll("#listing tbody th")].map((cell) => {
  const image = cell.querySelector("img");
  return [cell.querySelector("bdi").textContent, image && [image.src.slice(0, 16), image.naturalWidth, image.style.rotate]];
}))"""

IN_WINDOW = """() => [...document.querySelectorAll("#listing tbody th")].filter((cell) => {
  const box = cell.getBoundingClientRect();
  return box.bottom > 0 && box.top < innerHeight;
}).length"""


def watch(visitor: Visitor, asked: list[tuple[str, str]]) -> None:
    """Note each request for the contents of a file in a directory: its name, and its range."""

    def note(request: Any) -> None:
        name = request.url.rpartition("/")[2]
        if ".jpg" in name or ".png" in name:
            asked.append((name, request.headers.get("range", "")))

    visitor.page.on("request", note)


def wait_until_loaded(visitor: Visitor, count: int) -> None:
    visitor.page.wait_for_function(
        f"() => [...document.querySelectorAll('#listing img')].filter((e) => e.naturalWidth > 0).length === {count}"
    )


def test_photographs_are_shown_by_what_cameras_put_into_their_beginnings(visitor: Visitor) -> None:
    page = visitor.page
    visitor.go("/")
    directory = visitor.make_directory(
        {
            "a.jpg": photograph(page, 3_000_000),
            "b.jpg": photograph(page, 3_000_000, turn=6, order=">"),
            "c without.jpg": photograph(page, 3_000_000, has_small=False),
            "d middling.jpg": photograph(page, 300_000, has_small=False),
            "e small.png": draw(page, 320, 200, "image/png"),
            "f.txt": b"no picture",
            "g broken.jpg": b"\xff\xd8\xff\xe1" + bytes(100_000),
            "h.svg": b"<svg xmlns='http://www.w3.org/2000/svg' width='40' height='30'/>",
        }
    )
    asked: list[tuple[str, str]] = []
    watch(visitor, asked)
    visitor.go(directory)
    page.wait_for_function("() => document.querySelector('form.selection').hidden")
    assert asked == [], "nobody has asked for pictures"

    with page.expect_request(lambda request: "broken" in request.url and "range" not in request.headers):
        page.get_by_role("button", name="Pictures").click()
    assert page.get_by_role("button", name="Pictures").get_attribute("aria-pressed") == "true"
    wait_until_loaded(visitor, 4)
    page.wait_for_function("() => document.querySelectorAll('#listing img').length === 4")
    assert page.evaluate(SHOWN) == {
        "a.jpg": ["data:image/jpeg;", SMALL[0], ""],
        "b.jpg": ["data:image/jpeg;", SMALL[0], "90deg"],
        "c without.jpg": None,
        "d middling.jpg": [f"{visitor.address}/"[:16], 640, ""],
        "e small.png": ["data:image/png;b", 320, ""],
        "f.txt": None,
        "g broken.jpg": None,
        "h.svg": None,
    }
    beginning = "bytes=0-65535"
    whole = sorted(name for name, part in asked if part != beginning)
    assert whole == ["d%20middling.jpg", "g%20broken.jpg"], "the broken one is small enough, but shows nothing"
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        visitor.picture(f"pictures-{width}")

    asked.clear()
    page.reload()
    wait_until_loaded(visitor, 4)
    page.get_by_role("button", name="Pictures").click()
    assert page.locator("#listing.pictures").count() == 0
    asked.clear()
    page.reload()
    page.wait_for_function("() => document.querySelector('form.selection').hidden")
    assert asked == [] and page.locator("#listing.pictures").count() == 0


def test_shared_photographs_are_shown_as_pictures_at_once_unless_rows_are_wanted(
    visitor: Visitor, served: Served
) -> None:
    page = visitor.page
    visitor.go("/")
    small = draw(page, 32, 24, "image/png")
    path = visitor.make_directory({"a.png": small, "b.png": small, "c.png": small, "notes.txt": b"no picture"})
    mixed = visitor.make_directory({"a.png": small, "notes.txt": b"no picture"})
    link, other = (Scene(None, served).link_to(each, "photos") for each in (path, mixed))  # type: ignore[arg-type]
    pressed, pictures = page.locator("[data-pictures]:not([hidden])"), page.locator("#listing.pictures")
    for shared in (link, served.visits + path):
        page.goto(shared if shared.startswith("http") else served.address + shared)
        wait_until_loaded(visitor, 3)
        assert pressed.get_attribute("aria-pressed") == "true"
    visitor.strangers = [each for each in visitor.strangers if not each.startswith(served.visits)]
    for listed in (other, path):
        visitor.go(listed)
        assert pressed.get_attribute("aria-pressed") == "false" and pictures.count() == 0

    visitor.go(link)
    pressed.click()
    assert pictures.count() == 0
    visitor.go(link)
    assert pressed.get_attribute("aria-pressed") == "false" and pictures.count() == 0, "rows were wanted"


@pytest.mark.parametrize("connection", [{"saveData": True}, {"effectiveType": "3g"}])
def test_shared_photographs_are_rows_where_little_should_be_transferred(
    visitor: Visitor, served: Served, connection: dict[str, object]
) -> None:
    page = visitor.page
    page.add_init_script(f"Object.defineProperty(navigator, 'connection', {{ value: {json.dumps(connection)} }})")
    path = visitor.make_directory({"a.png": PICTURE})
    visitor.go(Scene(None, served).link_to(path, "photos"))  # type: ignore[arg-type]
    page.locator("[data-pictures][aria-pressed=false]:not([hidden])").click()
    wait_until_loaded(visitor, 1)


def test_only_pictures_on_the_screen_are_loaded_and_those_that_are_scrolled_to(visitor: Visitor) -> None:
    page = visitor.page
    visitor.go("/")
    cap = visitor.store(photograph(page, 200_000))
    children = {f"{number:03}.jpg": ["filenode", {"ro_uri": cap}] for number in range(500)}
    made = visitor.ask("POST", "/uri?t=mkdir-with-children", json.dumps(children).encode())
    asked: list[tuple[str, str]] = []
    watch(visitor, asked)
    page.set_viewport_size({"width": 390, "height": 844})
    visitor.go(f"{uri(made.decode().strip())}/")
    page.get_by_role("button", name="Pictures").click()
    count = page.evaluate(IN_WINDOW)
    assert 0 < count < 20
    wait_until_loaded(visitor, count)
    assert len(asked) == count, "a row below the window is not loaded"
    page.evaluate("document.querySelector('#listing tbody:last-of-type').rows[0].scrollIntoView()")
    page.wait_for_function("() => document.querySelector('#listing tbody:last-of-type img')?.complete")
    assert len(asked) < 60, "what was only passed is not loaded"


def test_pictures_are_walked_in_rows_and_columns_renamed_and_selected(visitor: Visitor) -> None:
    page = visitor.page
    visitor.go("/")
    small = draw(page, 32, 24, "image/png")
    visitor.go(visitor.make_directory({f"{number}.png": small for number in range(1, 10)}))
    page.set_viewport_size({"width": 768, "height": 1600})
    page.get_by_role("button", name="Pictures").click()
    wait_until_loaded(visitor, 9)
    columns = page.evaluate(
        "(rows => rows.filter((row) => row.offsetTop === rows[0].offsetTop).length)([...document.querySelectorAll('#listing tbody tr')])"
    )
    assert 2 < columns < 9
    page.locator("h1").click()
    page.keyboard.press("j")
    for key, number in (("ArrowRight", 2), ("ArrowDown", 2 + columns), ("ArrowLeft", 1 + columns), ("ArrowUp", 1)):
        page.keyboard.press(key)
        assert page.evaluate("document.activeElement.textContent") == f"{number}.png"
    page.keyboard.press("x")
    page.locator(".selection").get_by_text("1 selected").wait_for()
    page.keyboard.press("F2")
    page.keyboard.type("better")
    visitor.picture("in-place")
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.activeElement.textContent === 'better.png'")
    wait_until_loaded(visitor, 9)
