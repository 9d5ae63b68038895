"""Errors of puts that name the servers without room."""

from __future__ import annotations

import pytest

from grid.engine.grid import Encoding
from grid.errors import NotHappyError
from tests.support.scripted_grid import ScriptedGrid, noise


@pytest.mark.parametrize("size", [500, 20_000])
def test_put_that_too_few_servers_take_names_those_without_room(size: int) -> None:
    grid = ScriptedGrid(3)
    grid.script(0, read_only=True)
    grid.script(1, full=True)
    with pytest.raises(NotHappyError) as caught:
        grid.put(noise(size), encoding=Encoding(k=1, n=3, happy=3))
    assert caught.value.reached == 1 and caught.value.causes == ()
    names = [server.identity.nickname or server.identity.server_id[:11] for server in grid.servers]
    found = sorted(caught.value.full)
    assert len(found) == 2 and {each.partition(" ")[0] for each in found} == set(names[:2])
    assert str(caught.value).endswith(f"{', '.join(caught.value.full)}.")
    assert grid.debris() == []


def test_put_that_fails_for_another_reason_names_nobody() -> None:
    grid = ScriptedGrid(2)
    with pytest.raises(NotHappyError) as caught:
        grid.put(noise(500), encoding=Encoding(k=1, n=3, happy=3))
    assert caught.value.full == ()
