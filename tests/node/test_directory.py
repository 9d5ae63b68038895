"""Node directories, including those of 1.20, and their secrets."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from grid.errors import ConfigError
from grid.node.create import NewClient, create_client
from grid.node.directory import NodeKind, open_directory


def _tahoe_node(path: Path, role: str = "client", text: str = "[node]\nnickname = old\n") -> Path:
    (path / "private").mkdir(parents=True)
    (path / f"tahoe-{role}.tac").write_text("import sys\nsys.exit(1)\n")
    (path / "tahoe.cfg").write_text(text)
    return path


def test_tahoe_directory_is_opened_as_what_its_tac_file_says(tmp_path: Path) -> None:
    client = open_directory(_tahoe_node(tmp_path / "c"))
    introducer = open_directory(_tahoe_node(tmp_path / "i", "introducer"))
    assert (client.kind, client.settings.nickname) == (NodeKind.CLIENT, "old")
    assert introducer.kind is NodeKind.INTRODUCER


def test_grid_cfg_is_preferred_to_tahoe_cfg_for_the_keys_that_are_its_own(tmp_path: Path) -> None:
    _tahoe_node(tmp_path / "c")
    (tmp_path / "c" / "grid.cfg").write_text("# mine\n[node]\nnickname = old\n[client]\ntransport = http\n")
    assert open_directory(tmp_path / "c").settings.client.transport == "http"


@pytest.mark.parametrize("text", ["[node]\nnickname = new\n", "[client]\nshares.happy = 3\n", "[node]\nnickname = %\n"])
def test_configuration_files_when_they_contradict_each_other_are_refused(tmp_path: Path, text: str) -> None:
    _tahoe_node(tmp_path / "c", text=text)
    (tmp_path / "c" / "grid.cfg").write_text("[node]\nnickname = old\n")
    with pytest.raises(ConfigError, match="ln -sf"):
        open_directory(tmp_path / "c")


def test_configuration_when_a_program_replaces_the_file_of_1_20_is_what_it_wrote(tmp_path: Path) -> None:
    create_client(tmp_path / "c", NewClient())
    written = tmp_path / "c" / "tahoe.cfg.new"
    written.write_text("[node]\nnickname = written by another\n")
    written.replace(tmp_path / "c" / "tahoe.cfg")
    assert open_directory(tmp_path / "c").settings.nickname == "written by another"


def test_configuration_file_alone_makes_a_client(tmp_path: Path) -> None:
    (tmp_path / "grid.cfg").write_text("")
    assert open_directory(tmp_path).kind is NodeKind.CLIENT


def test_node_without_a_configuration_file_has_the_defaults(tmp_path: Path) -> None:
    (tmp_path / "tahoe-client.tac").touch()
    assert open_directory(tmp_path).settings.client.needed == 3


@pytest.mark.parametrize("name", ["missing", "file", "empty"])
def test_path_that_is_not_a_node_directory_is_a_config_error(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match=f"{name}.*`grid create`"):
        open_directory(tmp_path / name)


def test_secrets_are_created_once_and_private_to_the_owner(tmp_path: Path) -> None:
    node = open_directory(_tahoe_node(tmp_path / "c"))
    master, convergence = node.lease_master(), node.convergence_secret()
    again = open_directory(tmp_path / "c")
    assert (again.lease_master(), again.convergence_secret()) == (master, convergence)
    assert len(master) == len(convergence) == 32
    assert master != convergence
    for name in ("secret", "convergence"):
        assert stat.S_IMODE((node.private / name).stat().st_mode) == 0o600


def test_secrets_of_1_20_are_read_as_they_are(tmp_path: Path) -> None:
    node = open_directory(_tahoe_node(tmp_path / "c"))
    (node.private / "secret").write_text("aaaqeayeaudaocajbifqydiob4ibceqtcqkrmfyydenbwha5dypq\n")
    (node.private / "convergence").write_text("")
    assert node.lease_master() == bytes(range(32))
    assert node.convergence_secret() == b""


@pytest.mark.parametrize("text", ["", "aaaa", "not base32!", "a" * 60])
def test_invalid_lease_master_is_an_error_without_its_text(tmp_path: Path, text: str) -> None:
    node = open_directory(_tahoe_node(tmp_path / "c"))
    (node.private / "secret").write_text(text)
    with pytest.raises(ConfigError, match="private/secret") as caught:
        node.lease_master()
    assert not text or text not in str(caught.value)


def test_sequence_number_grows_with_each_use(tmp_path: Path) -> None:
    node = open_directory(_tahoe_node(tmp_path / "c"))
    assert [node.next_sequence_number() for _ in range(3)] == [1, 2, 3]
    assert (node.path / "announcement-seqnum").read_text() == "3\n"
    (node.path / "announcement-seqnum").write_text("-4")
    with pytest.raises(ConfigError, match="announcement-seqnum"):
        node.next_sequence_number()


def test_storage_path_is_relative_to_the_node_unless_absolute(tmp_path: Path) -> None:
    relative = open_directory(_tahoe_node(tmp_path / "r"))
    absolute = open_directory(_tahoe_node(tmp_path / "a", text="[storage]\nstorage_dir = /srv/shares\n"))
    assert relative.storage_path == tmp_path / "r" / "storage"
    assert absolute.storage_path == Path("/srv/shares")
