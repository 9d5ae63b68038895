"""Films in a real browser: playing, and seeking by ranges."""

from __future__ import annotations

import pytest

from tests.browser.film import frame_seen, make_film
from tests.browser.visitor import Visitor, uri

pytestmark = pytest.mark.browser

SECONDS = 50


def test_a_film_plays_and_seeks_by_ranges(visitor: Visitor) -> None:
    page = visitor.page
    visitor.go("/")
    film = make_film(page, SECONDS)
    cap = visitor.store(film)
    asked: list[tuple[str, int]] = []
    page.on(
        "response",
        lambda answer: (
            asked.append((answer.request.headers.get("range", ""), answer.status)) if "/file/" in answer.url else None
        ),
    )
    visitor.go(f"{uri(cap)}?t=info&filename=film.webm")
    page.wait_for_function("() => document.querySelector('video').readyState >= 2")
    assert page.evaluate("document.querySelector('video').duration") == SECONDS
    assert frame_seen(page) == 0

    for second in (42, 7):
        page.evaluate(f"document.querySelector('video').currentTime = {second}.5")
        page.wait_for_function("() => (v => !v.seeking && v.readyState >= 2)(document.querySelector('video'))")
        assert page.evaluate("document.querySelector('video').currentTime") == second + 0.5
        assert frame_seen(page) == second
        visitor.picture(f"second-{second}")

    assert all(status == 206 for _, status in asked), asked
    begins = [int(words.removeprefix("bytes=").partition("-")[0]) for words, _ in asked]
    assert begins[0] == 0 and max(begins) > len(film) // 2, (begins, len(film))
    page.evaluate("(v => { v.muted = true; return v.play(); })(document.querySelector('video'))")
    page.wait_for_function("() => document.querySelector('video').currentTime > 8.2")
    page.evaluate("document.querySelector('video').pause()")
    assert frame_seen(page) >= 8
