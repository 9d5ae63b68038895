from __future__ import annotations

from grid.limits import MAX_HTTP_CONNECTIONS
from grid.wire.connections.connection_limit import Places
from grid.wire.connections.sockets import LARGEST_STROKE, stroke_size

MOST_KEPT = 32 * 2**20


def test_strokes_when_connections_are_few_are_large() -> None:
    assert [stroke_size(crowd) for crowd in range(17)] == [LARGEST_STROKE] * 17


def test_buffers_that_openssl_keeps_for_all_http_connections_stay_bounded() -> None:
    # Each connection opened while that many were open may have a buffer in each direction, for its stroke.
    assert 2 * sum(stroke_size(crowd) for crowd in range(1, MAX_HTTP_CONNECTIONS + 1)) <= MOST_KEPT


def test_crowd_of_a_place_is_the_fullest_of_its_rooms() -> None:
    process, listener = Places(100), Places(10)
    places = [process.enter("10.0.0.1") for _ in range(3)]
    assert [place.crowd for place in places if place] == [3, 3, 3]
    (first, second, third) = [place for place in places if place]
    assert listener.admit(first)
    third.leave()
    assert (first.crowd, second.crowd, third.crowd) == (2, 2, 1)
