"""Recovery files of aliases: what they restore, and what is refused."""

from __future__ import annotations

import json

import pytest
from attrs import evolve

from grid.caps import DirectoryCap, parse_cap
from grid.cli.arguments.recovery import (
    MAX_SERVERS_SIZE,
    Recovery,
    decrypt,
    make_sheet,
    pack_recovery,
    parse_recovery,
)
from grid.errors import FormatError
from tests.discovery.samples import announcement

CAP = parse_cap("URI:DIR2:" + "a" * 26 + ":" + "a" * 51 + "q")
assert isinstance(CAP, DirectoryCap)
FURL = "pb://l2rdxsw4e5nqqud4h4cj7uuaz2s6is2e@tcp:127.0.0.1:9/ln3ddyjdlt3cxe5uujeubs3ho2cl4jht"
RECOVERY = Recovery(
    aliases={"work": CAP, "b\u00fccher": CAP},
    introducers=[FURL],
    encoding=(2, 3, 4),
    servers={FURL: [evolve(announcement(index), signed=None) for index in (0, 1)]},
)


def test_aliases_introducers_and_numbers_come_back() -> None:
    found = parse_recovery(pack_recovery(RECOVERY))
    assert evolve(found, servers={}) == evolve(RECOVERY, servers={})
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
        changed(encoding=[2, 3, 4]),
        changed(encoding={"needed": 2, "happy": 3}),
        changed(encoding={"needed": 5, "happy": 3, "total": 4}),
        changed(encoding={"needed": 2, "happy": 5, "total": 4}),
        changed(encoding={"needed": 0, "happy": 0, "total": 4}),
        changed(encoding={"needed": True, "happy": 3, "total": 4}),
        changed(encoding={"needed": 1, "happy": 1, "total": 257}),
        changed(servers={"example": []}),
        changed(servers=[{"introducer": "http://example.org", "announcements": []}]),
        changed(servers=[{"introducer": FURL, "announcements": {}}]),
        changed(servers=[{"introducer": FURL}]),
        changed(servers=["example"]),
        changed(servers=[{"introducer": FURL, "announcements": []}] * 10_001),
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


def test_file_of_an_older_version_has_no_servers_and_no_numbers() -> None:
    value = json.loads(pack_recovery(RECOVERY))
    old = {name: value[name] for name in ("format", "version", "aliases", "introducers")}
    assert parse_recovery(json.dumps(old).encode()) == evolve(RECOVERY, encoding=None, servers={})
    assert pack_recovery(evolve(RECOVERY, encoding=None, servers={})) == json.dumps(old, indent=1).encode()


def test_servers_come_back_with_what_leads_to_them_and_no_more() -> None:
    (found,) = parse_recovery(pack_recovery(RECOVERY)).servers.values()
    for server, sent in zip(found, RECOVERY.servers[FURL], strict=True):
        assert (server.server_id, server.seqnum, server.nickname) == (sent.server_id, 1, "nick")
        assert set(server.fields) == {"anonymous-storage-FURL", "nickname", "seqnum", "service-name"}


def test_servers_that_this_version_cannot_use_are_skipped() -> None:
    value = json.loads(pack_recovery(RECOVERY))
    value["servers"][0]["announcements"][:0] = [5, {"key_s": 5}, {"key_s": "v0-x", "ann": []}]
    assert parse_recovery(json.dumps(value).encode()).server_count == 2


def test_servers_that_would_make_the_file_too_large_are_left_out() -> None:
    large = evolve(announcement(0), fields={**announcement(0).fields, "nickname": "x" * MAX_SERVERS_SIZE})
    packed = pack_recovery(evolve(RECOVERY, servers={FURL: [large, *RECOVERY.servers[FURL]]}))
    assert len(packed) < MAX_SERVERS_SIZE and parse_recovery(packed).server_count == 2
