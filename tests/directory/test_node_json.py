"""JSON of unknown and verify-only objects; the rest is tested where it is served."""

from __future__ import annotations

import pytest

from grid.caps import ChkVerifyCap, DirectoryCap, KnownCap, MdmfVerifyCap, SdmfVerifyCap, UnknownChild
from grid.directory.node_json import describe_file
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


def test_verify_cap_of_a_directory_when_described_says_whether_it_changes() -> None:
    cap = DirectoryCap(body=SdmfVerifyCap(storage_index=INDEX, fingerprint=HASH))
    _, properties = describe_file(Child(target=cap), None, by_path=False)
    assert properties == {"mutable": True, "verify_uri": cap.to_string()}


@pytest.mark.parametrize(
    ("target", "said"),
    [
        (UnknownChild(write=b"new:write", read=b"ro.new:read"), {"mutable": True}),
        (UnknownChild(read=b"imm.new:read"), {"mutable": False}),
        (UnknownChild(read=b"ro.new:read"), {}),
    ],
)
def test_unknown_object_when_described_says_of_change_what_its_slots_say(
    target: UnknownChild, said: dict[str, object]
) -> None:
    kind, properties = describe_file(Child(target=target), None, by_path=True)
    assert kind == "unknown"
    assert isinstance(properties, dict)
    assert {name: properties[name] for name in properties if name == "mutable"} == said
