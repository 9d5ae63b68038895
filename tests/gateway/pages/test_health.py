"""The map of an object's health."""

from __future__ import annotations

from typing import Any

import pytest

from grid.gateway.pages.health import render_check_results
from grid.gateway.shared.node_view import ServerView
from tests.gateway.pages.hostile import HOSTILE, require_harmless


def checked(**results: Any) -> dict[str, Any]:
    found = {
        "healthy": False,
        "recoverable": True,
        "count-happiness": 2,
        "count-shares-good": 2,
        "count-shares-needed": 2,
        "count-shares-expected": 4,
        "count-good-share-hosts": 2,
        "count-corrupt-shares": 1,
        "list-corrupt-shares": [["v0-c", "si", 3]],
        "servers-responding": ["v0-a", "v0-b", "v0-c"],
        "sharemap": {"0": ["v0-a"], "1": ["v0-b"]},
    }
    return {"storage-index": "si", "summary": "Not Healthy", "results": found | results}


def server(name: str, nickname: str, problem: str | None = None) -> ServerView:
    return ServerView(
        server_id=name,
        nickname=nickname,
        is_connected=problem is None,
        status="Connected" if problem is None else problem,
    )


def test_each_share_is_drawn_as_good_damaged_or_lost() -> None:
    html = render_check_results(checked(), [server("v0-a", "Ada")], "/uri/x")
    document = require_harmless(html)

    classes = [each.get("class") for each in document.all("span")]
    assert [classes.count(f"cell {kind}") for kind in ("held", "damaged", "lost")] == [2, 1, 2]
    assert "share 0: good on Ada" in document.text
    assert "share 3: damaged on v0-c" in document.text
    assert "share 2: missing" in document.text


def test_servers_that_gave_no_answer_have_rows_with_what_is_known_about_them() -> None:
    known = [server("v0-a", "Ada"), server("v0-x", "Xenia", "refused: no route"), server("v0-y", "Yuri")]
    document = require_harmless(render_check_results(checked(), known, "/uri/x"))

    assert [each.get("class") for each in document.all("span")].count("cell silent") == 2 * 4
    assert "share 0: unknown on Xenia, not connected" in document.text
    assert "share 0: unknown on Yuri, no answer" in document.text
    assert "Xenia – not connected: refused: no route" in document.text
    assert "Yuri – connected, but did not answer" in document.text
    assert "Servers that answered3 of 5" in document.text


def test_a_server_that_was_silent_has_a_row_even_if_it_is_no_longer_known() -> None:
    results = checked(**{"servers-silent": ["v0-gone"]})
    document = require_harmless(render_check_results(results, [server("v0-a", "Ada")], "/uri/x"))

    assert "share 0: unknown on v0-gone, no answer" in document.text


def test_a_picture_where_all_answered_has_no_row_for_silence() -> None:
    html = render_check_results(checked(), [server(f"v0-{name}", name) for name in "abc"], "/uri/x")

    assert "silent" not in html and "no answer" not in html


@pytest.mark.parametrize(
    ("results", "words"),
    [
        ({"healthy": True, "count-shares-good": 4}, "Healthy: 4 of 4 shares"),
        ({}, "Not healthy, but readable"),
        ({"recoverable": False, "count-shares-good": 1}, "Cannot be read now"),
    ],
)
def test_the_state_is_said_in_words(results: dict[str, Any], words: str) -> None:
    assert words in render_check_results(checked(**results), [], "/uri/x")


def test_a_repair_shows_before_and_after() -> None:
    whole = checked(healthy=True, **{"count-shares-good": 4, "sharemap": {str(n): ["v0-a"] for n in range(4)}})
    outcome = {
        "repair-attempted": True,
        "repair-successful": True,
        "pre-repair-results": checked(),
        "post-repair-results": whole,
    }
    html = render_check_results(outcome, [], "/uri/x")

    assert "Repaired" in html and "Before" in html and html.count('class="shares"') == 2


def test_an_object_without_shares_is_healthy() -> None:
    assert "no shares to lose" in render_check_results({"results": {"healthy": True}}, [], "/uri/x")


def test_shares_of_mutable_objects_are_columns_by_their_versions() -> None:
    sharemap = {"seq1-abcd-sh0": ["v0-a"], "seq2-efgh-sh0": ["v0-b"], "seq2-efgh-sh10": ["v0-b"]}
    document = require_harmless(
        render_check_results(checked(sharemap=sharemap, **{"list-corrupt-shares": []}), [], "/uri/x")
    )

    assert "share seq2-efgh-sh10: good on v0-b" in document.text


@pytest.mark.parametrize("text", HOSTILE)
def test_no_nickname_of_a_server_becomes_markup(text: str) -> None:
    hostile = checked(
        sharemap={text: [text]}, **{"servers-responding": [text], "list-corrupt-shares": [[text, text, text], [1], 5]}
    )

    require_harmless(render_check_results(hostile, [server(text, text), server("silent", text, text)], "/uri/x"))


def test_a_picture_of_absurd_size_is_cut_off() -> None:
    sharemap = {str(number): [f"v0-{server}" for server in range(150)] for number in range(3)}
    html = render_check_results(checked(sharemap=sharemap, **{"count-shares-expected": 10**9}), [], "/uri/x")

    assert len(html) < 3_000_000
