"""Pages without a mouse, a screen or scripts; and stored files that try to act as pages."""

from __future__ import annotations

import json
import os
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import Served
from tests.browser.visitor import Visitor, uri

pytestmark = pytest.mark.browser


WIDTHS = (320, 768, 1280)


@pytest.mark.parametrize("visitor", ["light", "dark"], indirect=True)
def test_no_page_has_an_accessibility_fault_or_is_cut_off_at_any_width(
    visitor: Visitor, request: pytest.FixtureRequest
) -> None:
    is_light = request.node.callspec.params["visitor"] == "light"
    places = make_places(visitor)
    for name, path in places.items():
        visitor.page.set_viewport_size({"width": WIDTHS[0], "height": 900})
        visitor.go(path)
        if name == "health":
            visitor.page.get_by_role("button", name="Check", exact=True).click()
            visitor.page.locator(".shares").wait_for()
        if name == "file":
            visitor.page.locator("#preview pre").wait_for()
        for width in WIDTHS if is_light else WIDTHS[-1:]:
            visitor.page.set_viewport_size({"width": width, "height": 900})
            visitor.picture(f"{name}-{width}")
            # Colors are all that differs in the dark.
            assert faults(visitor, axe_script(), None if is_light else ["color-contrast"]) == [], (name, width)
            assert visitor.page.evaluate(BEYOND) == [], (name, width)
            assert width > WIDTHS[0] or visitor.page.evaluate(SMALL) == [], name
    visitor.complaints.clear()  # The browser says that one page was answered 404, as it was.


def make_places(visitor: Visitor) -> dict[str, str]:
    """A page of each kind, by what it shows."""
    directory = visitor.make_directory(
        {"a.txt": b"the contents of a text", "b.png": b"no picture", f"{'long' * 30}.bin": bytes(20_000)}
    )
    visitor.ask("PUT", f"{directory}sub?t=mkdir")
    cap = visitor.store(bytes(100_000))
    recent = json.loads(visitor.ask("GET", "/status?t=json"))["recent"]
    upload = next(operation["id"] for operation in recent if operation["type"] == "upload")
    return {
        "home": "/",
        "servers": "/servers",
        "operations": "/status?all=true",
        "operation": f"/status/{upload}",
        "statistics": "/statistics",
        "directory": directory,
        "empty": f"{directory}sub/",
        "rename": f"{directory}?t=rename-form&name=a.txt",
        "file": f"{directory}a.txt?t=info",
        "about": f"{directory}sub/?t=info",
        "health": f"{uri(cap)}?t=info",
        "mistake": f"{directory}gone.txt",
    }


BEYOND = """() => [...document.querySelectorAll('main *')].filter((e) => !e.closest('.unseen, thead, .icon, svg')
  && e.getClientRects().length && e.getBoundingClientRect().right > innerWidth + 1 && !e.closest('input'))
  .map((e) => e.outerHTML.slice(0, 200))"""
"""What lies to the right of the window."""

SMALL = """() => [...document.querySelectorAll('button, .button, select, summary, input:not([type=checkbox]), nav a, th a, td > a')]
  .filter((e) => !e.closest('thead') && e.getClientRects().length && e.getBoundingClientRect().height < 43.5)
  .map((e) => e.outerHTML.slice(0, 200))"""
"""What fingers miss."""


def test_no_dialog_has_an_accessibility_fault_or_is_cut_off_at_any_width(visitor: Visitor, tmp_path: Path) -> None:
    visitor.go(visitor.make_directory(dict.fromkeys(("a.txt", "b.txt", f"{'long' * 30}.txt"), b"contents of a file")))
    page, dialog = visitor.page, visitor.page.locator("dialog")

    def require_sound(name: str) -> None:
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            visitor.picture(f"{name}-{width}")
            assert faults(visitor, axe_script(), None, "dialog") == [], (name, width)
            assert page.evaluate(BEYOND.replace("main *", "dialog *")) == [], (name, width)

    page.get_by_role("link", name="Rename, move or delete b.txt").click()
    dialog.locator("#rename-to").fill("a.txt")
    require_sound("rename")
    dialog.get_by_role("button", name="Rename").click()
    dialog.get_by_role("heading", name="Replace “a.txt”?").wait_for()
    require_sound("conflict")
    dialog.get_by_role("button", name="Replace", exact=True).click()
    dialog.get_by_role("heading", name="Replaced a.txt").wait_for()
    require_sound("replaced")
    page.keyboard.press("Escape")
    page.get_by_role("link", name="Rename, move or delete a.txt").click()
    dialog.locator("#sure").check()
    dialog.get_by_role("button", name="Delete").click()
    dialog.get_by_role("heading", name="Deleted a.txt").wait_for()
    require_sound("deleted")
    page.keyboard.press("Escape")
    page.locator("summary").get_by_text("Link a capability").click()
    page.locator("#attach-name").fill("linked")
    page.locator("#attach-cap").fill("URI:CHK:half")
    page.get_by_role("button", name="Link", exact=True).click()
    dialog.locator(".notice.bad").wait_for()
    require_sound("mistake")
    page.keyboard.press("Escape")
    page.get_by_role("checkbox", name="Select long").check()
    page.locator(".selection").get_by_role("button", name="Delete").click()
    dialog.get_by_role("button", name="Delete").wait_for()
    require_sound("removal")
    page.keyboard.press("Escape")
    page.get_by_role("checkbox", name="Select long").check()
    page.locator(".selection").get_by_role("button", name="Move").click()
    dialog.get_by_role("button", name="Move here").wait_for()
    require_sound("picker")
    page.keyboard.press("Escape")
    dialog.wait_for(state="detached")
    page.get_by_role("heading", name="Directory").click()
    page.keyboard.press("?")
    dialog.get_by_role("heading", name="Keyboard shortcuts").wait_for()
    require_sound("keys")
    visitor.complaints.clear()  # The browser says that it was answered 409 and 400, as it was.


def axe_script() -> str:
    """axe-core: the file that GRID_AXE names, or the one that axe-playwright-python brings along."""
    named = os.environ.get("GRID_AXE")
    return (Path(named) if named else files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")


def faults(visitor: Visitor, axe: str, rules: list[str] | None, part: str = "") -> list[Any]:
    """What axe finds. rules: of these, if not of all. part: a selector, "" for the whole page."""
    if not visitor.page.evaluate("typeof axe === 'object'"):
        visitor.page.evaluate(axe)
    options = {"resultTypes": ["violations"]} | ({"runOnly": rules} if rules else {})
    found = visitor.page.evaluate("([part, options]) => axe.run(part || document, options)", [part, options])
    return [
        (fault["id"], fault["impact"], [node["html"][:200] for node in fault["nodes"]]) for fault in found["violations"]
    ]


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
