"""`grid status` while it waits for servers that do not answer."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from grid.cli.commands.status import ask_servers
from grid.errors import PeerError
from grid.ports import ServerId, ServerIdentity
from tests.support.virtual_time import VirtualRuntime


class Server:
    """Fails after some seconds."""

    def __init__(self, runtime: VirtualRuntime, nickname: str, delay_s: float) -> None:
        seed = b"s" * 20
        self.identity = ServerIdentity(
            server_id=ServerId("v0-abcdefghijkl"), nickname=nickname, permutation_seed=seed, lease_seed=seed
        )
        self._runtime, self._delay_s = runtime, delay_s

    async def get_version(self) -> object:
        await self._runtime.clock.sleep(self._delay_s)
        raise PeerError("no route to host")


def ask(delays: dict[str, float]) -> list[dict[str, Any]]:
    runtime = VirtualRuntime()
    servers = [Server(runtime, name, delay_s) for name, delay_s in delays.items()]

    async def known() -> list[Server]:
        return servers

    client: Any = SimpleNamespace(runtime=runtime, servers=known, server_set=SimpleNamespace(entries=[]))
    found = runtime.run(ask_servers(client))
    runtime.settle()
    return found


@pytest.mark.parametrize("is_terminal", [True, False])
def test_wait_for_silent_servers_is_announced_on_a_terminal_with_their_names(
    is_terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    found = ask({"swift": 0.1, "gone\x1b[2J": 60.0, "": 60.0})
    assert [server["detail"] for server in found] == ["no answer", "no answer", "no route to host"]
    said = capsys.readouterr()
    assert said.out == ""
    if not is_terminal:
        assert said.err == ""
        return
    assert said.err.startswith("waiting up to 8.5 s longer for gone")
    assert said.err.endswith(", v0-abcdefgh ...\n")
    assert "\x1b" not in said.err


def test_servers_that_all_answer_soon_are_not_announced(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    ask({"swift": 0.1, "also swift": 1.0})
    assert capsys.readouterr().err == ""
