"""What JSON says of objects of which only the verify cap is held; the rest is tested where it is served."""

from __future__ import annotations

import pytest

from grid.caps import ChkVerifyCap, KnownCap, MdmfVerifyCap, SdmfVerifyCap
from grid.directory.nodejson import describe_file
from grid.directory.pack import Child
from grid.ports import StorageIndex

INDEX, HASH = StorageIndex(bytes(range(16))), bytes(range(32))


@pytest.mark.parametrize(
    ("cap", "said"),
    [
        (SdmfVerifyCap(storage_index=INDEX, fingerprint=HASH), {"mutable": True, "format": "SDMF"}),
        (MdmfVerifyCap(storage_index=INDEX, fingerprint=HASH), {"mutable": True, "format": "MDMF"}),
        (
            ChkVerifyCap(storage_index=INDEX, ueb_hash=HASH, needed=3, total=10, size=100),
            {"mutable": False, "format": "CHK", "size": 100},
        ),
    ],
)
def test_verify_cap_when_described_says_what_it_verifies(cap: KnownCap, said: dict[str, object]) -> None:
    kind, properties = describe_file(Child(target=cap), None, by_path=False)
    assert kind == "filenode"
    assert properties == {**said, "verify_uri": cap.to_string()}
