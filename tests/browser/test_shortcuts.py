"""Keyboard shortcuts, and downloading a directory as one archive."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from tests.browser.tabs import axe_script
from tests.browser.visitor import Visitor, faults

pytestmark = pytest.mark.browser


def test_keys_are_listed_and_do_what_the_list_says(visitor: Visitor) -> None:
    directory = visitor.make_directory({f"{number}.txt": b"the contents of a file" for number in range(15)})
    visitor.ask("PUT", f"{directory}sub?t=mkdir")
    visitor.ask("PUT", f"{directory}sub/inner.txt", b"inner")
    visitor.go(f"{directory}sub/")
    page = visitor.page

    page.keyboard.press("?")
    page.locator("dialog").get_by_role("heading", name="Keyboard shortcuts").wait_for()
    visitor.picture("keys")
    assert faults(visitor, axe_script(), None) == []
    page.keyboard.press("u")
    assert page.locator("dialog").count() == 1, "keys wait until a dialog is closed"
    page.keyboard.press("Escape")
    page.wait_for_function("() => document.querySelector('dialog') === null")

    page.keyboard.press("u")
    page.locator("caption", has_text="16 entries").wait_for()
    page.keyboard.press("j")
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.textContent") == "0.txt"
    page.keyboard.press("k")
    assert page.evaluate("document.activeElement.textContent").startswith("sub")
    page.keyboard.press("/")
    page.keyboard.type("?un/")
    assert page.get_by_label("Find a name").input_value() == "?un/", "what is typed into a field is no shortcut"
    page.get_by_label("Find a name").fill("")
    page.locator("h1").click()
    page.keyboard.press("n")
    page.wait_for_function("() => document.activeElement.id === 'mkdir-name'")
    page.locator("h1").click()
    page.keyboard.press("a")
    assert page.evaluate("document.activeElement.textContent") == "Choose files"
    page.keyboard.press("h")
    page.wait_for_url(f"{visitor.address}/")
    page.get_by_role("button", name="Keyboard shortcuts").click()
    page.locator("dialog").get_by_role("heading", name="Keyboard shortcuts").wait_for()


def test_a_directory_is_downloaded_as_an_archive_of_everything_below_it(visitor: Visitor) -> None:
    directory = visitor.make_directory({"a.txt": b"first", "b.bin": bytes(300_000)})
    visitor.ask("PUT", f"{directory}sub/c.txt", b"third")
    visitor.go(directory)
    visitor.page.set_viewport_size({"width": 320, "height": 700})
    assert visitor.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    visitor.picture("narrow")
    with visitor.page.expect_download() as started:
        visitor.page.get_by_role("link", name="Download as ZIP").click()
    assert started.value.suggested_filename == "directory.zip"
    with zipfile.ZipFile(Path(started.value.path())) as found:
        assert {name: found.read(name) for name in found.namelist() if not name.endswith("/")} == {
            "a.txt": b"first", "b.bin": bytes(300_000), "sub/c.txt": b"third",
        }  # fmt: skip
