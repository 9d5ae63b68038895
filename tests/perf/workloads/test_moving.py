"""Transfers as a campaign measures them: onto a small grid and again, single files of a pack, and between a grid and S3."""

from __future__ import annotations

from pathlib import Path

import pytest

from perf.records.record import Record
from perf.workloads import moving
from tests.perf.workloads.test_workloads import run

HEAD = 'driver = "moving"\npurpose = "mine"\nservers = 3\n'


def by_work(record: Record) -> dict[tuple[str, str], list[float | None]]:
    """Seconds by system and scenario."""
    found: dict[tuple[str, str], list[float | None]] = {}
    for one in record.samples:
        found.setdefault((one.system.rpartition("/")[2], one.scenario), []).append(one.seconds)
    return found


def test_tiny_files_are_stored_again_read_one_by_one_and_counted_on_the_disks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moving, "SINGLE_READS", 3)
    systems = ["grid@http/transfer-pack", "grid@http/transfer"]

    record = run(f'{HEAD}systems = {systems}\nsets = ["1k_12"]\n'.replace("'", '"'), tmp_path)

    assert not record.failures()
    assert set(by_work(record)) == {
        (client, scenario)
        for client in ("transfer-pack", "transfer")
        for scenario in ("put", "put again", "get", "get one of many")
    }
    packed, single = (
        next(one for one in record.samples if one.scenario == "put" and one.system == system) for system in systems
    )
    directories = 2 * 3
    assert packed.stored_files == directories + 3
    assert single.stored_files == directories + 3 * 12
    assert packed.stored_bytes is not None
    assert packed.stored_bytes < (single.stored_bytes or 0)


def test_client_that_knows_no_s3_is_not_asked_to_move_a_folder_from_there(tmp_path: Path) -> None:
    record = run(f'{HEAD}systems = ["grid@http/cli"]\nsets = ["1k_2"]\n', tmp_path)
    assert record.samples == ()


@pytest.mark.peers
def test_folder_goes_from_s3_to_a_grid_and_back_as_it_goes_by_rclone_to_an_encrypted_bucket(tmp_path: Path) -> None:
    systems = '["grid@http/transfer", "rclone@versitygw+crypt"]'

    record = run(f'{HEAD}systems = {systems}\nsets = ["100k_2"]\n', tmp_path)

    assert not record.failures()
    assert set(by_work(record)) == {
        (system, scenario) for system in ("transfer", "rclone@versitygw+crypt") for scenario in ("from S3", "to S3")
    }
