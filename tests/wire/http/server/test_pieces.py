from __future__ import annotations

from contextlib import ExitStack

from grid.wire.http.server.pieces import LARGEST_PIECE, LEAST_HELD, SMALLEST_PIECE, PieceSizer


def test_pieces_when_more_requests_are_served_become_smaller_within_bounds() -> None:
    sizer = PieceSizer(4 * LARGEST_PIECE)
    assert sizer.piece_size == LARGEST_PIECE
    with ExitStack() as serving:
        sizes = []
        for _ in range(500):
            serving.enter_context(sizer)
            sizes.append(sizer.piece_size)
        assert sizes[:4] == [LARGEST_PIECE] * 4
        assert sizes == sorted(sizes, reverse=True)
        assert sizes[-1] == SMALLEST_PIECE
        assert all(
            size * (count + 1) <= 4 * LARGEST_PIECE or size == SMALLEST_PIECE for count, size in enumerate(sizes)
        )
    assert sizer.active == 0


def test_pieces_that_are_held_when_they_are_many_stay_within_the_total_but_for_the_least() -> None:
    sizer = PieceSizer(4 * LARGEST_PIECE)
    with ExitStack() as holding:
        sizes = []
        for _ in range(500):
            holding.enter_context(sizer)
            sizes.append(holding.enter_context(sizer.held()))
        assert sum(size for size in sizes if size > LEAST_HELD) <= 4 * LARGEST_PIECE
        assert sizes[-1] == LEAST_HELD
    with sizer.held() as size:
        assert size == LARGEST_PIECE
