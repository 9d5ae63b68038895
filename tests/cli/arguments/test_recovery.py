"""Recovery files of aliases: what they restore, and what is refused."""

from __future__ import annotations

import json

import pytest

from grid.caps import DirectoryCap, parse_cap
from grid.cli.arguments.recovery import Recovery, decrypt, make_sheet, pack_recovery, parse_recovery
from grid.errors import FormatError

CAP = parse_cap("URI:DIR2:" + "a" * 26 + ":" + "a" * 51 + "q")
assert isinstance(CAP, DirectoryCap)
FURL = "pb://l2rdxsw4e5nqqud4h4cj7uuaz2s6is2e@tcp:127.0.0.1:9/ln3ddyjdlt3cxe5uujeubs3ho2cl4jht"
RECOVERY = Recovery(aliases={"work": CAP, "b\u00fccher": CAP}, introducers=[FURL])


def test_aliases_and_introducers_come_back() -> None:
    assert parse_recovery(pack_recovery(RECOVERY)) == RECOVERY
    assert FURL not in repr(RECOVERY) and "URI" not in repr(RECOVERY)


def changed(**fields: object) -> bytes:
    return json.dumps({**json.loads(pack_recovery(RECOVERY)), **fields}).encode()


@pytest.mark.parametrize(
    "data",
    [
        b"\xff",
        b"[" * 100_000,
        b"[]",
        changed(format="other"),
        changed(version=2),
        changed(aliases=["work"]),
        changed(aliases={"a b": CAP.to_string()}),
        changed(aliases={"work": "URI:LIT:mfra"}),
        changed(aliases={"work": 5}),
        changed(aliases={f"a{number}": CAP.to_string() for number in range(10_001)}),
        changed(introducers=["http://example.org"]),
        changed(introducers=[1]),
    ],
)
def test_invalid_list_of_aliases_is_refused_and_not_quoted(data: bytes) -> None:
    with pytest.raises(FormatError) as refused:
        parse_recovery(data)
    assert "URI" not in str(refused.value) and "example" not in str(refused.value)


@pytest.mark.parametrize("data", [b"", b"work: URI:DIR2:x", b"-----BEGIN AGE ENCRYPTED FILE-----"])
def test_file_that_is_not_encrypted_is_refused(data: bytes) -> None:
    with pytest.raises(FormatError, match="not written by `grid alias export`"):
        decrypt(data, "any")


def test_sheet_has_the_names_and_the_file_and_no_capability() -> None:
    sheet = make_sheet(
        "-----BEGIN AGE ENCRYPTED FILE-----\nx\n-----END AGE ENCRYPTED FILE-----\n", ["work"], "2026-01-31"
    )
    assert "Directories: work:\n" in sheet and "2026-01-31" in sheet
    assert "URI" not in sheet and "pb://" not in sheet
    assert max(map(len, sheet.splitlines())) <= 104
