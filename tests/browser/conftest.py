"""A real browser and a gateway for it. Screenshots are made only for the folder that GRID_SCREENSHOTS names."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field

from perf.processes.node_process import child_environment
from tests.browser.visitor import Visitor

ROOT = Path(__file__).resolve().parent.parent.parent


@define(eq=False)
class Served:
    """The gateway's process; orders to its servers. folder: where it keeps what belongs to its client."""

    process: subprocess.Popen[str]
    address: str
    folder: Path
    down: set[int] = field(factory=set)

    def order(self, text: str) -> None:
        """Have it done before this returns."""
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None and stdout is not None
        stdin.write(f"{text}\n")
        stdin.flush()
        assert stdout.readline() == "ok\n"

    def kill(self, number: int) -> None:
        """No server with that number any more."""
        self.order(f"down {number}")
        self.down.add(number)

    def heal(self) -> None:
        """All servers are back, and quick."""
        for number in sorted(self.down):
            self.order(f"up {number}")
        self.down.clear()
        self.order("slow 0")


@contextmanager
def serve_pages(folder: Path) -> Iterator[Served]:
    """Run a gateway while the context lasts."""
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.browser.serving", str(folder)],
            cwd=ROOT,
            env=child_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        assert process.stdin is not None and process.stdout is not None
        port = process.stdout.readline().strip()
        assert port, (folder / "log").read_text()
        yield Served(process, f"http://127.0.0.1:{port}", folder)
        process.stdin.close()
        process.wait(30)
        process.stdout.close()


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve_pages(tmp_path_factory.mktemp("gateway")) as found:
        yield found


@contextmanager
def launch_browser() -> Iterator[Any]:
    """Run Chromium while the context lasts."""
    from playwright.sync_api import sync_playwright

    # The headless shell takes half the processor time of the whole browser.
    program = os.environ.get("GRID_CHROMIUM") or shutil.which("chromium-headless-shell") or shutil.which("chromium")
    assert program, "no chromium here: scripts/make_debian.py chromium-headless-shell installs it"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    with launch_browser() as browser:
        yield browser


@pytest.fixture(params=["light"])
def visitor(request: pytest.FixtureRequest, chromium: Any, served: Served) -> Iterator[Visitor]:
    """Somebody before a browser, who sees to it that no page reports an error or asks another host for anything."""
    context = chromium.new_context(
        color_scheme=request.param, viewport={"width": 1200, "height": 900}, accept_downloads=True
    )
    context.set_default_timeout(15_000)
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=served.address)
    kept = os.environ.get("GRID_SCREENSHOTS")
    pictures = Path(kept) if kept else None
    if pictures is not None:
        pictures.mkdir(parents=True, exist_ok=True)
    found = Visitor(context.new_page(), served.address, pictures, request.node.name)
    try:
        yield found
        found.picture("end")
        assert found.complaints == []
        assert found.strangers == []
    finally:
        context.close()
        served.heal()
