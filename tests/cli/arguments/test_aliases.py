"""The alias file: compatible with 1.20 both ways, and no edit loses anything in it."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.caps import DirectoryCap, parse_cap
from grid.cli.arguments.aliases import add_alias, alias_cap, check_new_name, read_aliases
from grid.errors import CapError, ConfigError, GridError
from grid.node.directory import NodeDirectory, open_directory
from grid.node.own_files import parse_aliases
from tests.cli.command import grid

DIRECTORY = "URI:DIR2-LIT:gmzdumj2mewdcnr2kvjesosmjfkdu33oo53wgm3enuwdaormgi5hw7jmfq"


@pytest.fixture
def directory(tmp_path: Path) -> NodeDirectory:
    """A client directory."""
    introducer = "pb://" + "a" * 32 + "@tcp:127.0.0.1:1/" + "b" * 32
    made = grid("create", "client", "--introducer", introducer, tmp_path / "client")
    assert made.code == 0, made.err
    return open_directory(tmp_path / "client")


def _cap() -> DirectoryCap:
    cap = parse_cap(DIRECTORY)
    assert isinstance(cap, DirectoryCap)
    return cap


def test_lines_when_parsed_then_comments_and_invalid_aliases_are_skipped() -> None:
    text = "# a: b\n\n  work :  URI:1  \nno alias\nwork: URI:2\nü: URI:3"
    assert parse_aliases(text) == {"work ": "URI:1", "work": "URI:2", "ü": "URI:3"}


@given(text=st.text())
def test_file_when_it_is_any_text_then_is_parsed(text: str) -> None:
    assert all(":" not in name for name in parse_aliases(text))


def test_alias_when_added_then_the_rest_of_the_file_stays_and_only_we_can_read_it(directory: NodeDirectory) -> None:
    file = directory.private / "aliases"
    file.write_text("# kept\nold: URI:x")
    add_alias(directory, "new", _cap())
    assert file.read_text() == f"# kept\nold: URI:x\nnew: {DIRECTORY}\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert read_aliases(directory) == {"old": "URI:x", "new": DIRECTORY}


def test_aliases_when_added_by_several_at_once_then_none_is_lost(directory: NodeDirectory) -> None:
    names = [f"name{number}" for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: add_alias(directory, name, _cap()), names))
    assert sorted(read_aliases(directory)) == sorted(names)


def test_alias_when_its_name_was_taken_meanwhile_then_is_refused_and_the_file_stays(directory: NodeDirectory) -> None:
    add_alias(directory, "new", _cap())
    before = (directory.private / "aliases").read_bytes()
    with pytest.raises(GridError, match="already exists"):
        add_alias(directory, "new", _cap())
    assert (directory.private / "aliases").read_bytes() == before


def test_file_when_it_is_a_link_then_its_target_is_replaced(directory: NodeDirectory, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("old: URI:x\n")
    (directory.private / "aliases").symlink_to(tmp_path / "elsewhere")
    add_alias(directory, "new", _cap())
    assert (directory.private / "aliases").is_symlink()
    assert (tmp_path / "elsewhere").read_text() == f"old: URI:x\nnew: {DIRECTORY}\n"


def test_list_when_an_alias_leads_nowhere_then_the_others_are_shown_and_it_is_named(directory: NodeDirectory) -> None:
    (directory.private / "aliases").write_text(f"a\x1b[31m: {DIRECTORY}\nbad\x1b[2J: URI:DIR2:junk\nz: {DIRECTORY}\n")
    shown = grid("-d", directory.path, "list-aliases")
    assert shown.code == 2
    listed = shown.out.decode()
    assert "\x1b" not in listed + shown.err
    assert listed.count(DIRECTORY) == 2
    assert "'bad [2J'" in shown.err and "junk" not in shown.err


def test_aliases_when_there_is_an_old_root_cap_then_it_is_the_default_unless_the_file_says_otherwise(
    directory: NodeDirectory,
) -> None:
    (directory.private / "root_dir.cap").write_text("URI:old\n")
    assert read_aliases(directory) == {"tahoe": "URI:old"}
    (directory.private / "aliases").write_text("tahoe: URI:new\n")
    assert read_aliases(directory) == {"tahoe": "URI:new"}


def test_aliases_when_the_file_is_not_text_then_names_it(directory: NodeDirectory) -> None:
    (directory.private / "aliases").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="aliases"):
        read_aliases(directory)


@pytest.mark.parametrize("name", ["", "a b", "a:b", "a\nb", "#a", "a\u2028b"])
def test_name_when_it_would_not_survive_the_file_then_is_refused(name: str) -> None:
    with pytest.raises(GridError):
        check_new_name(name, {})


def test_name_when_it_has_a_colon_at_its_end_or_is_in_use_then_loses_it_or_is_refused() -> None:
    assert check_new_name("work:", {}) == "work"
    with pytest.raises(GridError, match="already exists"):
        check_new_name("work", {"work": ""})


def test_alias_when_it_is_for_no_directory_then_is_refused_by_name() -> None:
    assert alias_cap("a", DIRECTORY) == _cap()
    for text in ("URI:LIT:onwwc3dm", "garbage", ""):
        with pytest.raises(CapError, match="'a'"):
            alias_cap("a", text)
