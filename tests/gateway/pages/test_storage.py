"""The page of the node's own storage server."""

from __future__ import annotations

from typing import Any

from grid.gateway.pages.storage import render_no_storage, render_storage

IDLE = {
    "cycle-in-progress": False,
    "next-crawl-time": 5000.0,
    "remaining-wait-time": 90.0,
    "estimated-time-per-cycle": None,
}
RUNNING = {
    "cycle-in-progress": True,
    "cycle-complete-percentage": 25.0,
    "remaining-sleep-time": 9.0,
    "estimated-cycle-complete-time-left": 300.0,
    "estimated-time-per-cycle": 400.0,
}


def rendered(counters: dict[str, int], stats: dict[str, float | None], **crawlers: Any) -> str:
    walks = {"lease-checker": {"history": {}}, "lease-checker-progress": IDLE} | {
        name.replace("_", "-"): value for name, value in crawlers.items()
    }
    return render_storage("<node>", counters, stats, walks, IDLE, "Leases are counted.")


def test_page_when_nothing_is_known_shows_dashes_and_says_so() -> None:
    page = rendered({}, {"storage_server.accepting_immutable_shares": 0})
    assert "<dt>Accepting new shares</dt><dd>No</dd>" in page
    assert "Not computed yet" in page
    assert "<dt>Total disk space</dt><dd>–</dd>" in page
    assert "No requests yet" in page
    assert "&lt;node&gt;" in page
    assert "<node>" not in page


def test_page_when_requests_came_shows_how_long_they_took() -> None:
    stats: dict[str, float | None] = {
        "storage_server.accepting_immutable_shares": 1,
        "storage_server.total_bucket_count": 7,
        "storage_server.disk_total": 5 * 10**9,
        "storage_server.latencies.add-lease.mean": 0.25,
        "storage_server.latencies.add-lease.50_0_percentile": None,
    }
    page = rendered({"storage_server.add-lease": 12}, stats)
    assert "<dd>Yes</dd>" in page
    assert "<dd>7</dd>" in page
    assert "<dd>5.00 GB</dd>" in page
    assert "<code>add-lease</code>" in page
    assert 'data-label="Count">12</td>' in page and 'data-label="Mean">250 ms</td>' in page
    assert 'data-label="Median">–</td>' in page


def test_page_when_leases_are_checked_shows_the_progress() -> None:
    history = {"9": {"corrupt-shares": [["a", 1]]}, "10": {"corrupt-shares": [["a", 1], ["a", 2]]}}
    page = rendered({}, {}, lease_checker={"history": history}, lease_checker_progress=RUNNING)
    assert "25% done, 5 min 00 s left" in page
    assert "<dt>Counting shares</dt><dd>Next in 1 min 30 s</dd>" in page
    assert "<dt>Corrupt shares found</dt><dd>2</dd>" in page


def test_page_when_a_crawler_is_about_to_begin_says_so() -> None:
    page = rendered({}, {}, lease_checker_progress={**IDLE, "remaining-wait-time": 0.0})
    assert "<dt>Checking leases</dt><dd>Begins now</dd>" in page


def test_page_when_there_is_no_server_says_so() -> None:
    assert "No storage server runs in this node." in render_no_storage()
