"""Settings that contradict each other."""

from __future__ import annotations

import pytest

from grid.errors import ConfigError
from grid.storage.settings import ExpirySettings, StorageSettings


def test_settings_when_left_alone_are_durable_and_expire_nothing() -> None:
    settings = StorageSettings()
    assert settings.durability == "full"
    assert not settings.expire.enabled


def test_expiry_when_by_cutoff_date_needs_one() -> None:
    with pytest.raises(ConfigError, match=r"expire\.cutoff_date"):
        ExpirySettings(enabled=True, mode="cutoff-date")
    assert ExpirySettings(mode="cutoff-date", cutoff=5).cutoff == 5


def test_settings_when_negative_are_refused() -> None:
    with pytest.raises(ValueError, match="reserved_space"):
        StorageSettings(reserved_space=-1)
