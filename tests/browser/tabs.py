"""One tab of either browser, as tests see it that run in both; and what is wrong with the page that it shows."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path
from typing import Any, Protocol

WIDTHS = (320, 768, 1280)
"""A small phone, a tablet, and a desk."""


class Tab(Protocol):
    """A tab. complaints: errors that its pages logged."""

    complaints: list[str]

    def go(self, url: str) -> None:
        """Load a page and everything that it names."""

    def resize(self, width: int, height: int = 900) -> None:
        """Give the page this much room."""

    def evaluate(self, script: str) -> Any:
        """What the script, an expression, returns, or what its promise becomes."""

    def run(self, script: str) -> None:
        """Run a whole script."""

    def wait_for(self, condition: str) -> None:
        """Wait until the expression is true, across the loading of pages."""

    def press(self, key: str) -> None:
        """Press a key by its name or character, with `Shift+` before it if that is held."""

    def write(self, text: str) -> None:
        """Type into what has the focus."""

    def picture(self, path: Path) -> None:
        """Save a screenshot of the whole page."""


class ChromiumTab:
    """A page of Playwright's as a tab."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.complaints: list[str] = []
        page.on("console", lambda said: self.complaints.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def go(self, url: str) -> None:
        """See Tab."""
        self.page.goto(url)

    def resize(self, width: int, height: int = 900) -> None:
        """See Tab."""
        self.page.set_viewport_size({"width": width, "height": height})

    def evaluate(self, script: str) -> Any:
        """See Tab."""
        return self.page.evaluate(script)

    def run(self, script: str) -> None:
        """See Tab."""
        self.page.evaluate(script)

    def wait_for(self, condition: str) -> None:
        """See Tab."""
        self.page.wait_for_function(f"() => ({condition})")

    def press(self, key: str) -> None:
        """See Tab."""
        self.page.keyboard.press(key)

    def write(self, text: str) -> None:
        """See Tab."""
        self.page.keyboard.type(text)

    def picture(self, path: Path) -> None:
        """See Tab."""
        self.page.screenshot(path=path, full_page=True)


BEYOND = """() => [...document.querySelectorAll('main *')].filter((e) => !e.closest('.unseen, thead, .icon, svg')
  && e.getClientRects().length && e.getBoundingClientRect().right > innerWidth + 1 && !e.closest('input'))
  .map((e) => e.outerHTML.slice(0, 200))"""
"""What lies to the right of the window."""

CUT = """() => {
  const hides = (e) => /hidden|clip/.test(getComputedStyle(e).overflowX);
  const found = [];
  for (const e of document.querySelectorAll('main *')) {
    if (e.closest('.unseen, svg, thead, select, iframe') || !e.checkVisibility({ contentVisibilityAuto: true })) continue;
    const text = [...e.childNodes].filter((node) => node.nodeType === 3 && node.data.trim());
    let around = e;
    while (around && !hides(around) && !/auto|scroll/.test(getComputedStyle(around).overflowX)) around = around.parentElement;
    if (!text.length || !around || !hides(around)) continue;
    if (getComputedStyle(around).textOverflow === 'ellipsis' || getComputedStyle(around).webkitLineClamp !== 'none') continue;
    const range = document.createRange();
    range.selectNodeContents(e);
    const { left, right } = range.getBoundingClientRect(), box = around.getBoundingClientRect();
    if (box.width <= 1) continue; // It is for those who hear the page.
    if (right > box.right + 1 || left < box.left - 1) found.push(e.outerHTML.slice(0, 200));
  }
  return found;
}"""
"""Text that an element around it cuts off at a side."""

SMALL = """() => [...document.querySelectorAll('button, .button, select, summary, input:not([type=checkbox]), nav a, th a, td > a')]
  .filter((e) => !e.closest('thead') && e.getClientRects().length && e.getBoundingClientRect().height < 43.5)
  .map((e) => e.outerHTML.slice(0, 200))"""
"""What fingers miss."""

WIDER = "document.documentElement.scrollWidth > innerWidth"

FAULTS = """axe.run(PART, OPTIONS).then((found) => found.violations.map((fault) =>
  [fault.id, fault.impact, fault.nodes.map((node) => node.html.slice(0, 200))]))"""


def axe_script() -> str:
    """axe-core: the file that GRID_AXE names, or the one that axe-playwright-python brings along."""
    named = os.environ.get("GRID_AXE")
    return (Path(named) if named else files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")


def troubles(tab: Tab, part: str = "", *, is_narrow: bool = False, asks_axe: bool = True) -> list[Any]:
    """What axe finds, and what is cut off or, in a narrow window, too small for fingers. part: a selector, "" for the page."""
    found: list[Any] = []
    if asks_axe:
        if not tab.evaluate("typeof axe === 'object'"):
            tab.run(axe_script())
        options = "{ resultTypes: ['violations'] }"
        script = FAULTS.replace("PART", f"'{part}'" if part else "document").replace("OPTIONS", options)
        found += tab.evaluate(script)
    beyond = BEYOND.replace("main *", f"{part} *") if part else BEYOND
    found += [("beyond", each) for each in tab.evaluate(f"({beyond})()")]
    cut = CUT.replace("main *", f"{part} *") if part else CUT
    found += [("cut", each) for each in tab.evaluate(f"({cut})()")]
    if tab.evaluate(WIDER):
        found.append("the page is wider than the window")
    if is_narrow:
        found += [("small", each) for each in tab.evaluate(f"({SMALL})()")]
    return found


def faint(tab: Tab) -> list[Any]:
    """What axe finds hard to read in the tab's colors."""
    script = FAULTS.replace("PART", "document").replace("OPTIONS", "{ runOnly: ['color-contrast'] }")
    found: list[Any] = tab.evaluate(script)
    return found
