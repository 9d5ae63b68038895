"""Comparing environments, and keys of cells."""

from __future__ import annotations

from perf.records.likeness import differences, key_of

HERE = {"cpu": "A", "cpu_count": 2, "commit": "1", "packages": {"zfec": "1.6"}}


def test_environments_of_other_machines_differ_and_of_other_commits_do_not() -> None:
    assert differences(HERE, HERE | {"cpu": "B"}) == {"cpu": ("A", "B")}
    assert differences(HERE, HERE | {"commit": "2"}) == {}
    assert differences(HERE, HERE | {"commit": "2"}, software=True) == {"commit": ("1", "2")}


def test_value_missing_from_an_older_record_is_not_a_difference() -> None:
    assert differences(HERE, HERE | {"congestion_control": "bbr"}) == {}


def test_key_differs_with_the_cell_and_the_environment_only() -> None:
    key = key_of({"size": 1}, HERE)
    assert key == key_of({"size": 1}, HERE | {"load": 3.0, "date": "today"})
    assert len({key, key_of({"size": 2}, HERE), key_of({"size": 1}, HERE | {"commit": "2"})}) == 3
