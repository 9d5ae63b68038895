"""The pages in Firefox: nothing is cut off, and axe finds nothing. Runs if GRID_FIREFOX names the program."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.firefox import Firefox
from tests.browser.test_access import BEYOND, SMALL, WIDTHS, axe_script, make_places
from tests.browser.visitor import Visitor

# A Firefox takes 250 MB to install, so these run only where somebody names one.
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif("GRID_FIREFOX" not in os.environ, reason="GRID_FIREFOX names no Firefox"),
]


@pytest.fixture
def firefox(tmp_path: Path) -> Iterator[Firefox]:
    found = Firefox(os.environ["GRID_FIREFOX"], tmp_path)
    yield found
    found.close()


def require_sound(firefox: Firefox, name: str) -> None:
    firefox.run(axe_script())
    for width in WIDTHS:
        firefox.resize(width)
        found = firefox.evaluate(
            "axe.run(document, {resultTypes: ['violations']}).then((found) => found.violations.map((fault) =>"
            " [fault.id, fault.nodes.map((node) => node.html.slice(0, 200))]))"
        )
        assert found == [], (name, width)
        assert firefox.evaluate(f"({BEYOND})()") == [], (name, width)


READY = {
    "home": "!document.querySelector('#drop').hidden",
    "directory": "document.querySelector('form.selection').hidden",
    "file": "document.querySelector('#preview pre')",
    "statistics": "document.querySelector('.plot svg')",
}
"""When scripts have done their part, where they have one."""


def test_pages_are_sound_in_firefox_at_any_width(firefox: Firefox, visitor: Visitor) -> None:
    for name, path in make_places(visitor).items():
        firefox.go(visitor.address + path)
        firefox.wait_for(READY.get(name, "document.querySelector('main h1')"))
        if name == "health":
            press(firefox, "#health", "Check")
            firefox.wait_for("document.querySelector('.shares')")
        require_sound(firefox, name)
        firefox.resize(WIDTHS[0])
        assert firefox.evaluate(f"({SMALL})()") == [], name


def press(firefox: Firefox, part: str, words: str) -> None:
    """Press the last button or link in this part of the page with these words."""
    button = (
        f"[...document.querySelectorAll('{part} :is(button, a)')].filter((e) => e.textContent.trim() === '{words}')"
    )
    firefox.wait_for(f"{button}.length")
    firefox.run(f"{button}.at(-1).click()")


def test_dialogs_are_sound_in_firefox_at_any_width(firefox: Firefox, visitor: Visitor) -> None:
    files = dict.fromkeys(
        ("a.txt", "b.txt", f"{'long' * 30}.txt"), b"contents of a file that is not small at all, so it has shares"
    )
    directory = visitor.make_directory(files)

    def go() -> None:
        firefox.go(visitor.address + directory)
        firefox.wait_for("document.querySelector('form.selection').hidden")

    def edit(name: str) -> None:
        go()
        firefox.run(f"document.querySelector('#listing a.edit[href*=\"name={name}\"]').click()")
        firefox.wait_for("document.querySelector('dialog #rename-to')")

    def heading(words: str) -> None:
        firefox.wait_for(
            f"document.querySelector('dialog:last-of-type :is(h1, h2)')?.textContent.startsWith('{words}')"
        )

    def pick(name: str) -> None:
        go()
        firefox.run(f"document.querySelector('#listing input[value=\"{name}\"]').click()")
        assert firefox.evaluate("document.querySelector('[data-count]').textContent") == "1 selected"

    edit("b.txt")
    assert firefox.evaluate("document.querySelector('dialog').getAttribute('aria-label')").endswith(" b.txt")
    assert firefox.evaluate("document.activeElement.id") == "rename-to"
    require_sound(firefox, "rename")
    firefox.run("document.querySelector('dialog #rename-to').value = 'a.txt'")
    press(firefox, "dialog", "Rename")
    heading("Replace")
    require_sound(firefox, "conflict")
    press(firefox, "dialog", "Replace")
    heading("Replaced")
    require_sound(firefox, "replaced")
    edit("a.txt")
    firefox.run("document.querySelector('dialog #sure').click()")
    press(firefox, "dialog", "Delete")
    heading("Deleted")
    require_sound(firefox, "deleted")
    pick(f"{'long' * 30}.txt")
    press(firefox, ".selection", "Delete")
    heading("Delete 1")
    require_sound(firefox, "removal")
    pick(f"{'long' * 30}.txt")
    press(firefox, ".selection", "Move")
    heading("Move 1")
    firefox.wait_for("[...document.querySelectorAll('dialog button')].some((e) => e.textContent === 'Move here')")
    require_sound(firefox, "picker")
    go()
    press(firefox, "footer", "Keyboard shortcuts")
    heading("Keyboard")
    require_sound(firefox, "keys")
    go()
    firefox.run("document.querySelector('#listing tbody th a').click()")
    firefox.wait_for("document.querySelector('dialog.pane pre')")
    require_sound(firefox, "pane")
    press(firefox, "dialog.pane", "Share")
    heading("Share")
    require_sound(firefox, "share")
    visitor.complaints.clear()
