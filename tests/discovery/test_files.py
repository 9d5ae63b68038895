"""The files that name servers: the static list, and the cache of announcements. [spec wire 9, 10]"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from grid.discovery import server_files
from grid.discovery.announcement import storage_furl
from grid.discovery.server_files import (
    KeptAnnouncements,
    pack_cache,
    parse_cache,
    parse_static_servers,
    read_cache,
    read_static_servers,
)
from grid.discovery.yaml_files import read_limited
from grid.errors import ConfigError, FormatError
from grid.limits import MAX_SERVERS_FILE
from tests.discovery.samples import IDS, announcement, fields, furl

STATIC = f"""
storage:
  my-server-1:
    ann:
      nickname: one
      anonymous-storage-FURL: {furl()}
    connections: {{tcp: tcp}}
  {IDS[1]}:
    ann: {{anonymous-storage-FURL: "{furl("b")}"}}
  7:
    ann: {{anonymous-storage-FURL: "{furl("c")}"}}
"""


def test_static_servers_when_written_by_hand_then_are_read() -> None:
    servers = parse_static_servers(STATIC.encode())
    assert [server.server_id for server in servers] == ["my-server-1", IDS[1], "7"]
    assert [server.nickname for server in servers] == ["one", "", ""]
    assert storage_furl(servers[1]).tub_id == "b" * 32
    assert all(server.service_name == "storage" for server in servers)


@pytest.mark.parametrize("text", ["", "storage:\n", "storage: {}\n", "other: 5\n"])
def test_static_servers_when_there_are_none_then_the_list_is_empty(text: str) -> None:
    assert parse_static_servers(text.encode()) == []


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "5",
        "storage: []",
        "storage: {a: 5}",
        "storage: {a: {}}",
        "storage: {a: {ann: 5}}",
        "storage: {a: {ann: {}}}",
        "storage: {a: {ann: {anonymous-storage-FURL: 5}}}",
        "storage: {a: {ann: {anonymous-storage-FURL: x}}}",
        "storage: {a: {ann: {5: x}}}",
        f'storage: {{"a\\nb": {{ann: {{anonymous-storage-FURL: "{furl()}"}}}}}}',
        "storage: &a {x: *a}",
        "a: &a [1]\nb: [*a, *a]",
        "storage: !!python/object/apply:os.system [echo]",
        "{{{{",
        "\x00",
        "[" * 5000,
        "? [1]\n: 2",
        "#" + "x" * MAX_SERVERS_FILE,
    ],
)
def test_static_servers_when_malformed_then_are_refused(text: str) -> None:
    with pytest.raises(FormatError):
        parse_static_servers(text.encode())


def test_static_servers_when_not_utf8_then_are_refused() -> None:
    with pytest.raises(FormatError):
        parse_static_servers(b"\xff\xfe\xff")


@given(st.text(max_size=80))
def test_yaml_files_when_given_any_text_then_raise_nothing_but_format_error(text: str) -> None:
    for parse in (parse_static_servers, parse_cache):
        with contextlib.suppress(FormatError, UnicodeEncodeError):
            parse(text.encode())


def test_read_static_servers_when_the_file_is_bad_then_names_it(tmp_path: Path) -> None:
    file = tmp_path / "servers.yaml"
    assert read_static_servers(file) == []
    file.write_text(STATIC)
    assert len(read_static_servers(file)) == 3
    file.write_text("storage: 5")
    with pytest.raises(ConfigError, match=r"servers\.yaml"):
        read_static_servers(file)


def test_cache_when_packed_and_parsed_then_is_the_same() -> None:
    made = [announcement(0), announcement(1, nickname="ü\ud800: [", extra=[1, {"a": None}])]
    parsed = parse_cache(pack_cache(made))
    assert [(one.server_id, one.fields) for one in parsed] == [(one.server_id, one.fields) for one in made]
    assert all(one.signed is None for one in parsed)


def test_cache_when_values_are_shared_then_has_no_aliases() -> None:
    shared = [1, 2]
    parsed = parse_cache(pack_cache([announcement(a=shared, b=shared)]))
    assert parsed[0].fields["b"] == shared


def test_cache_when_an_entry_is_bad_then_the_others_are_read() -> None:
    good = pack_cache([announcement(0)]).decode().strip().removeprefix("[").removesuffix("]")
    for bad in (
        "- 5\n- {}\n- {key_s: 5, ann: {}}\n- {key_s: x, ann: 5}\n- " + good,
        f'[5, {{}}, {{"key_s": 5}}, {good}]',
    ):
        assert [one.fields for one in parse_cache(bad.encode())] == [fields()]


@pytest.mark.parametrize(
    "nickname",
    [
        "nick",
        "\u00e4 \U0001f600",
        "\x7f\x00\x85",
        "\ud800",
        "\u2028\u202e\ufeff",
        "\U000e0001",
        "\\u0041",
        'it\'s: #"x"',
    ],
)
def test_cache_is_yaml_that_any_program_reads_as_we_do(nickname: str) -> None:
    data = pack_cache([announcement(0, nickname=nickname)])
    assert yaml.safe_load(data) == [{"ann": fields(nickname=nickname), "key_s": IDS[0]}]
    assert [one.fields for one in parse_cache(data)] == [fields(nickname=nickname)]


def test_read_cache_when_missing_or_damaged_then_is_empty(tmp_path: Path) -> None:
    file = tmp_path / "cache.yaml"
    assert read_cache(file) == []
    file.write_bytes(b"{{{{")
    assert read_cache(file) == []
    file.write_bytes(pack_cache([announcement()]))
    assert len(read_cache(file)) == 1


def test_file_that_is_a_pipe_is_an_error_and_nobody_waits(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FormatError, match="not a regular file"):
        read_limited(tmp_path / "pipe")
    assert read_cache(tmp_path / "pipe") == []
    with pytest.raises(ConfigError, match="pipe"):
        read_static_servers(tmp_path / "pipe")


def test_cache_when_larger_than_its_limit_then_leaves_out_what_does_not_fit() -> None:
    padding = "p" * (MAX_SERVERS_FILE // 3)
    made = [announcement(index, extra=padding) for index in range(3)]
    parsed = parse_cache(pack_cache([*made, announcement(3)]))
    assert [one.server_id for one in parsed] == [IDS[0], IDS[1], IDS[3]]


def test_announcements_when_they_are_too_many_bytes_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    small, large = announcement(0), announcement(1, extra="x" * 1000)
    assert small.signed is not None
    monkeypatch.setattr(server_files, "MAX_ANNOUNCEMENTS_SIZE", 2 * len(small.signed.message))
    kept = KeptAnnouncements()
    assert kept.offer(small)
    assert not kept.offer(large)
    assert kept.offer(announcement(0, 2))
    assert kept.offer(announcement(1))
    assert len(kept) == 2
