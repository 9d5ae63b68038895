"""The introducers of a node."""

from __future__ import annotations

from pathlib import Path

import pytest

from grid.errors import ConfigError, FormatError
from grid.node.directory import open_directory
from grid.node.introducers import introducer_of_grid, missing_introducer, parse_introducers, read_introducers

FURL = "pb://l2rdxsw4e5nqqud4h4cj7uuaz2s6is2e@tcp:127.0.0.1:39411/ln3ddyjdlt3cxe5uujeubs3ho2cl4jht"


def _node(path: Path, yaml: str | None, config: str = "") -> Path:
    (path / "private").mkdir()
    (path / "tahoe.cfg").write_text(config)
    if yaml is not None:
        (path / "private" / "introducers.yaml").write_text(yaml)
    return path


def test_file_of_1_20_is_read(tmp_path: Path) -> None:
    node = open_directory(_node(tmp_path, f"introducers:\n  default:\n    furl: {FURL}\n"))
    assert {name: furl.to_string() for name, furl in read_introducers(node).items()} == {"default": FURL}


@pytest.mark.parametrize("indent", [(2, 4), (2, 6), (4, 8)])
def test_usual_forms_are_read_as_yaml_reads_them(indent: tuple[int, int]) -> None:
    text = f"introducers:\n{' ' * indent[0]}default:\n{' ' * indent[1]}furl: {FURL}\n"
    assert parse_introducers(text.encode()) == parse_introducers(f"# a comment\n{text}".encode())
    assert [furl.to_string() for furl in parse_introducers(text.encode()).values()] == [FURL]


@pytest.mark.parametrize("yaml", [None, "", "introducers:\n", "introducers: {}\n", "{}\n"])
def test_no_entry_is_no_introducer(tmp_path: Path, yaml: str | None) -> None:
    assert read_introducers(open_directory(_node(tmp_path, yaml))) == {}


def test_legacy_key_is_the_default_introducer(tmp_path: Path) -> None:
    config = f"[client]\nintroducer.furl = {FURL}\n"
    node = open_directory(_node(tmp_path, f"introducers:\n  other:\n    furl: {FURL}\n", config))
    assert sorted(read_introducers(node)) == ["default", "other"]


def test_default_introducer_in_both_places_is_an_error(tmp_path: Path) -> None:
    config = f"[client]\nintroducer.furl = {FURL}\n"
    node = open_directory(_node(tmp_path, f"introducers:\n  default:\n    furl: {FURL}\n", config))
    with pytest.raises(ConfigError, match=r"introducer\.furl"):
        read_introducers(node)


@pytest.mark.parametrize(
    "yaml",
    [
        "[]", "introducers: []", "introducers: text", "introducers: {a: text}", "introducers: {a: {}}",
        "introducers: {a: {furl: 7}}", "introducers: {a: {furl: 'pb://secretsecret'}}", "introducers: {a/b: {furl: x}}",
        "introducers: {'': {furl: x}}", "\tx", "a: &a [*a]",
    ],
)  # fmt: skip
def test_entry_that_cannot_be_used_is_an_error_that_hides_the_furl(tmp_path: Path, yaml: str) -> None:
    with pytest.raises(FormatError):
        parse_introducers(yaml.encode())
    with pytest.raises(ConfigError, match=r"introducers\.yaml") as caught:
        read_introducers(open_directory(_node(tmp_path, yaml)))
    assert "secretsecret" not in str(caught.value)


def test_introducer_of_the_grid_is_the_first_one_or_the_node_itself(tmp_path: Path) -> None:
    other = FURL.replace("39411", "39412")
    yaml = f"introducers:\n  b:\n    furl: {other}\n  a:\n    furl: {FURL}\n"
    directory = _node(tmp_path, yaml)
    own = directory / "private" / "introducer.furl"
    own.write_text(f"{FURL}\n")
    assert introducer_of_grid(open_directory(directory)).to_string() == other
    (directory / "private" / "introducers.yaml").unlink()
    assert introducer_of_grid(open_directory(directory)).to_string() == FURL
    own.write_text("pb://damaged\n")
    with pytest.raises(ConfigError, match=r"introducer\.furl: not a FURL"):
        introducer_of_grid(open_directory(directory))


def test_grid_of_a_node_without_any_introducer_is_unknown(tmp_path: Path) -> None:
    directory = _node(tmp_path, None)
    with pytest.raises(ConfigError, match="knows no introducer"):
        introducer_of_grid(open_directory(directory))
    (directory / "grid-introducer.tac").touch()
    with pytest.raises(ConfigError, match="start this introducer first"):
        introducer_of_grid(open_directory(directory))


def test_node_without_any_introducer_is_told_the_command_that_names_one(tmp_path: Path) -> None:
    node = _node(tmp_path, None, "[storage]\nenabled = true\n")
    said = missing_introducer(open_directory(node)) or ""
    assert f"`grid -d {node} config set client.introducer.furl FURL`" in said and "this server" in said
    (node / "private" / "servers.yaml").write_text("storage: {}\n")
    assert missing_introducer(open_directory(node)), "a list of servers makes no client find this one"
    (node / "tahoe.cfg").write_text(f"[client]\nintroducer.furl = {FURL}\n[storage]\nenabled = true\n")
    assert missing_introducer(open_directory(node)) is None


def test_client_with_a_list_of_servers_needs_no_introducer(tmp_path: Path) -> None:
    node = _node(tmp_path, None, "[storage]\nenabled = false\n")
    assert "this client finds no servers" in (missing_introducer(open_directory(node)) or "")
    (node / "private" / "servers.yaml").write_text("storage: {}\n")
    assert missing_introducer(open_directory(node)) is None
