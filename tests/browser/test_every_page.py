"""Every page and dialog of the gateway, in both browsers and at three widths: nothing is cut off, and axe finds nothing.

Firefox takes part if GRID_FIREFOX names it. A page that is not in the list fails a test, and so does a case of the list
that shows another page than it says.
"""

from __future__ import annotations

import ast
import os
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

import tests.browser.shown_dialogs
import tests.browser.shown_directories
import tests.browser.shown_pages  # noqa: F401 - they fill the list
from tests.browser.scene import SHOWN, Scene, Shown
from tests.browser.shown_directories import show_directory_by_a_long_path
from tests.browser.tabs import WIDTHS, ChromiumTab, faint, troubles

pytestmark = pytest.mark.browser

REFUSED = "Failed to load resource: the server responded with a status of"
"""What Chromium logs when a request is refused, as some of them are meant to be."""


@pytest.mark.parametrize("case", SHOWN, ids=lambda case: case.name)
def test_page_or_dialog_is_sound_at_any_width(scene: Scene, case: Shown, request: pytest.FixtureRequest) -> None:
    tab, part = scene.tab, "dialog:last-of-type" if case.dialog else ""
    scene.served.order("pages")
    tab.resize(WIDTHS[0])
    case.show(scene)
    rendered = scene.served.order("pages").split()
    assert set(case.renders) <= set(rendered), rendered
    assert bool(tab.evaluate("document.querySelector('dialog[open]') !== null")) == bool(case.dialog)
    found: dict[Any, list[Any]] = {}
    for width in WIDTHS:
        tab.resize(width)
        keep(scene, f"{request.node.callspec.id}-{width}")
        # Where one browser is enough, axe sees the narrow page with its cards and the wide one; between them, only what fits differs.
        asks_axe = width != WIDTHS[1] or "GRID_FIREFOX" in os.environ
        found[width] = troubles(tab, part, is_narrow=width == WIDTHS[0], asks_axe=asks_axe)
    if isinstance(tab, ChromiumTab):
        tab.page.emulate_media(color_scheme="dark")
        for width in (WIDTHS[0], WIDTHS[-1]):
            tab.resize(width)
            keep(scene, f"{request.node.callspec.id}-{width}-dark")
        # Colors are all that differs in the dark.
        found["dark"] = faint(tab)
    assert {key: each for key, each in found.items() if each} == {}
    assert [each for each in tab.complaints if not each.startswith(REFUSED)] == []


def test_path_in_a_narrow_window_begins_each_line_at_the_same_edge(scene: Scene) -> None:
    scene.tab.resize(WIDTHS[0])
    show_directory_by_a_long_path(scene)
    names = "[...document.querySelectorAll('.crumbs bdi')].map((each) => Math.round(each.getBoundingClientRect().left))"
    lefts = scene.tab.evaluate(names)
    assert len(lefts) > 3 and len(set(lefts)) == 1


def keep(scene: Scene, name: str) -> None:
    """Save a picture, if pictures are kept."""
    folder = os.environ.get("GRID_SCREENSHOTS")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        scene.tab.picture(Path(folder) / f"every-page-{name}.png")


def test_every_function_that_renders_a_page_is_in_the_list() -> None:
    rooms = files("grid.gateway")
    assert isinstance(rooms, Path)
    found = {name for path in rooms.rglob("*.py") for name in renderers(path)}
    assert len(found) > 20
    assert found == {name for case in SHOWN for name in case.renders}


def test_every_script_that_opens_a_dialog_is_in_the_list() -> None:
    scripts = {
        each.name: each.read_text()
        for each in files("grid.gateway").joinpath("assets").iterdir()
        if each.name.endswith(".js")
    }
    found = {name.removesuffix(".js") for name, text in scripts.items() if re.search(r"\bopenDialog\(", text)} - {"dom"}
    assert len(found) > 2
    assert [name for name, text in scripts.items() if re.search(r"showModal|\"dialog\",", text)] == ["dom.js"]
    assert found == {case.dialog for case in SHOWN} - {""}


def renderers(path: Path) -> set[str]:
    """The functions of a module that render whole pages, themselves or through private ones: `module.function`."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    makers = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "grid.gateway.pages.shell"
        for alias in node.names
        if alias.name == "document"
    } | ({"document"} if path.name == "shell.py" else set())
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name != "document"]
    found: set[str] = set()
    while True:
        more = {
            each.name for each in functions if calls(each) & (makers | {one for one in found if one.startswith("_")})
        }
        if more <= found:
            return {f"{path.stem}.{name}" for name in found if not name.startswith("_")}
        found |= more


def calls(function: ast.FunctionDef) -> set[str]:
    """The names of what a function calls."""
    return {
        node.func.id for node in ast.walk(function) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
