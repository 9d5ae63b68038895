"""The pages in Firefox: nothing is cut off, and axe finds nothing. Runs if GRID_FIREFOX names the program."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.firefox import Firefox
from tests.browser.test_access import BEYOND, WIDTHS, axe_script
from tests.browser.visitor import Visitor

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


def test_pages_and_dialogs_work_in_firefox_at_any_width(firefox: Firefox, visitor: Visitor) -> None:
    directory = visitor.make_directory({"a.txt": b"the contents of a text", f"{'long' * 30}.bin": bytes(20_000)})
    visitor.ask("PUT", f"{directory}sub?t=mkdir")
    places = {
        "home": ("/", "!document.querySelector('#drop').hidden"),
        "directory": (directory, "document.querySelector('form.selection').hidden"),
        "file": (f"{directory}a.txt?t=info", "document.querySelector('#preview pre')"),
        "operations": ("/status?all=true", "document.querySelector('#operations table')"),
        "statistics": ("/statistics", "document.querySelector('.plot svg')"),
        "servers": ("/servers", "document.querySelector('table')"),
    }
    for name, (path, condition) in places.items():
        firefox.go(visitor.address + path)
        firefox.wait_for(condition)
        require_sound(firefox, name)

    firefox.go(visitor.address + directory)
    firefox.wait_for("document.querySelector('form.selection').hidden")
    firefox.run("document.querySelector('#listing tbody tr:nth-child(2) .pick input').click()")
    assert firefox.evaluate("document.querySelector('[data-count]').textContent") == "1 selected"
    firefox.run("document.querySelector('#listing a.edit').click()")
    firefox.wait_for("document.querySelector('dialog #rename-to')")
    assert firefox.evaluate("document.querySelector('dialog').getAttribute('aria-label')").endswith(" sub")
    require_sound(firefox, "dialog")
