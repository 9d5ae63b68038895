"""Pages without a mouse, a screen or scripts; and stored files that try to act as pages."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from typing import Any

import pytest

from tests.browser.served import Served
from tests.browser.visitor import Visitor, uri

pytestmark = pytest.mark.browser


def test_everything_can_be_reached_by_keyboard_with_a_visible_focus(visitor: Visitor) -> None:
    visitor.go(visitor.make_directory({"a.txt": b"the contents of a file"}))
    page = visitor.page
    reached = []
    for _ in range(40):
        page.keyboard.press("Tab")
        name, outline = page.evaluate(
            "(() => { const e = document.activeElement; const s = getComputedStyle(e);"
            " const named = (e.getAttribute('aria-labelledby') ?? '').split(' ').filter(Boolean);"
            " const label = named.map((id) => document.getElementById(id).textContent).join(' ');"
            " return [e.getAttribute('aria-label') || label || e.textContent.trim() || e.id,"
            " s.outlineStyle + s.outlineWidth]; })()"
        )
        if name.startswith("Skip"):
            reached.append(name)
            continue
        if page.evaluate("document.activeElement === document.body"):
            break
        assert outline == "solid3px", name
        reached.append(name)
    for wanted in (
        "Skip to content",
        "Servers",
        "Choose files",
        "New directory",
        "a.txt",
        "Download a.txt",
        "Check",
    ):
        assert any(wanted in name for name in reached), (wanted, reached)

    link = page.get_by_role("link", name="Rename, move or delete a.txt")
    link.focus()
    page.keyboard.press("Enter")
    page.locator("dialog #rename-to").wait_for()
    page.wait_for_function("() => document.activeElement.id === 'rename-to'")
    page.keyboard.press("Escape")
    page.wait_for_function("() => document.querySelector('dialog') === null")
    assert page.evaluate("document.activeElement.className") == "edit"


def test_a_stored_page_shows_the_images_and_styles_beside_it(visitor: Visitor) -> None:
    page = visitor.page
    failed: list[str] = []
    page.on("requestfailed", lambda request: failed.append(request.url))
    image = b"<svg xmlns='http://www.w3.org/2000/svg' width='40' height='30'><rect width='40' height='30'/></svg>"
    html = b"<!DOCTYPE html><title>site</title><link rel=stylesheet href=a.css><p id=p>text</p><img id=i src=a.svg>"
    visitor.go(
        visitor.make_directory({"a.svg": image, "a.css": b"#p { color: rgb(1, 2, 3); }", "a.html": html}) + "a.html"
    )
    page.wait_for_load_state("load")

    assert page.evaluate("document.getElementById('i').naturalWidth") == 40
    assert page.evaluate("getComputedStyle(document.getElementById('p')).color") == "rgb(1, 2, 3)"
    assert page.evaluate("self.origin") == "null"
    assert set(failed) <= {f"{visitor.address}/favicon.ico"}, "the gateway's own files stay closed to stored pages"
    visitor.complaints.clear()


def test_a_long_directory_is_shown_in_pages_that_a_phone_can_sort(visitor: Visitor) -> None:
    page = visitor.page
    children = {f"{number}.txt": ["filenode", {"ro_uri": "URI:LIT:pb4hq"}] for number in range(1100)}
    directory = (
        uri(visitor.ask("POST", "/uri?t=mkdir-with-children", json.dumps(children).encode()).decode().strip()) + "/"
    )
    page.set_viewport_size({"width": 390, "height": 800})
    visitor.go(directory)

    assert page.locator("#listing tbody tr").count() == 500
    assert not page.locator("#listing thead").is_visible()
    page.locator(".sorting").get_by_role("link", name="Name").click()
    page.locator("#listing tbody tr", has_text="1099.txt").wait_for()
    page.wait_for_load_state()  # Scripts show and hide parts, and a click could meet what has just moved away.
    page.get_by_role("navigation", name="Pages of this list").get_by_role("link", name="Next").click()
    page.locator("caption", has_text="1100 entries, 501 to 1000 shown").wait_for()
    assert page.locator("#listing tbody bdi").first.inner_text() == "599.txt"
    page.get_by_label("Find a name").fill("1099")
    page.get_by_role("button", name="Find").click()
    page.locator("caption", has_text="1 of 1100 entries found").wait_for()
    visitor.picture("found")


def test_a_stored_page_cannot_run_or_read_another_capability(visitor: Visitor) -> None:
    secret = visitor.store(b"a secret that nobody else may read, whatever they store")
    hostile = (
        "<!DOCTYPE html><title>waiting</title><p id=out>nothing</p><script>"
        f"fetch('{visitor.address}{uri(secret)}').then(r => r.text())"
        ".then(t => { document.title = t; document.getElementById('out').textContent = t; })"
        ".catch(e => { document.title = 'refused'; });"
        "document.title = 'ran'; try { localStorage.setItem('a', 'b'); } catch (e) {}"
        f"</script><img src='{visitor.address}/uri/x'><svg onload='document.title=1'></svg>"
    )
    directory = visitor.make_directory({"evil.html": hostile.encode(), "evil.svg": hostile.encode()})
    listing = visitor.ask("GET", f"{directory}?t=json").decode()
    cap = listing.split('"evil.html"')[1].split('"ro_uri": "')[1].split('"')[0]

    visitor.go(f"/file/{cap}/@@named=/evil.html")
    visitor.page.wait_for_timeout(500)

    assert visitor.page.title() == "waiting"
    assert visitor.page.locator("#out").inner_text() == "nothing"
    assert visitor.page.evaluate("self.origin") == "null"
    visitor.complaints.clear()  # The browser says that it ran nothing, which is what is wanted.

    visitor.go(f"{uri(cap)}?t=info&filename=evil.html")
    visitor.page.locator("#preview pre").wait_for()
    assert "localStorage" in visitor.page.locator("#preview pre").inner_text()


def test_pages_work_without_scripts(chromium: Any, served: Served, visitor: Visitor) -> None:
    directory = visitor.make_directory({"a.txt": b"the contents of a text"})
    context = chromium.new_context(java_script_enabled=False)
    try:
        page = context.new_page()
        page.goto(served.address + directory)
        page.locator("summary").get_by_text("New directory").click()
        page.locator("#mkdir-name").fill("made without scripts")
        page.get_by_role("button", name="Create").click()
        page.get_by_role("link", name="made without scripts", exact=True).wait_for()
        page.get_by_role("button", name="Check", exact=True).click()
        page.locator(".notice", has_text="Healthy: 5 of 5 shares are good").wait_for()
        page.get_by_role("link", name="Back").click()
        page.get_by_role("link", name="Rename, move or delete a.txt").click()
        page.locator("#sure").check()
        page.get_by_role("button", name="Delete").click()
        page.get_by_role("heading", name="Deleted a.txt").wait_for()
        page.get_by_role("link", name="Back to the directory").click()
        page.get_by_text("1 entry").wait_for()
    finally:
        context.close()


def test_a_script_that_somebody_stored_does_not_run_in_a_page(visitor: Visitor) -> None:
    cap = visitor.store(b"document.title = 'ran'")
    address = f"/file/{cap}/@@named=/evil.js"
    visitor.go("/")

    outcome = visitor.page.evaluate(
        "address => new Promise((end) => { const s = document.createElement('script'); s.src = address;"
        " s.onload = () => end('loaded'); s.onerror = () => end('refused'); document.head.append(s); })",
        address,
    )

    assert outcome == "refused"
    assert visitor.page.title() == "Grid"
    visitor.complaints.clear()  # The browser says that it refused it, which is what is wanted.


def test_rows_of_a_list_on_a_phone_are_as_high_as_the_sheet_and_the_filter_say(visitor: Visitor) -> None:
    visitor.page.set_viewport_size({"width": 390, "height": 844})
    visitor.go(visitor.make_directory({f"IMG_20240506_{number:06}.jpg": bytes(200 + number) for number in range(45)}))
    measured = visitor.page.evaluate(
        """() => [...document.querySelectorAll('#listing tbody')].map((group) => [group.rows.length, group.scrollHeight / 16])"""
    )
    sheet = float(re.search(r"contain-intrinsic-block-size: auto ([\d.]+)rem", asset("grid.css"))[1])  # type: ignore[index]
    row = float(re.search(r"ROW_REM = ([\d.]+)", asset("filter.js"))[1])  # type: ignore[index]
    visitor.picture("phone")
    high = visitor.page.evaluate(
        "() => document.querySelector('#listing tbody tr').getBoundingClientRect().height / 16"
    )
    assert abs(high - row) < 0.1 and abs(20 * high - sheet) < 2, (high, measured)
    assert high < 5.2, "seven rows fit below the heading"
    same = visitor.page.evaluate(
        """() => [...document.querySelectorAll('#listing tr:first-child')].slice(1)
          .map((row) => [row.cells[1], row.cells[2]].map((cell) => Math.round(cell.getBoundingClientRect().top)))"""
    )
    assert all(size == date for size, date in same), "size and date are on one line"


def asset(name: str) -> str:
    return (files("grid.gateway") / "assets" / name).read_text()
