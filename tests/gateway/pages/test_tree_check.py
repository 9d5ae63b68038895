"""The page of a check of everything below a directory."""

from __future__ import annotations

import pytest
from attrs import evolve

from grid.gateway.pages.tree_check import (
    LONGEST_PATH,
    MAX_SHOWN,
    TreeCheck,
    UnhealthyObject,
    render_tree_check,
    tree_card,
)
from tests.gateway.pages.hostile import HOSTILE, require_harmless

HOME = "/uri/URI%3ADIR2%3Aa%3Ab/"
RUNNING = TreeCheck(home=HOME, state="running", done=3, found=9, under_way=[["a"]])


def damaged(*path: str, good: int = 3, **more: object) -> UnhealthyObject:
    results = {
        "healthy": False,
        "recoverable": good >= 2,
        "count-shares-good": good,
        "count-shares-needed": 2,
        "count-shares-expected": 5,
    }
    document = {"results": results, **more}
    return UnhealthyObject(path=path, now=document)


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_in_the_tree_becomes_markup_or_leads_elsewhere(text: str) -> None:
    ill = [damaged(text, text), damaged("a", text, error=text, summary=text)]
    for state in ("running", "finished", "stopped", "failed"):
        view = evolve(RUNNING, state=state, problem=text, under_way=[[text, "b"]], unhealthy=ill)
        require_harmless(render_tree_check(view))
    require_harmless(tree_card(HOME, is_writable=True, last=(text, True)))


def test_running_check_shows_how_far_it_is_and_what_is_under_way() -> None:
    document = require_harmless(render_tree_check(RUNNING))
    (bar,) = document.all("progress")
    assert (bar["value"], bar["max"]) == ("3", "9")
    assert "Checking: 3 of about 9 objects done so far." in document.text
    assert "Stop" in document.text and "In progress" in document.text
    over = render_tree_check(evolve(RUNNING, state="finished", done=9))
    assert "data-poll" not in over and ">Stop</button>" not in over


def test_only_paths_that_browsers_leave_unchanged_become_links() -> None:
    ill = [damaged("..", "b"), damaged("a/b", "ü?"), damaged()]
    document = require_harmless(render_tree_check(evolve(RUNNING, state="finished", unhealthy=ill)))
    found = [link["href"] for link in document.all("a") if "t=info" in (link["href"] or "")]
    assert found == [f"{HOME}a%2Fb/%C3%BC%3F?t=info", f"{HOME}?t=info"]


def test_long_lists_and_paths_are_cut() -> None:
    ill = [damaged("x" * 5000)] * (MAX_SHOWN + 3)
    counts = {"count-objects-unhealthy-pre-repair": MAX_SHOWN + 20, "count-objects-unhealthy-post-repair": 1}
    document = require_harmless(render_tree_check(evolve(RUNNING, state="finished", unhealthy=ill, counts=counts)))
    assert "And 20 others." in document.text
    assert "x" * (LONGEST_PATH + 1) not in document.text


def test_healthy_objects_on_too_few_servers_are_counted() -> None:
    view = evolve(RUNNING, state="finished", done=5, unhealthy=[], counts={"count-objects-crowded-post-repair": 1})
    document = require_harmless(render_tree_check(view))
    assert "Everything is healthy: 5 objects. But 1 of them is spread over too few servers. A repair" in document.text
    assert "On too few servers" in document.text
    assert "On too few servers" not in render_tree_check(evolve(view, counts={}))


@pytest.mark.parametrize("verify", [False, True])
def test_check_that_finds_something_unhealthy_offers_the_repair(verify: bool) -> None:
    counts = {"count-objects-unhealthy-post-repair": 2}
    view = evolve(RUNNING, state="finished", done=5, verify=verify, counts=counts)
    document = require_harmless(render_tree_check(view))
    (form,) = document.all("form")
    sent = {each["name"]: each["value"] for each in document.all("input")}
    assert form["action"] == HOME
    assert sent == {"t": "start-deep-check", "ask": "true", "repair": "true"} | ({"verify": "true"} if verify else {})
    crowded = evolve(view, counts={"count-objects-crowded-post-repair": 1})
    some_lost = evolve(view, counts={**counts, "count-objects-unrecoverable-post-repair": 1})
    assert [">Repair<" in render_tree_check(each) for each in (crowded, some_lost)] == [True, True]


def test_repair_is_not_offered_where_it_cannot_help() -> None:
    counts = {"count-objects-unhealthy-post-repair": 2}
    lost = evolve(RUNNING, state="finished", counts={**counts, "count-objects-unrecoverable-post-repair": 2})
    assert "Bring the missing servers back, then check again." in render_tree_check(lost)
    repaired = evolve(RUNNING, state="finished", repair=True, counts=counts)
    healthy = evolve(RUNNING, state="finished")
    assert [">Repair<" in render_tree_check(each) for each in (lost, repaired, healthy, RUNNING)] == [False] * 4


def test_reader_is_told_what_a_repair_cannot_reach() -> None:
    assert "The check continues even if you leave this page." in tree_card(HOME, is_writable=True)
    assert "need the write capability" in tree_card(HOME, is_writable=False)
    assert "need the write capability" not in tree_card(HOME, is_writable=True)
