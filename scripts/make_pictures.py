"""Make README.md's picture of a page, docs/pictures/page.png. Its plot comes from `python -m perf report --publish`.

Starts a grid of ten storage nodes, stores a small tree, and takes a screenshot of a directory's page in Chromium, which
`scripts/make_debian.py chromium-headless-shell` installs. Needs Grid and playwright (`pip install -e .[browser]`).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"

FILES = {
    "garden plan.md": 2_300,
    "invoices/2026-10.pdf": 48_000,
    "letters/to the council.odt": 31_000,
    "photos/lake.jpg": 1_800_000,
    "photos/summit.jpg": 2_400_000,
    "interview.ogg": 5_200_000,
    "recipes.txt": 9_100,
}
"""The contents of the grid: paths and sizes."""


def make_page() -> None:
    """Take the screenshot, and remove the grid's processes and files."""
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

    program = os.environ.get("GRID_CHROMIUM") or shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if program is None:
        raise SystemExit("chromium is missing: scripts/make_debian.py chromium-headless-shell installs it")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1000, "height": 900})
        page.goto(address)
        page.screenshot(path=picture)
        browser.close()


if __name__ == "__main__":
    PICTURES.mkdir(exist_ok=True)
    make_page()
