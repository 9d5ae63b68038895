"""The report of campaigns, opened in a real browser from a file: in both themes, on a desktop and on a phone."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from perf.records.record import read_record
from perf.reports.page import page
from tests.browser.served import ROOT
from tests.browser.tabs import axe_script
from tests.perf.reports.test_page import everything

pytestmark = pytest.mark.browser

RECORD = ROOT / "perf" / "records" / "2026-11-21-small-files.jsonl"
WIDTHS = {"desk": 1200, "phone": 390}

FAINT = """() => {
  const bright = (color) => { const [r, g, b] = color.match(/[\\d.]+/g).map(Number); return (r + g + b) / 3; };
  const back = bright(getComputedStyle(document.body).backgroundColor);
  const shapes = [...document.querySelectorAll('svg g[id*="text"] path, svg g[id*="text"] use, svg text')];
  return [shapes.length, shapes.filter((one) => Math.abs(bright(getComputedStyle(one).fill) - back) < 100).length];
}"""
"""How many letters the plots have, and how many of them nobody could read against the page."""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_report_fits_in_a_browser_and_has_no_accessibility_fault(chromium: Any, tmp_path: Path, theme: str) -> None:
    path = tmp_path / "report.html"
    path.write_text(page([everything(), read_record(RECORD)]), encoding="utf-8")
    pictures = Path(os.environ.get("GRID_SCREENSHOTS") or tmp_path)
    pictures.mkdir(parents=True, exist_ok=True)
    context = chromium.new_context(color_scheme=theme)
    try:
        tab = context.new_page()
        asked: list[str] = []
        complaints: list[str] = []
        tab.on("request", lambda request: asked.append(request.url))
        tab.on("console", lambda message: complaints.append(message.text))
        tab.goto(path.as_uri())
        for name, width in WIDTHS.items():
            tab.set_viewport_size({"width": width, "height": 844})
            tab.screenshot(path=pictures / f"report-{theme}-{name}.png", full_page=True)
            assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
            tab.evaluate(axe_script())
            found = tab.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
            assert [(fault["id"], fault["nodes"][0]["html"][:200]) for fault in found] == [], name
        letters, faint = tab.evaluate(FAINT)
        assert letters > 20
        assert faint == 0
        assert tab.evaluate(
            "[...document.querySelectorAll('svg')].every((one) => one.getBoundingClientRect().width > 250)"
        )
        assert asked == [path.as_uri()]
        assert complaints == []
    finally:
        context.close()
