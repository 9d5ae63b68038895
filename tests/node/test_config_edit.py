"""Changing one key of a configuration file, and nothing else in it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.errors import ConfigError
from grid.node.config_edit import split_name, values_in, with_value

TEXT = """\
# Configuration
[node]
# what others see
nickname = attic
web.port : 3456

; shares
[client]
shares.needed = 3
# the end of it

[storage]
enabled = false
"""


@pytest.mark.parametrize(
    ("name", "value", "old", "new"),
    [
        ("node.nickname", "cellar", "nickname = attic", "nickname = cellar"),
        ("node.web.port", "80", "web.port : 3456", "web.port : 80"),
        ("client.shares.happy", "5", "shares.needed = 3", "shares.needed = 3\nshares.happy = 5"),
        ("node.nickname", "100 % # = [x]", "nickname = attic", "nickname = 100 %% # = [x]"),
        ("storage.enabled", None, "enabled = false\n", ""),
        ("tor.enabled", "yes", "enabled = false\n", "enabled = false\n\n[tor]\nenabled = yes\n"),
    ],
)
def test_key_when_changed_leaves_all_other_lines_as_they_are(name: str, value: str | None, old: str, new: str) -> None:
    changed = with_value(TEXT, "F", name, value)
    assert changed == TEXT.replace(old, new)
    assert values_in(changed, "F").get(name) == value


def test_key_in_an_empty_file_gets_a_section() -> None:
    assert with_value("", "F", "node.nickname", "me") == "[node]\nnickname = me\n"


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("client.shares.hapy", "5", "there is no key 'client.shares.hapy'; did you mean client.shares.happy?"),
        ("nicknam", "x", "there is no key 'nicknam'; did you mean node.nickname?"),
        ("port", "x", "several sections have a key port: write s3.port or sftpd.port"),
        ("zzz", "x", "there is no key 'zzz'; `grid config list --all` shows them"),
        ("client.shares.happy", "50", "F: section [client], key shares.happy: 50 is more than shares.total, 10"),
        ("node.nickname", "a\nb", "a value is one line"),
        ("node.nickname", "x" * 5000, "a value is one line"),
        ("client.pack", "perhaps", "F: section [client], key pack: "),
    ],
)
def test_what_no_node_could_use_is_refused(name: str, value: str, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        with_value(TEXT, "F", name, value)
    assert str(refused.value).startswith(message)


def test_key_that_is_there_twice_is_refused() -> None:
    with pytest.raises(ConfigError, match="edit it by hand"):
        with_value("[node]\nnickname = a\nnickname = b\n", "F", "node.nickname", "c")


def test_unknown_key_can_be_removed() -> None:
    assert with_value("[node]\nnicknam = a\nweb.port = 1\n", "F", "node.nicknam", None) == "[node]\nweb.port = 1\n"


def test_keys_of_plugins_are_split_behind_their_section() -> None:
    assert split_name("storageclient.plugins.x-v1.a.b") == ("storageclient.plugins.x-v1", "a.b")
    assert split_name("grid_managers.alice") == ("grid_managers", "alice")


def test_section_is_found_if_only_one_has_the_key() -> None:
    assert split_name("web.allowed_hosts") == ("node", "web.allowed_hosts")
    assert split_name("Nickname") == ("node", "nickname")
    assert split_name("storage.plugins") == ("storage", "plugins")


@given(value=st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=40))
def test_any_printable_nickname_comes_back(value: str) -> None:
    try:
        changed = with_value(TEXT, "F", "node.nickname", value)
    except ConfigError:
        assert not value.isprintable() or not value.strip()
        return
    assert values_in(changed, "F")["node.nickname"] == value.strip()


@given(text=st.text(max_size=200))
def test_no_text_is_changed_beyond_the_key(text: str) -> None:
    try:
        changed = with_value(text, "F", "node.nickname", "x")
    except ConfigError:
        return
    assert {**values_in(text, "F"), "node.nickname": "x"} == values_in(changed, "F")
