"""How long a node may take to end."""

from __future__ import annotations

from pathlib import Path

from grid.cli.terminal.runner import CLEAN_UP_S
from grid.node.patience import STOP_S, patience_s


def test_patience_is_what_requests_may_take_and_what_the_process_gives_itself(tmp_path: Path) -> None:
    (tmp_path / "client.tac").write_text("")
    (tmp_path / "grid.cfg").write_text("[node]\nweb.drain_timeout = 7\n")
    assert patience_s(tmp_path) == 7 + STOP_S
    assert STOP_S > CLEAN_UP_S


def test_patience_with_a_configuration_that_cannot_be_read_is_that_of_a_node_without_a_gateway(tmp_path: Path) -> None:
    (tmp_path / "client.tac").write_text("")
    (tmp_path / "grid.cfg").write_text("nonsense")
    assert patience_s(tmp_path) == STOP_S
