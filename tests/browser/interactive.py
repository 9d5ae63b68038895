"""Measures when the first page and a directory of 500 files are interactive on a simulated slow phone.

    python -m tests.browser.interactive [LOADS]

loads each page LOADS times (9 by default) in a new browser context, with an empty cache, a processor slowed down four times and
a slow mobile network, and prints medians. A page is interactive when its document is parsed, all its scripts have run, the
next frame is drawn, the browser's main thread is idle, and its first control takes a click. Then it prints the processor time of a load that is not
slowed down, which hardly depends on what else the machine does: the gateway's, and the browser's main thread's by kind of work.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from tests.browser.conftest import launch_browser
from tests.browser.served import Served, serve_pages
from tests.browser.visitor import Visitor, uri
from tests.gateway.test_weight import photos

SLOW_NETWORK = {
    "offline": False,
    "latency": 150,
    "downloadThroughput": 1_600_000 / 8,
    "uploadThroughput": 750_000 / 8,
}
SLOWDOWN = 4
PHONE = {"width": 390, "height": 844}
KINDS = ("ScriptDuration", "RecalcStyleDuration", "LayoutDuration", "TaskDuration")
COUNTS = ("Nodes", "LayoutCount", "RecalcStyleCount", "JSEventListeners")

WATCH = """addEventListener('DOMContentLoaded', () => requestAnimationFrame(() => scheduler.postTask(() => {
  const at = performance.now();
  const control = document.querySelector('#listing tbody th a, #drop button');
  const box = control?.getBoundingClientRect();
  const isOpen = box && control.contains(document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2));
  console.debug('interactive', at, Boolean(isOpen) || box?.y > innerHeight);
}, { priority: 'background' })));"""
"""The page's scripts are modules, which run before DOMContentLoaded. A background task runs when no other one waits."""


def slow_down(page: Any) -> Any:
    """Make this page's browser a slow phone; return the session that keeps it so."""
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    session.send("Network.emulateNetworkConditions", SLOW_NETWORK)
    session.send("Emulation.setCPUThrottlingRate", {"rate": SLOWDOWN})
    return session


def load(browser: Any, address: str, *, is_slow: bool) -> dict[str, float]:
    """Milliseconds of one load, and what Chromium counts of it."""
    context = browser.new_context(viewport=PHONE, has_touch=True)
    try:
        page = context.new_page()
        page.add_init_script(WATCH)
        session = slow_down(page) if is_slow else page.context.new_cdp_session(page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        # To ask the page anything before it is interactive would take time in it.
        with page.expect_console_message(lambda said: said.text.startswith("interactive")) as said:
            page.goto(address, wait_until="commit")
        at, is_open = said.value.text.split()[1:]
        assert is_open == "true", "something covers the first control"
        metrics = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
        found = page.evaluate(
            "() => { const [n] = performance.getEntriesByType('navigation'), paint = performance.getEntriesByName("
            "'first-contentful-paint')[0]; return { first_byte: n.responseStart, parsed: n.domInteractive,"
            " loaded: n.domContentLoadedEventEnd, painted: paint ? paint.startTime : 0, } }"
        )
        found |= (
            {"interactive": float(at)}
            | {kind: metrics[kind] * 1000 for kind in KINDS}
            | {kind: metrics[kind] for kind in COUNTS}
        )
        return {key: float(value) for key, value in found.items()}
    finally:
        context.close()


def processor_ms(served: Served) -> float:
    """What the gateway's process has used so far."""
    fields = Path(f"/proc/{served.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 10.0


def measure(browser: Any, served: Served, path: str, loads: int) -> None:
    """Print what a page takes."""
    address = served.address + path
    slow = [load(browser, address, is_slow=True) for _ in range(loads)]
    before = processor_ms(served)
    quick = [load(browser, address, is_slow=False) for _ in range(loads)]
    used = (processor_ms(served) - before) / loads
    wall = ("first_byte", "painted", "parsed", "loaded", "interactive")
    print("  slow phone, ms:   " + _line(slow, wall))
    each = sorted(round(one["interactive"]) for one in slow)
    print(f"  interactive, ms:  {each}")
    print(f"  processor, ms:    gateway {used:.0f}, " + _line(quick, KINDS))
    print("  counts:           " + _line(quick, COUNTS))


def _line(found: Sequence[dict[str, float]], keys: Sequence[str]) -> str:
    return ", ".join(f"{key} {median(one[key] for one in found):.0f}" for key in keys)


def main(arguments: Sequence[str]) -> None:
    """Measure both pages."""
    loads = int(arguments[0]) if arguments else 9
    with tempfile.TemporaryDirectory() as folder, serve_pages(Path(folder)) as served, launch_browser() as browser:
        context = browser.new_context()
        visitor = Visitor(context.new_page(), served.address, None, "interactive")
        made = visitor.ask("POST", "/uri?t=mkdir-with-children", photos(500), kind="application/json")
        context.close()
        for name, path in (("home", "/"), ("500 files", f"{uri(made.decode().strip())}/")):
            print(name)
            measure(browser, served, path, loads)


if __name__ == "__main__":
    main(sys.argv[1:])
