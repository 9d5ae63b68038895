"""A campaign on an existing grid, through its user's node directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from perf.__main__ import main
from perf.processes.process_grid import ClientSettings, ProcessGrid
from perf.records.record import read_record

CAMPAIGN = """purpose = "mine"
systems = ["grid@http", "tahoe@foolscap", "grid@foolscap"]
clients = ["warm", "cli"]
encoding = "3-of-10"
runs = 1
warmups = 0
repetitions = 1

[[work]]
operation = "put-get"
size = [2000, "11 MB"]

[[work]]
operation = "mkdir"
count = 2
"""


def test_campaign_on_a_grid_that_exists_starts_clients_only_and_names_what_it_leaves(tmp_path: Path) -> None:
    path, output = tmp_path / "mine.toml", tmp_path / "record.jsonl"
    path.write_text(CAMPAIGN)
    with ProcessGrid(tmp_path / "grid", introducer="grid", storage=["grid"] * 2, durability="none") as grid:
        client = grid.add_client(ClientSettings(kind="grid", needed=1, happy=2, total=2))
        before = {name.name for name in client.directory.iterdir()}
        assert main(["run", str(path), "--node", str(client.directory), "--output", str(output)]) == 0
        record = read_record(output)
        assert {name.name for name in client.directory.iterdir()} == before
        assert all(grid.shares(left.storage_index) for left in record.left)
    assert record.header.systems == ("grid@foolscap",)  # As the node is configured.
    assert {(one.client, one.scenario, one.size) for one in record.measured()} == {
        ("warm", "put", 2000),
        ("warm", "get", 2000),
        ("cli", "put", 2000),
        ("cli", "get", 2000),
        ("warm", "mkdir", 0),
    }
    assert {(one.factors["k"], one.factors["n"]) for one in record.samples} == {(1, 2)}
    assert {one.factors["site"] for one in record.samples} == {"existing"}
    assert sorted(left.size for left in record.left) == [0, 0, 2000, 2000]
    assert any("at most 10000000 bytes at once" in gap.reason for gap in record.gaps)


@pytest.mark.parametrize(
    ("setting", "system"),
    [("", "grid@http"), ("transport = http", "grid@http"), ("transport = foolscap", "grid@foolscap")],
)
def test_system_has_the_name_of_the_nodes_transport(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str, system: str
) -> None:
    (tmp_path / "grid.cfg").write_text(f"[node]\n[client]\n{setting}\n")
    monkeypatch.setattr("perf.processes.existing.GridClient.connected_count", lambda _: 0)
    output = tmp_path / "record.jsonl"
    words = ["put-get", "--smoke", "--systems", "grid@foolscap+zfec,grid@http", "--node", str(tmp_path)]
    main(["run", *words, "--output", str(output)])
    assert read_record(output).header.systems == (f"{system}+zfec", system)


def test_directory_that_is_no_clients_is_refused_before_anything_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "smoke", "--node", str(tmp_path), "--output", str(tmp_path / "record.jsonl")]) == 1
    assert "is no node directory" in capsys.readouterr().err
    assert not (tmp_path / "record.jsonl").exists()


def test_two_places_at_once_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "smoke", "--node", str(tmp_path), "--scheduler", "tls://a:1"]) == 1
    assert "give one of the two" in capsys.readouterr().err
