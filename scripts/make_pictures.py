"""Make the two pictures of README.md: make_pictures.py [page] [plot], both unless one is named.

`page` starts a grid of ten storage nodes, stores a small tree, and photographs a directory's page in chromium (scripts/make_browser.py
installs it). `plot` draws speeds from the records in perf/records. It takes Grid, playwright and matplotlib
(`pip install -e .[browser,perf]`); pictures go to docs/pictures.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"
sys.path.insert(0, str(ROOT))

from perf.records.record import read_record  # noqa: E402 - perf is no installed package
from perf.reports.report import speedups  # noqa: E402
from perf.sampling.statistics import Estimate  # noqa: E402

FILES = {
    "garden plan.md": 2_300,
    "invoices/2026-10.pdf": 48_000,
    "letters/to the council.odt": 31_000,
    "photos/lake.jpg": 1_800_000,
    "photos/summit.jpg": 2_400_000,
    "interview.ogg": 5_200_000,
    "recipes.txt": 9_100,
}
"""What the photographed grid holds: path and size."""

BARS = (
    ("put-get", "get 100 MB", "get", {"size": 100_000_000, "k": 3}),
    ("put-get", "put 100 MB", "put", {"size": 100_000_000, "k": 3}),
    ("ranges", "read 1 byte of 100 MB", "alacrity", {"size": 100_000_000}),
    ("small-files", "get 200 files of 1 KiB", "get", {"size": 1024}),
    ("small-files", "put 200 files of 1 KiB", "put", {"size": 1024}),
    ("small-files", "put 100 files of 1 MB", "put", {"size": 1_000_000}),
    ("mutable", "get 100 MB, mutable (MDMF)", "get", {"size": 100_000_000, "format": "mdmf"}),
    ("mutable", "change 1 KiB of 100 MB (MDMF)", "overwrite", {"size": 100_000_000, "format": "mdmf"}),
    ("directories", "list 100 entries", "list", {"count": 100}),
    ("directories", "list 1,000 entries", "list", {"count": 1000}),
)
"""Campaign, label, scenario, and the factors that choose the work in its record."""


def main(arguments: list[str]) -> int:
    """Exit status 0 if every picture was made."""
    makers: dict[str, Callable[[], None]] = {"page": make_page, "plot": make_plot}
    if not set(arguments) <= set(makers):
        print(__doc__, file=sys.stderr)
        return 2
    PICTURES.mkdir(exist_ok=True)
    for name in arguments or makers:
        makers[name]()
    return 0


def make_page() -> None:
    """Photograph a directory's page of a real grid, whose processes and files are gone afterwards."""
    place = Path(tempfile.mkdtemp(prefix="grid-pictures-"))
    node, nodes = str(place / "grid" / "client"), str(place / "grid")
    gateway = None
    try:
        _grid("up", "--nodes", "10", "--dir", nodes, "--detach")
        _grid("-d", node, "create-alias", "work")
        for name, size in FILES.items():
            path = place / "work" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(os.urandom(size))
        _grid("-d", node, "cp", "-r", str(place / "work"), "work:")
        capability = _grid("-d", node, "ls", "--uri", "work:").split()[-1]
        url = place / "grid" / "client" / "node.url"
        gateway = subprocess.Popen([*GRID, "-d", node, "gateway", "--listen", "tcp:0:interface=127.0.0.1"])
        while not (url.exists() and url.read_text().strip()):
            if gateway.poll() is not None:
                raise SystemExit("the gateway ended")
            time.sleep(0.1)
        _photograph(f"{url.read_text().strip()}uri/{quote(capability, safe='')}/", PICTURES / "page.png")
    finally:
        if gateway is not None:
            gateway.terminate()
            gateway.wait()
        subprocess.run([*GRID, "down", "--dir", nodes], check=False)
        shutil.rmtree(place, ignore_errors=True)


GRID = (sys.executable, "-m", "grid.cli")


def _grid(*arguments: str) -> str:
    return subprocess.run([*GRID, *arguments], check=True, capture_output=True, text=True).stdout


def _photograph(address: str, picture: Path) -> None:
    from playwright.sync_api import sync_playwright

    program = os.environ.get("GRID_CHROMIUM") or shutil.which("chromium")
    if program is None:
        raise SystemExit("chromium is missing: scripts/make_browser.py installs it")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1000, "height": 900})
        page.goto(address)
        page.screenshot(path=picture)
        browser.close()


SYSTEMS = {
    "grid@http": ("Grid over HTTP (default)", "#1f6f8b", 0.19),
    "grid@foolscap": ("Grid over Foolscap", "#99c5c4", -0.19),
}
"""What is compared: label, color, and where its bars stand."""


def bars() -> list[tuple[str, str, Estimate]]:
    """Label, system and speed as a multiple of Tahoe-LAFS over Foolscap, for every bar of the plot, from the records."""
    found = []
    for campaign, label, scenario, factors in BARS:
        record = read_record(ROOT / "perf" / "records" / f"2026-11-21-{campaign}.jsonl")
        for system in SYSTEMS:
            (ratio,) = [
                ratio
                for work, ratio in speedups(record, system, "tahoe@foolscap").items()
                if work.scenario == scenario and factors.items() <= {"count": work.count, **dict(work.factors)}.items()
            ]
            found.append((label, system, ratio))
    return found


def make_plot() -> None:
    """Draw how many times as fast as Tahoe-LAFS 1.20 Grid is, with intervals, over HTTP and Foolscap."""
    from matplotlib import pyplot

    labels = [label for _, label, *_ in reversed(BARS)]
    figure, panel = pyplot.subplots(figsize=(8, 4.6), dpi=110)
    for label, system, ratio in bars():
        name, color, shift = SYSTEMS[system]
        row = labels.index(label) + shift
        spread = [[ratio.median - ratio.interval.low], [ratio.interval.high - ratio.median]]
        panel.barh(row, ratio.median, 0.36, color=color, label=name if label == labels[0] else None)
        panel.errorbar(ratio.median, row, xerr=spread, color="#333333", linewidth=1, capsize=2)
    panel.set_yticks(range(len(labels)), labels)
    panel.axvline(1, color="#333333", linewidth=1)
    panel.set(xlim=(0, 12), xlabel="times the speed of Tahoe-LAFS 1.20 (line at 1), medians with 95 % intervals")
    panel.legend(loc="lower right", frameon=False)
    panel.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(PICTURES / "speed.png", metadata={"Software": None})
    pyplot.close(figure)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
