"""Share links and their file: what is kept of each, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from attrs import evolve

from grid.caps import ChkCap, DirectoryCap, SdmfWriteCap
from grid.errors import ConfigError, GridError, NoSuchChildError
from grid.gateway.shared.passwords import PasswordHash
from grid.gateway.shared.share_links import (
    KEPT_S,
    MAX_LINKS,
    MAX_NAME,
    ShareLink,
    add_link,
    describe_link,
    find_link,
    link_name,
    make_link,
    new_token,
    pack_links,
    parse_lifetime,
    parse_links,
    token_digest,
)
from tests.support.virtual_time import SeededEntropy

WRITE = DirectoryCap(SdmfWriteCap(write_key=b"w" * 16, fingerprint=b"f" * 32))
FILE = ChkCap(key=b"k" * 16, ueb_hash=b"u" * 32, needed=3, total=10, size=123_456)
NOW = 1_800_000_000
ENTROPY = SeededEntropy(5)
PASSWORD = PasswordHash(salt=b"s" * 16, key=b"k" * 32)


def make(name: str = "photos", cap: DirectoryCap | ChkCap = WRITE, **more: Any) -> ShareLink:
    return make_link(new_token(ENTROPY.random_bytes), cap, name, NOW, **{"expires": NOW + 60, **more})


def test_token_has_192_bits_and_needs_no_quoting() -> None:
    tokens = {new_token(SeededEntropy(seed).random_bytes) for seed in range(100)}
    assert len(tokens) == 100
    for token in tokens:
        assert len(token) == 32 and token.replace("-", "").replace("_", "").isalnum()


def test_link_keeps_neither_its_token_nor_more_than_the_read_capability() -> None:
    token = new_token(ENTROPY.random_bytes)
    link = make_link(token, WRITE, "photos", NOW, expires=None)
    text = pack_links([link])
    assert token not in text and WRITE.to_string() not in text and WRITE.read_cap().to_string() in text
    assert link.digest == token_digest(token) and "URI" not in repr(link) and link.digest.hex() not in repr(link)
    described = json.dumps(describe_link(link, NOW))
    assert "URI" not in described and link.digest.hex() not in described and token not in described


def test_verify_capability_cannot_be_shared() -> None:
    with pytest.raises(GridError, match="verify"):
        make_link("token", FILE.verify_cap(), "x", NOW, expires=None)


def test_links_when_packed_and_parsed_are_the_same() -> None:
    links = [
        make(),
        make("a", FILE, expires=None),
        make(most_downloads=3, password=PASSWORD),
        evolve(make(), uses=7, downloads=2, has_expired=True),
        make("\N{SNOWMAN} <b>"),
    ]
    assert parse_links(pack_links(links), "file") == links
    assert parse_links(pack_links([]), "file") == []


def changed(**fields: object) -> str:
    said = json.loads(pack_links([make(password=PASSWORD)]))
    said["links"][0].update(fields)
    return json.dumps(said)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "[" * 10_000,
        '{"version": 1}',
        '{"version": 1, "links": [1]}',
        '{"version": 1, "links": [{}]}',
        changed(cap=WRITE.to_string()),
        changed(cap=FILE.verify_cap().to_string()),
        changed(cap="URI:NEW:abc"),
        changed(cap="no"),
        changed(token_sha256="00"),
        changed(token_sha256="zz" * 32),
        changed(name=""),
        changed(created=-1),
        changed(created=True),
        changed(created=1.5),
        changed(expires="soon"),
        changed(downloads=None),
        changed(uses=2**60),
        changed(has_expired=1),
        changed(password="secret"),
        changed(password={"scrypt_cost": 2**30, "salt": "YQ==", "key": "YQ=="}),
        changed(password={"scrypt_cost": 2**15, "salt": "YQ==", "key": "YQ=="}),
        pack_links([make()])[:-20],
    ],
)
def test_invalid_file_is_refused_without_its_contents(text: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_links(text, "the file")
    assert str(refused.value).startswith("the file: not a file of share links") and "URI" not in str(refused.value)


def test_file_of_a_newer_version_is_left_to_it() -> None:
    with pytest.raises(ConfigError, match="newer version"):
        parse_links('{"version": 2, "links": []}', "the file")


@pytest.mark.parametrize(
    ("change", "now", "state"),
    [
        ({}, NOW, "open"),
        ({}, NOW + 59.9, "open"),
        ({}, NOW + 60, "expired"),
        ({"expires": None}, 2**50, "open"),
        ({"has_expired": True}, NOW, "expired"),
        ({"most_downloads": 2, "downloads": 1}, NOW, "open"),
        ({"most_downloads": 2, "downloads": 2}, NOW, "used up"),
        ({"most_downloads": 2, "downloads": 3}, NOW + 60, "expired"),
    ],
)
def test_link_is_open_until_its_end_and_its_last_download(change: dict[str, Any], now: float, state: str) -> None:
    assert evolve(make(), **change).state(now) == state


def test_links_that_ended_long_ago_are_dropped_and_the_number_of_links_is_limited() -> None:
    old, kept = make(), make(expires=None)
    links = {link.digest: link for link in (old, kept)}
    add_link(links, make(), NOW + 60 + KEPT_S - 1)
    assert old.digest in links
    add_link(links, make(expires=None), NOW + 60 + KEPT_S)
    assert old.digest not in links and kept.digest in links
    links |= {
        number.to_bytes(32, "big"): evolve(kept, digest=number.to_bytes(32, "big")) for number in range(MAX_LINKS)
    }
    with pytest.raises(ConfigError, match="grid unshare"):
        add_link(links, make(), NOW)


def test_link_is_found_by_its_identifier_or_by_a_name_that_is_its_own() -> None:
    first, second, other = make("a"), make("a"), make("b")
    links = [first, second, other]
    assert find_link(links, "b") == other and find_link(links, second.identifier) == second
    with pytest.raises(GridError, match=first.identifier):
        find_link(links, "a")
    with pytest.raises(NoSuchChildError, match="grid shares"):
        find_link(links, "c")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a b.txt", "a b.txt"),
        ("", "file"),
        ("..", "file"),
        (".", "file"),
        ("a/../b", "a_.._b"),
        ("a\nb\0", "a_b_"),
        ("\N{RIGHT-TO-LEFT OVERRIDE}gpj.exe", "_gpj.exe"),
        ("x" * 1000, "x" * MAX_NAME),
    ],
)
def test_name_of_a_link_is_one_segment_of_an_address(name: str, shown: str) -> None:
    assert link_name(name, is_directory=False) == shown


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30m", 1800), ("12h", 43200), ("7d", 604800), (" 2W ", 1209600), ("never", None)],
)
def test_lifetime_is_a_number_with_a_unit_or_never(text: str, seconds: int | None) -> None:
    assert parse_lifetime(text) == seconds


@pytest.mark.parametrize("text", ["", "7", "0d", "-1d", "1.5d", "7 days", "999999999w", "\u0667d", "2030-01-01"])
def test_other_lifetimes_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_lifetime(text)


@pytest.mark.parametrize("length", [253, 254, 255, 256])
def test_long_name_with_a_space_where_it_is_cut_is_read_again(length: int) -> None:
    name = link_name(f"{'a' * length} b", is_directory=False)
    assert name == link_name(name, is_directory=False)
    assert not name.endswith(" ")


def test_name_that_another_version_of_python_took_for_printable_is_shown_without_it() -> None:
    assert parse_links(changed(name="a\nb/c"), "links")[0].name == "a_b_c"
