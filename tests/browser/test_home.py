"""The first page in a real browser: files dropped on it, and what it shows in a browser that `grid web` opened."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from grid.node.own_files import hand_over
from tests.browser.served import Served
from tests.browser.tabs import BEYOND, WIDTHS, axe_script
from tests.browser.visitor import Visitor, faults

if TYPE_CHECKING:
    from playwright.sync_api import Route

pytestmark = pytest.mark.browser

ENTRANCE = "/home?t=enter"
"""The page on which `grid web PATH` begins."""


def test_file_dropped_on_the_first_page_gets_a_capability_that_is_copied(visitor: Visitor, tmp_path: Path) -> None:
    dropped = tmp_path / "a <b> c.txt"
    dropped.write_text("the contents of a dropped file")
    (tmp_path / "other.bin").write_bytes(bytes(200_000))
    page = visitor.page
    visitor.go("/")
    assert page.locator("#own").is_hidden()

    visitor.drop([dropped, tmp_path / "other.bin"])
    page.locator("#announce", has_text="other.bin is stored").wait_for(state="attached")
    page.get_by_role("button", name="Copy the capability of a <b> c.txt").click()
    page.get_by_text("Copied", exact=True).first.wait_for()

    cap = page.evaluate("navigator.clipboard.readText()")
    assert visitor.ask("GET", f"/uri/{cap}") == dropped.read_bytes()
    assert page.get_by_role("textbox", name="Capability of other.bin").input_value().startswith("URI:CHK:")
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        visitor.picture(f"given-{width}")
        assert faults(visitor, axe_script(), None) == [] and page.evaluate(BEYOND) == [], width
    page.get_by_role("link", name="Open a <b> c.txt").click()
    page.locator("#preview pre").get_by_text("the contents of a dropped file").wait_for()


def test_upload_from_the_first_page_is_canceled_and_an_ended_one_dismissed(
    visitor: Visitor, served: Served, tmp_path: Path
) -> None:
    for name in ("kept.bin", "canceled.bin", "waiting.bin"):
        (tmp_path / name).write_bytes(name.encode() * 100)
    page = visitor.page
    visitor.go("/")
    visitor.drop([tmp_path / "kept.bin"])
    page.get_by_role("button", name="Dismiss kept.bin").wait_for()
    served.order("hold")
    visitor.drop([tmp_path / "canceled.bin", tmp_path / "waiting.bin"])

    page.get_by_role("button", name="Cancel waiting.bin").click()
    page.get_by_role("button", name="Cancel canceled.bin").click()
    page.locator("#announce", has_text="The upload of canceled.bin was canceled").wait_for(state="attached")
    served.order("release")
    page.get_by_role("button", name="Dismiss kept.bin").click()

    assert page.locator(".given").is_hidden() and page.locator(".given li").count() == 0
    visitor.drop([tmp_path / "waiting.bin"])
    page.locator("#announce", has_text="waiting.bin is stored").wait_for(state="attached")
    assert page.locator(".given li").count() == 1


def test_first_page_shows_aliases_and_uploads_after_grid_web_until_the_browser_is_forgotten(
    visitor: Visitor, served: Served, tmp_path: Path
) -> None:
    directory = visitor.make_directory()
    (served.folder / "aliases").write_text(f"work: {directory.split('/')[2].replace('%3A', ':')}\n")
    for name in ("in.txt", "loose.txt"):
        (tmp_path / name).write_text(f"the contents of {name}, which are long enough to make shares of them")
    page = visitor.page

    visitor.go(f"/#own={hand_over(served.folder, time.time())}")
    page.locator("#own").get_by_role("link", name="work:").wait_for()
    assert page.evaluate("location.hash") == "" and page.evaluate("document.cookie") == ""
    page.get_by_label("Store dropped files in").select_option("work:")
    visitor.drop([tmp_path / "in.txt"])
    page.locator(".queue .sum").get_by_text("Finished", exact=True).wait_for()
    page.locator("#recent").get_by_role("link", name="in.txt").wait_for()
    assert visitor.ask("GET", f"{directory}in.txt").startswith(b"the contents of in.txt")
    page.get_by_label("Store dropped files in").select_option("no directory")
    visitor.drop([tmp_path / "loose.txt"])
    page.locator("#recent").get_by_role("link", name="loose.txt").wait_for()
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        visitor.picture(f"own-{width}")
        assert faults(visitor, axe_script(), None) == [] and page.evaluate(BEYOND) == [], width

    visitor.go("/status")
    page.locator("#operations th").get_by_text("loose.txt").first.wait_for()
    visitor.go("/")
    page.locator("#recent").get_by_role("link", name="loose.txt").wait_for()
    page.get_by_role("button", name="Forget this browser").click()
    page.locator("#own").wait_for(state="hidden")
    visitor.go("/status")
    assert page.locator("#operations th").get_by_text("loose.txt").count() == 0
    visitor.go("/")
    assert page.locator("#own").is_hidden() and page.evaluate("localStorage.length") == 0


def test_browser_that_opens_a_path_with_a_token_is_known_there_and_led_to_no_other_site(
    visitor: Visitor, served: Served
) -> None:
    directory, page = visitor.make_directory({"a b.txt": b"the contents"}), visitor.page
    for then in ("//example.net/uri/", "https://example.net/uri/", "/servers"):
        visitor.go(f"{ENTRANCE}#own={hand_over(served.folder, time.time())}&then={quote(then, safe='')}")
        page.locator("#own #aliases").wait_for()
        assert page.evaluate("location.href") == f"{served.address}/"
    page.context.clear_cookies()

    token = hand_over(served.folder, time.time())
    for _ in range(2):  # A token that was used already does not keep anybody from the page.
        visitor.go(f"{ENTRANCE}#own={token}&then={quote(directory, safe='')}")
        page.wait_for_url(served.address + directory)
    page.locator("#listing").get_by_role("link", name="a b.txt", exact=True).wait_for()
    assert [each["httpOnly"] for each in page.context.cookies()] == [True]
    page.go_back()
    assert token not in page.url
    visitor.complaints.clear()  # The browser says that the used token was refused.


def test_page_between_grid_web_and_a_path_says_nothing_unless_the_gateway_is_slow(
    visitor: Visitor, served: Served
) -> None:
    directory, page = visitor.make_directory({"a b.txt": b"the contents"}), visitor.page
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/home", hold)
    pages: list[str] = []
    page.on("framenavigated", lambda frame: pages.append(frame.url.partition("#")[0].removeprefix(served.address)))

    visitor.go(f"{ENTRANCE}#own={hand_over(served.folder, time.time())}&then={quote(directory, safe='')}")
    late = page.locator("#main .late")
    assert late.evaluate("each => getComputedStyle(each).animationDelay") == "1s"
    late.wait_for(state="visible")
    assert page.locator("#main").inner_text().split() == ["Opening…", "Home"] and page.evaluate("location.hash") == ""
    held.pop().continue_()
    page.locator("#listing").get_by_role("link", name="a b.txt", exact=True).wait_for()
    assert set(pages) == {ENTRANCE, directory}, "the home page is never shown"


def test_page_made_for_a_visitor_is_loaded_again_once_when_the_browser_becomes_known(
    visitor: Visitor, served: Served
) -> None:
    """Even if the gateway takes the browser for a visitor again."""
    made: list[str] = []

    def for_a_visitor(route: Route) -> None:
        answer = route.fetch()
        made.append(answer.text().replace("data-own", "data-visit data-own", 1))
        route.fulfill(response=answer, body=made[-1])

    visitor.page.route(lambda url: url.split("#")[0].rstrip("/").count("/") == 2, for_a_visitor)
    visitor.go(f"/#own={hand_over(served.folder, time.time())}")
    visitor.page.locator("#own #aliases").wait_for()
    assert len(made) == 2
    visitor.go("/")
    visitor.page.locator("#own #aliases").wait_for()
    assert len(made) == 3
