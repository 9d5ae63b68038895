"""Peers that are started once for all tests of a module; if a program is missing, its tests are skipped with the reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from perf.peers.catalogue import make_peer
from perf.peers.contract import Peer
from perf.peers.programs import MissingPeerError


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Peer]]:
    """A started peer by its label."""
    started: dict[str, Peer] = {}

    def get(label: str) -> Peer:
        if label not in started:
            peer = make_peer(label)
            try:
                peer.versions()
            except MissingPeerError as gap:
                pytest.skip(str(gap))
            started[label] = peer
            peer.start(Path(tmp_path_factory.mktemp("peer")) / "files")
        return started[label]

    yield get
    for peer in started.values():
        peer.stop()
