"""Lease secrets and write enablers."""

from __future__ import annotations

import pytest

from grid.caps import StorageIndex
from grid.placement.leases import LeaseMaster, write_enabler


def test_lease_secrets_are_the_known_ones() -> None:
    secrets = LeaseMaster(bytes(range(32))).secrets_for(StorageIndex(bytes(range(16))), bytes(range(0x64, 0x78)))
    assert secrets.renew.hex() == "cfbc33b4e22956737ec74f51044b98ba18544bf0e3b6a355714d63692d5b4256"
    assert secrets.cancel.hex() == "1e79a671a2e738310e0595c7a0241b92b21f5ab46d00fdb7136e8ee5262f43f3"


def test_lease_secrets_of_a_mutable_slot_are_the_known_ones() -> None:
    secrets = LeaseMaster(bytes(range(32))).secrets_for(StorageIndex(bytes(range(16, 32))), bytes(range(20)))
    assert secrets.renew.hex() == "4e35698bc76f17fa9a738377b1daa5c615ac34f2ea2b3fc7bc48d5562cd1b840"
    assert secrets.cancel.hex() == "8da7792875850b29061555e51ead7383eef239a1d76b93ceca5f678550de92ff"


@pytest.mark.parametrize(
    ("write_key", "lease_seed", "enabler"),
    [
        (range(0x10, 0x20), range(0x64, 0x78), "07f8d73be995ed2881ec1e0c7dc3b2049765de69b268a284731ff0fecd17b738"),
        (range(0x10), range(0x14), "9c73634fb14767143bf6592de0ed0d74b96d4a255794b02995fdc2a1b0a48609"),
    ],
)
def test_write_enabler_is_the_known_one(write_key: range, lease_seed: range, enabler: str) -> None:
    assert write_enabler(bytes(write_key), bytes(lease_seed)).hex() == enabler


@pytest.mark.parametrize("size", [0, 31, 33])
def test_master_of_wrong_length_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match="master"):
        LeaseMaster(bytes(size))


def test_master_does_not_show_in_its_repr() -> None:
    master = b"correct horse battery staple 032"
    assert repr(LeaseMaster(master)) == "LeaseMaster()"
