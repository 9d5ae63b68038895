"""Files that are written completely or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from grid.errors import ConfigError
from grid.node.files import (
    expand_home,
    make_private_directory,
    read_or_create,
    read_text,
    write_atomically,
    write_if_missing,
)


def test_written_file_has_the_data_and_the_mode_and_leaves_nothing_else(tmp_path: Path) -> None:
    write_atomically(tmp_path / "a", b"one")
    write_atomically(tmp_path / "a", b"two")
    assert (tmp_path / "a").read_bytes() == b"two"
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_failed_write_leaves_the_old_file_and_no_debris(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(OSError, match="directory"):
        write_atomically(tmp_path / "a", b"one")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_second_writer_of_a_missing_file_loses(tmp_path: Path) -> None:
    assert write_if_missing(tmp_path / "a", b"one")
    assert not write_if_missing(tmp_path / "a", b"two")
    assert (tmp_path / "a").read_bytes() == b"one"
    assert read_or_create(tmp_path / "a", lambda: "three") == "one"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_unreadable_file_is_a_config_error_naming_it(tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    (tmp_path / "big").write_bytes(bytes(1024 * 1024 + 1))
    (tmp_path / "folder").mkdir()
    assert read_text(tmp_path / "missing") is None
    for name in ("bytes", "big", "folder"):
        with pytest.raises(ConfigError, match=name):
            read_text(tmp_path / name)


def test_pipe_and_device_are_config_errors_and_nobody_waits(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "device").symlink_to(os.devnull)
    for name in ("pipe", "device"):
        with pytest.raises(ConfigError, match=rf"{name}: not a regular file"):
            read_text(tmp_path / name)


def test_link_to_nothing_is_a_config_error_and_not_a_missing_file(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "unmounted" / "grid.cfg")
    with pytest.raises(ConfigError, match="link: a dangling symbolic link"):
        read_text(tmp_path / "link")


def test_home_of_somebody_unknown_is_a_config_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert expand_home("~/x") == Path("/home/me/x")
    assert expand_home("a/~b") == Path("a/~b")
    with pytest.raises(ConfigError, match="~nobody-of-this-name/x"):
        expand_home("~nobody-of-this-name/x")


def test_private_directory_is_closed_to_others_and_an_old_one_is_left_alone(tmp_path: Path) -> None:
    make_private_directory(tmp_path / "x" / "y")
    assert stat.S_IMODE((tmp_path / "x" / "y").stat().st_mode) == 0o700
    (tmp_path / "z").mkdir(mode=0o755)
    make_private_directory(tmp_path / "z")
    assert stat.S_IMODE((tmp_path / "z").stat().st_mode) == 0o755
