"""A real browser and a gateway for it. Screenshots are made only for the folder that GRID_SCREENSHOTS names."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.browser.firefox import Firefox
from tests.browser.scene import Scene
from tests.browser.served import Served, serve_pages
from tests.browser.tabs import ChromiumTab, Tab
from tests.browser.visitor import Visitor


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
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    with launch_browser() as browser:
        yield browser


NO_FIREFOX = pytest.mark.skipif("GRID_FIREFOX" not in os.environ, reason="GRID_FIREFOX names no Firefox")
"""It takes 250 MB to install, so tests run in it only where somebody names one."""


@pytest.fixture(scope="session")
def firefox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Firefox]:
    found = Firefox(os.environ["GRID_FIREFOX"], tmp_path_factory.mktemp("firefox"))
    yield found
    found.close()


@contextmanager
def open_tab(request: pytest.FixtureRequest, name: str) -> Iterator[Tab]:
    """A new tab of the browser with that name."""
    if name == "firefox":
        browser: Firefox = request.getfixturevalue("firefox")
        with browser.tab() as tab:
            yield tab
        return
    context = request.getfixturevalue("chromium").new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(15_000)
    try:
        yield ChromiumTab(context.new_page())
    finally:
        context.close()


def restore(served: Served) -> None:
    """Take back what a test may have changed, so that no other depends on it."""
    served.heal()
    served.order("no-storage")
    for name in ("share-links.json", "access.blacklist", "aliases"):
        (served.folder / name).unlink(missing_ok=True)


@pytest.fixture(params=["chromium", pytest.param("firefox", marks=NO_FIREFOX)])
def scene(request: pytest.FixtureRequest, served: Served) -> Iterator[Scene]:
    """A tab of each browser before the gateway."""
    try:
        with open_tab(request, request.param) as tab:
            yield Scene(tab, served)
    finally:
        restore(served)


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
        restore(served)
