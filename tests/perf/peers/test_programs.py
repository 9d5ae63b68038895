"""The index of installed peers, and peers that are not in it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from perf.campaigns.labels import PEERS, parse_label
from perf.network.contract import Placement
from perf.peers.catalogue import default_and_tuned, make_peer
from perf.peers.object_servers import GridServer
from perf.peers.programs import MissingPeerError, abilities, find_program
from perf.peers.s3_commands import S3Peer
from perf.systems.peers import make_system


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An index in a folder of its own, not written yet."""
    monkeypatch.setenv("GRID_PEERS", str(tmp_path))
    return tmp_path / "peers.json"


def test_a_program_is_found_with_its_version(index: Path) -> None:
    index.write_text(json.dumps({"found": {"rclone": {"program": sys.executable, "version": "1.75.2"}}, "missing": {}}))

    assert find_program("rclone").version == "1.75.2"


def test_a_missing_program_is_a_gap_with_its_name_and_reason(index: Path) -> None:
    index.write_text(json.dumps({"found": {}, "missing": {"minio": "there is no Go"}}))

    with pytest.raises(MissingPeerError, match="minio is missing: there is no Go"):
        find_program("minio")


def test_without_an_index_the_error_says_how_to_get_one(index: Path) -> None:
    with pytest.raises(MissingPeerError, match="make peers"):
        find_program("restic")


def test_a_program_that_was_removed_is_missing(index: Path) -> None:
    index.write_text(json.dumps({"found": {"rclone": {"program": "/nonexistent", "version": "1"}}, "missing": {}}))

    with pytest.raises(MissingPeerError, match="is gone"):
        find_program("rclone")


def test_a_missing_tahoe_is_a_gap_and_an_installed_one_needs_no_variable(
    index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRID_TAHOE", "")
    with pytest.raises(ValueError, match=r"^tahoe@http: tahoe is missing: .*make peers"):
        make_system("tahoe@http")

    index.write_text(json.dumps({"found": {"tahoe": {"program": sys.executable, "version": "1.20.0"}}, "missing": {}}))

    assert make_system("tahoe@http").label == "tahoe@http" and os.environ["GRID_TAHOE"] == sys.executable
    monkeypatch.setenv("GRID_TAHOE", "/nonexistent/tahoe")
    with pytest.raises(ValueError, match="/nonexistent/tahoe cannot be run"):
        make_system("tahoe@foolscap")


def test_every_label_names_a_peer_that_says_what_it_does_before_it_starts() -> None:
    for label in default_and_tuned():
        said = make_peer(label).properties
        assert said.expansion >= 1.0
        assert said.proves


@pytest.mark.parametrize(("label", "packs"), [("s5cmd@grid+tuned", False), ("s5cmd@grid+tuned+packed", True)])
def test_a_packed_door_puts_small_objects_into_packs(label: str, packs: bool) -> None:
    peer = make_peer(label)
    assert isinstance(peer, S3Peer) and isinstance(peer.server, GridServer)
    assert peer.server.packs is packs


def test_every_base_is_among_the_labels() -> None:
    assert {parse_label(label).base for label in default_and_tuned()} == set(PEERS)


def test_a_campaign_with_a_missing_peer_is_refused_by_name(index: Path) -> None:
    with pytest.raises(ValueError, match="rclone@versitygw: rclone is missing"):
        make_system("rclone@versitygw")


def test_the_doctor_names_each_peer_and_how_to_get_it(index: Path) -> None:
    found = {ability.name: ability for ability in abilities()}

    assert not found["versitygw"].available
    assert found["versitygw"].remedy == "make peers PEERS=versitygw"


def test_a_peer_that_never_started_stops(index: Path, tmp_path: Path) -> None:
    peer = make_peer("cp")

    with pytest.raises(MissingPeerError):
        peer.start(tmp_path / "files", Placement())
    peer.stop()

    assert not (tmp_path / "files").exists()
