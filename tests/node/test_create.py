"""Creating node directories."""

from __future__ import annotations

import configparser
import os
import re
import stat
from pathlib import Path

import pytest

from grid.errors import ConfigError
from grid.node.create import (
    Listening,
    NewClient,
    NewStorage,
    check_new,
    create_client,
    create_introducer,
    create_storage,
)
from grid.node.directory import NodeKind, open_directory
from grid.node.introducers import read_introducers

FURL = "pb://l2rdxsw4e5nqqud4h4cj7uuaz2s6is2e@tcp:127.0.0.1:39411/ln3ddyjdlt3cxe5uujeubs3ho2cl4jht"
LISTENING = Listening(port="tcp:4000:interface=127.0.0.1", location="tcp:127.0.0.1:4000")


def test_new_storage_node_opens_with_what_was_asked_for(tmp_path: Path) -> None:
    new = NewStorage(
        listening=LISTENING, nickname="50% full", introducer_furl=FURL, reserved_space="2M", directory="/s"
    )
    create_storage(tmp_path / "deep" / "s", new)
    node = open_directory(tmp_path / "deep" / "s")
    assert node.kind is NodeKind.CLIENT
    assert node.settings.nickname == "50% full"
    assert node.settings.tub_port == (LISTENING.port,)
    assert node.settings.tub_location == (LISTENING.location,)
    assert node.settings.storage.enabled
    assert node.settings.storage.reserved_space == 2 * 10**6
    assert node.storage_path == Path("/s")
    assert FURL in (node.private / "introducers.yaml").read_text()


def test_new_client_neither_listens_nor_stores(tmp_path: Path) -> None:
    create_client(tmp_path / "c", NewClient(introducer_furl=FURL, needed=2, happy=3, total=4))
    node = open_directory(tmp_path / "c")
    assert node.settings.tub_port is None
    assert not node.settings.storage.enabled
    assert (node.settings.client.needed, node.settings.client.happy, node.settings.client.total) == (2, 3, 4)


def test_new_introducer_is_one(tmp_path: Path) -> None:
    create_introducer(tmp_path / "i", LISTENING)
    assert open_directory(tmp_path / "i").kind is NodeKind.INTRODUCER


def test_new_node_is_closed_to_others(tmp_path: Path) -> None:
    create_client(tmp_path / "c", NewClient(introducer_furl=FURL))
    assert stat.S_IMODE((tmp_path / "c").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "c" / "private").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "c" / "private" / "introducers.yaml").stat().st_mode) == 0o600


def test_directory_that_is_taken_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    with pytest.raises(ConfigError, match="not empty"):
        create_client(tmp_path, NewClient())
    with pytest.raises(ConfigError, match="mine"):
        create_client(tmp_path / "mine", NewClient())
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize(
    ("needed", "happy", "total", "words"),
    [
        (0, 1, 1, "needed (0) must be at least 1"),
        (3, 2, 4, "needed (3) must not be larger than happy (2)"),
        (1, 5, 4, "happy (5) must not be larger than total (4)"),
        (1, 1, 257, "total (257) must not be larger than 256"),
        (5, 7, 3, "needed (5) must not be larger than total (3)"),
    ],
)
def test_client_with_impossible_share_numbers_is_refused(
    tmp_path: Path, needed: int, happy: int, total: int, words: str
) -> None:
    with pytest.raises(ConfigError, match=re.escape(words)):
        create_client(tmp_path / "c", NewClient(needed=needed, happy=happy, total=total))
    assert not (tmp_path / "c").exists()


def test_invalid_furl_is_refused_and_not_shown(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="introducer") as caught:
        create_client(tmp_path / "c", NewClient(introducer_furl="pb://short@tcp:h:1/sekrit"))
    assert "sekrit" not in str(caught.value)
    assert not (tmp_path / "c").exists()


def test_value_with_a_line_break_cannot_add_a_key(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="line break"):
        create_introducer(tmp_path / "i", LISTENING, nickname="a\ntub.port = 1")


def test_new_node_has_its_settings_where_programs_for_1_20_look_for_them(tmp_path: Path) -> None:
    create_client(tmp_path / "c", NewClient(introducer_furl=FURL, happy=3, needed=2))
    create_storage(tmp_path / "s", NewStorage(listening=LISTENING))
    create_introducer(tmp_path / "i", LISTENING)
    for name in ("c", "s", "i"):
        assert os.readlink(tmp_path / name / "grid.cfg") == "tahoe.cfg"
    parser = configparser.ConfigParser()
    parser.read(tmp_path / "c" / "tahoe.cfg")
    assert parser["client"]["shares.happy"] == "3"
    assert "durability" not in (tmp_path / "s" / "tahoe.cfg").read_text()


@pytest.mark.parametrize("hint", ["tcp:[2001:db8::1]:9", "tcp:grid.example.org:9,tor:abc.onion:9", "*:9"])
@pytest.mark.parametrize("name", ["introducer", "ends:", "#{}&*!|>'\"%@`"])
def test_introducer_with_odd_characters_is_read_as_it_was_written(hint: str, name: str, tmp_path: Path) -> None:
    furl = f"pb://l2rdxsw4e5nqqud4h4cj7uuaz2s6is2e@{hint}/{name}"
    create_client(tmp_path / "c", NewClient(introducer_furl=furl))
    assert [each.to_string() for each in read_introducers(open_directory(tmp_path / "c")).values()] == [furl]


def test_check_of_a_new_node_leaves_nothing_behind(tmp_path: Path) -> None:
    check_new(tmp_path / "new", NewClient())
    assert not (tmp_path / "new").exists()
    (tmp_path / "empty").mkdir()
    check_new(tmp_path / "empty", NewStorage(listening=LISTENING))
    assert (tmp_path / "empty").exists()
    with pytest.raises(ConfigError, match="reserved_space"):
        check_new(tmp_path / "new", NewStorage(listening=LISTENING, reserved_space="lots"))
    with pytest.raises(ConfigError, match="not empty"):
        check_new(tmp_path, NewClient())


def test_numbers_of_an_invitation_may_have_happy_below_needed(tmp_path: Path) -> None:
    create_client(tmp_path / "c", NewClient(needed=3, happy=1, total=4, is_invited=True))
    assert open_directory(tmp_path / "c").settings.client.happy == 1
    with pytest.raises(ConfigError, match="must not be larger"):
        create_client(tmp_path / "d", NewClient(needed=3, happy=1, total=4))
    with pytest.raises(ConfigError, match="must not be larger"):
        create_client(tmp_path / "d", NewClient(needed=3, happy=5, total=4, is_invited=True))


def test_storage_node_keeps_the_numbers_that_it_is_given(tmp_path: Path) -> None:
    create_storage(tmp_path / "s", NewStorage(listening=LISTENING, encoding=(2, 3, 4)))
    client = open_directory(tmp_path / "s").settings.client
    assert (client.needed, client.happy, client.total) == (2, 3, 4)


def test_new_client_with_several_introducers_knows_each_once(tmp_path: Path) -> None:
    other = FURL.replace("l2rd", "aaaa")
    create_client(tmp_path / "c", NewClient(introducer_furl=FURL, more_introducers=(other, FURL)))
    found = read_introducers(open_directory(tmp_path / "c"))
    assert {name: furl.to_string() for name, furl in found.items()} == {"default": FURL, "introducer2": other}
    with pytest.raises(ConfigError, match="cannot be used"):
        create_client(tmp_path / "d", NewClient(introducer_furl=FURL, more_introducers=("pb://x",)))
    assert not (tmp_path / "d").exists()
