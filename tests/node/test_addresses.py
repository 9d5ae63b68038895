"""Ports and addresses of a node."""

from __future__ import annotations

import socket
from pathlib import Path

from grid.node.addresses import free_port, listening_endpoints, local_addresses, location_hints
from grid.node.directory import open_directory


def test_free_port_can_be_listened_on() -> None:
    port = free_port("127.0.0.1")
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", port))


def test_port_chosen_for_a_node_is_kept(tmp_path: Path) -> None:
    (tmp_path / "grid.cfg").write_text("")
    first = listening_endpoints(open_directory(tmp_path))
    assert first == listening_endpoints(open_directory(tmp_path))
    assert first == ((tmp_path / "client.port").read_text().strip(),)


def test_port_file_of_an_old_node_is_used(tmp_path: Path) -> None:
    (tmp_path / "tahoe-introducer.tac").touch()
    (tmp_path / "introducer.port").write_text("4567\n")
    assert listening_endpoints(open_directory(tmp_path)) == ("tcp:4567",)


def test_disabled_node_listens_nowhere(tmp_path: Path) -> None:
    (tmp_path / "grid.cfg").write_text("[node]\ntub.port = disabled\ntub.location = disabled\n")
    assert listening_endpoints(open_directory(tmp_path)) is None


def test_auto_stands_for_every_address_with_every_port() -> None:
    hints = location_hints(("tcp:example.org:7", "AUTO", "tcp:example.org:7"), (4000, 4001))
    assert hints[0] == "tcp:example.org:7"
    assert "tcp:127.0.0.1:4000" in hints
    assert "tcp:127.0.0.1:4001" in hints
    assert len(hints) == len(set(hints)) == 1 + 2 * len(local_addresses())
