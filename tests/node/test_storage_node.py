"""What a node's configuration makes of its store."""

from __future__ import annotations

from pathlib import Path

from grid.node.directory import open_directory
from grid.node.storage_node import server_settings
from grid.storage.settings import ExpirySettings, StorageSettings


def settings_of(path: Path, text: str) -> StorageSettings:
    (path / "grid.cfg").write_text(f"[storage]\n{text}")
    return server_settings(open_directory(path))


def test_store_has_the_settings_of_the_configuration(tmp_path: Path) -> None:
    text = "reserved_space = 2M\nreadonly = true\ndurability = none\n"
    assert settings_of(tmp_path, text) == StorageSettings(reserved_space=2_000_000, readonly=True, durability="none")


def test_leases_end_as_the_configuration_says(tmp_path: Path) -> None:
    text = "expire.enabled = true\nexpire.mode = age\nexpire.override_lease_duration = 2 months\nexpire.mutable = no\n"
    assert settings_of(tmp_path, text).expire == ExpirySettings(enabled=True, override_s=62 * 86400, mutable=False)
    text = "expire.enabled = true\nexpire.mode = cutoff-date\nexpire.cutoff_date = 1970-01-02\nexpire.immutable = no\n"
    assert settings_of(tmp_path, text).expire == ExpirySettings(
        enabled=True, mode="cutoff-date", cutoff=86400, immutable=False
    )


def test_leases_never_end_when_expiry_is_off_whatever_else_is_written(tmp_path: Path) -> None:
    assert settings_of(tmp_path, "expire.mode = cutoff-date\n").expire == ExpirySettings()
