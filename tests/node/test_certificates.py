"""The certificates that a storage node announces."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from grid.errors import ConfigError
from grid.node.certificates import read_certificates
from grid.node.directory import NodeDirectory, open_directory

CERTIFICATE = {"certificate": '{"expires":"2030-01-02T03:04:05+00:00"}', "signature": "abcd"}


def node(path: Path, *, switched_on: bool = True) -> NodeDirectory:
    (path / "grid.cfg").write_text(
        f"[storage]\ngrid_management = {switched_on}\n[grid_manager_certificates]\nmine = mine.cert\n"
    )
    return open_directory(path)


def test_certificate_that_the_configuration_names_is_read_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "mine.cert").write_text(json.dumps(CERTIFICATE, indent=4))
    assert read_certificates(node(tmp_path)) == (CERTIFICATE,)


def test_certificates_when_grid_management_is_off_are_none(tmp_path: Path) -> None:
    assert read_certificates(node(tmp_path, switched_on=False)) == ()


@pytest.mark.parametrize("text", [None, "", "[]", "{", '{"certificate": "x"}', '{"certificate": "x", "signature": 5}'])
def test_file_without_a_certificate_is_an_error_naming_its_key(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "mine.cert").write_text(text)
    with pytest.raises(ConfigError, match=r"section \[grid_manager_certificates\], key mine: "):
        read_certificates(node(tmp_path))
