"""Direct access or a gateway, as the command line and the environment choose."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import grid

CAP = "URI:DIR2:aaaaaaaaaaaaaaaaaaaaaaaaaa:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbba"
NOBODY = "http://127.0.0.1:1/"


def test_option_goes_before_the_variable_and_none_is_direct(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    outcome = grid("-d", missing, "--gateway", NOBODY, "ls", CAP, GRID_GATEWAY="http://127.0.0.1:2/")
    assert outcome.code == 5
    assert "127.0.0.1:1 cannot be reached" in outcome.err
    outcome = grid("-d", missing, "ls", CAP, GRID_GATEWAY="http://127.0.0.1:2/")
    assert "127.0.0.1:2 cannot be reached" in outcome.err
    outcome = grid("-d", missing, "--gateway", "none", "ls", CAP, GRID_GATEWAY=NOBODY)
    assert "does not exist: name another with -d" in outcome.err
    assert not missing.exists()


def test_node_is_the_gateway_of_the_client_directory(tmp_path: Path) -> None:
    outcome = grid("-d", tmp_path, "--gateway", "node", "ls", CAP)
    assert outcome.code == 1
    assert "node.url does not exist" in outcome.err
    (tmp_path / "node.url").write_text(NOBODY + "\n")
    outcome = grid("-d", tmp_path, "--gateway", "node", "ls", CAP)
    assert "127.0.0.1:1 cannot be reached" in outcome.err


def test_error_when_the_gateway_is_not_there_has_no_capability_in_it(tmp_path: Path) -> None:
    for arguments in (
        ["ls", CAP],
        ["mkdir", f"{CAP}/a"],
        ["check", CAP],
        ["manifest", CAP],
        ["cp", "-r", CAP, str(tmp_path)],
    ):
        outcome = grid("-d", tmp_path, "--gateway", NOBODY, *arguments, GRID_DEBUG="1")
        assert outcome.code == 5
        assert "aaaaaaaa" not in outcome.err


@pytest.mark.parametrize("url", ["http://user:letmein@127.0.0.1:1/", "127.0.0.1:1", "http://127.0.0.1:1/?a"])
def test_url_that_cannot_be_a_gateway_is_refused(tmp_path: Path, url: str) -> None:
    outcome = grid("-d", tmp_path, "--gateway", url, "ls", CAP)
    assert outcome.code == 2
    assert "letmein" not in outcome.err


def test_plain_http_to_another_machine_comes_with_a_warning(tmp_path: Path) -> None:
    outcome = grid("-d", tmp_path, "--gateway", "http://host.invalid:1/", "ls", CAP)
    assert "grid: warning: everyone between here and host.invalid" in outcome.err
    assert outcome.code == 5


def test_what_only_a_direct_client_can_do_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 100)
    for option in (["--needed", "1"], ["--unique"]):
        outcome = grid("-d", tmp_path, "--gateway", NOBODY, "put", *option, tmp_path / "file")
        assert outcome.code == 2
        assert "work only without --gateway" in outcome.err


def test_alias_without_a_client_directory_to_keep_it_in_is_refused(tmp_path: Path) -> None:
    outcome = grid("-d", tmp_path / "missing", "--gateway", NOBODY, "create-alias", "a")
    assert outcome.code == 1
    assert "aliases are kept in a client directory" in outcome.err


def test_invalid_certificates_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no certificate")
    for name, words in (("file", "no certificate in PEM"), ("missing", "No such file")):
        options = ["--gateway", "https://127.0.0.1:1/", "--gateway-ca", str(tmp_path / name)]
        outcome = grid("-d", tmp_path, *options, "ls", CAP)
        assert outcome.code == 1
        assert words in outcome.err
