"""Which requests are accepted at all."""

from __future__ import annotations

import pytest

from grid.gateway.faults import Forbidden
from grid.gateway.http.exchange import Headers
from grid.gateway.http.guards import check_origin

HOST = "127.0.0.1:3456"


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": f"http://{HOST}"},
        {"origin": "null", "sec-fetch-site": "same-origin"},  # A form of a page that sends no referrer.
        {"sec-fetch-site": "none"},
    ],
)
def test_programs_and_our_own_pages_may_change_something(headers: dict[str, str]) -> None:
    check_origin("POST", Headers(headers), HOST)


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://elsewhere.example"},
        {"origin": "http://elsewhere.example", "sec-fetch-site": "same-origin"},
        {"origin": "null"},  # A sandboxed page, such as one that is stored in the grid.
        {"origin": "null", "sec-fetch-site": "cross-site"},
        {"origin": "null", "sec-fetch-site": "none"},
        {"origin": "http://[", "sec-fetch-site": "same-origin"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_pages_of_other_sites_may_not(headers: dict[str, str]) -> None:
    with pytest.raises(Forbidden):
        check_origin("POST", Headers(headers), HOST)
    check_origin("GET", Headers(headers), HOST)
