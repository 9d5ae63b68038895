"""What the clients of a grid tell of their slowest transfer, on real processes."""

from __future__ import annotations

import json
import os
from pathlib import Path

from perf.peers.grids import GridPeer


def test_library_tells_the_events_since_it_was_told_to_forget(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(os.urandom(100_000))
    peer = GridPeer("grid@http", "library", servers=2)
    try:
        peer.start(tmp_path / "peer")
        assert _events(peer) == 0
        peer.put(source, "name")
        assert 0 < _events(peer) == _events(peer)
        peer.forget()
        assert _events(peer) == 0
        peer.get("name", tmp_path / "back")
        assert _events(peer) > 0
        assert peer.status is None
    finally:
        peer.stop()


def test_gateway_has_a_status_page_and_no_events(tmp_path: Path) -> None:
    peer = GridPeer("grid@http", "gateway", servers=2)
    assert peer.status is None
    try:
        peer.start(tmp_path / "peer")
        assert peer.status is not None
        assert isinstance(json.loads(peer.status()), dict)
        assert peer.timeline() is None
    finally:
        peer.stop()


def _events(peer: GridPeer) -> int:
    text = peer.timeline()
    assert text is not None
    return len(json.loads(text)["events"])
