"""The health of stored files, and live operations of the gateway, in a real browser."""

from __future__ import annotations

import json
import random
import threading

import pytest

from tests.browser.served import Served
from tests.browser.visitor import GatewayClient, Visitor, uri

pytestmark = pytest.mark.browser


def test_servers_that_are_healed_hold_shares_of_the_next_file(served: Served) -> None:
    client = GatewayClient(served.address)
    try:
        served.kill(0)
        served.kill(3)
        client.store(random.Random(9).randbytes(50_000))
    finally:
        served.heal()
    cap = client.store(random.Random(10).randbytes(50_000))
    checked = json.loads(client.ask("POST", f"{uri(cap)}?t=check&output=json"))["results"]
    assert len({holder for holders in checked["sharemap"].values() for holder in holders}) == 5


def test_a_file_whose_servers_were_killed_is_shown_as_unhealthy_and_repaired(visitor: Visitor, served: Served) -> None:
    contents = random.Random(4).randbytes(400_000)
    cap = visitor.store(contents)
    visitor.go(f"{uri(cap)}?t=info&filename=treasure.bin")
    page = visitor.page
    page.get_by_role("button", name="Verify", exact=True).click()
    page.locator(".notice", has_text="Healthy: 5 of 5 shares are good").wait_for()

    served.kill(0)
    served.kill(3)
    page.get_by_role("button", name="Check", exact=True).click()
    page.locator(".notice", has_text="Not healthy, but readable: 3 of 5").wait_for()
    assert page.locator(".shares .lost").count() == 2
    assert page.locator(".shares .silent").count() == 2 * 5
    silent = page.locator(".silent-servers li").all_inner_texts()
    assert silent == [f"{name} – not connected: the server is switched off" for name in ("Ada", "Grace")]
    visitor.picture("ill")
    page.get_by_role("button", name="Repair", exact=True).click()
    page.locator(".notice", has_text="Repaired: all shares are good again.").wait_for()

    assert page.locator(".shares").last.locator(".held").count() == 5
    with page.expect_download() as started:
        page.get_by_role("link", name="Download", exact=True).click()
    with open(started.value.path(), "rb") as file:
        assert file.read() == contents
    visitor.go("/servers")
    assert page.get_by_text("2 servers cannot be reached right now.").is_visible()


def test_a_check_that_fails_says_why_in_a_sentence_and_can_be_repeated(visitor: Visitor) -> None:
    visitor.go(f"{uri(visitor.store(random.Random(8).randbytes(2000)))}?t=info")
    page, health = visitor.page, visitor.page.locator("#health")
    check = page.get_by_role("button", name="Check", exact=True)
    answers = [
        (lambda route: route.fulfill(status=503, body="too few servers\n"), "Too few servers."),
        (lambda route: route.fulfill(status=400, body="verify= must be a boolean"), "verify= must be a boolean."),
        (lambda route: route.fulfill(status=500, body=""), "The gateway answered with HTTP status 500."),
        (lambda route: route.abort("connectionreset"), "The connection to the gateway was lost. Try again."),
    ]
    for answer, sentence in answers:
        page.route(lambda url: "t=info" not in url, answer)
        check.click()
        health.get_by_text(sentence, exact=True).wait_for()
        page.unroute_all()

    check.click()
    health.locator(".notice strong").wait_for()
    assert health.locator("[data-problem]").count() == 0
    visitor.complaints.clear()  # The browser says that requests failed, as they did.


def test_an_upload_is_shown_live_from_start_to_end(visitor: Visitor, served: Served) -> None:
    visitor.go("/status")
    page = visitor.page
    page.wait_for_function("() => Number(document.querySelector('[data-live]').dataset.followed) > 0")
    served.order("slow 400")
    uploading = threading.Thread(target=visitor.store, args=(random.Random(5).randbytes(2_000_000),))
    uploading.start()

    running = page.locator("#operations tr", has_text="Running").first
    running.wait_for()
    name = running.get_by_role("link").inner_text()
    page.locator("#operations").get_by_role("link", name=name, exact=True).first.click()
    page.locator("svg.timeline rect").first.wait_for()
    visitor.picture("running")
    page.locator(".state", has_text="Done").wait_for()
    served.order("slow 0")
    uploading.join()

    assert page.locator("svg.timeline rect.ok").count() >= 5
    page.get_by_role("link", name="All operations").click()
    row = page.locator("#operations tr", has=page.get_by_role("link", name=name, exact=True))
    assert "Done" in row.inner_text()


def test_open_page_of_servers_shows_which_ones_go_and_come_back(visitor: Visitor, served: Served) -> None:
    page = visitor.page
    page.clock.install()
    visitor.go("/servers")
    names, notice = page.locator("#servers tbody bdi"), page.locator("#servers .notice")
    assert names.all_inner_texts() == ["Ada", "Barbara", "Edsger", "Grace", "Leslie"]
    page.locator("#all-servers").focus()

    served.kill(3)
    refresh(visitor)
    assert notice.inner_text() == "1 server cannot be reached right now."
    assert names.first.inner_text() == "Grace", "what needs attention comes first"
    assert page.evaluate("document.activeElement.id") == "all-servers"
    assert page.locator("#announce").inner_text() == "1 server cannot be reached right now."

    page.evaluate("getSelection().selectAllChildren(document.querySelector('#servers .state.bad'))")
    served.heal()
    refresh(visitor)
    assert names.first.inner_text() == "Grace", "what somebody is about to copy stays"
    page.evaluate("getSelection().removeAllRanges()")
    refresh(visitor)
    assert notice.count() == 0
    assert page.locator("#announce").inner_text().startswith("5 of 5 servers connected.")

    page.route("**/servers", lambda route: route.abort())
    refresh(visitor)
    assert notice.inner_text() == "The gateway does not answer. Below is what it said last."
    refresh(visitor)
    assert notice.count() == 1
    page.unroute_all()
    refresh(visitor)
    assert notice.count() == 0
    visitor.complaints.clear()  # The browser says that requests failed, as they did.


def refresh(visitor: Visitor) -> None:
    """Let time pass until the page has asked once more."""
    page = visitor.page
    count = page.evaluate("Number(document.querySelector('#servers').dataset.followed ?? 0)")
    page.clock.run_for(5000)
    page.wait_for_function(f"() => Number(document.querySelector('#servers').dataset.followed) === {count + 1}")


def test_a_lost_file_says_why_and_what_to_do(visitor: Visitor, served: Served) -> None:
    cap = visitor.store(random.Random(6).randbytes(50_000))
    checked = json.loads(visitor.ask("POST", f"{uri(cap)}?t=check&output=json"))["results"]["sharemap"]
    held = [holder for holders in checked.values() for holder in holders]
    kept = min(range(5), key=lambda number: held.count(f"v0-{number}"))
    for number in set(range(5)) - {kept}:
        served.kill(number)
    visitor.go(f"{uri(cap)}?t=info&filename=a.bin")

    visitor.page.get_by_role("button", name="Check", exact=True).click()

    visitor.page.locator(".notice", has_text=f"Cannot be read now: {held.count(f'v0-{kept}')} of 5 shares").wait_for()
