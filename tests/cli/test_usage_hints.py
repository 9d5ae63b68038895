"""Hints for command lines that cannot be parsed: what to write instead."""

from __future__ import annotations

import pytest

from grid.caps.parsing import parse_cap
from grid.caps.values import UnknownCap
from grid.cli.main import main


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["create-node", "x"], "unknown command 'create-node'; try `grid create storage`"),
        (["lss"], "unknown command 'lss'; did you mean `grid ls`?"),
        (["frobnicate"], "unknown command 'frobnicate'; `grid --help` lists them"),
        (["ls", "-d", "client"], "No such option '-d'; it goes before the command: grid -d NODEDIR COMMAND"),
        (["ls", "--node-directory=client"], "it goes before the command: grid -d NODEDIR COMMAND"),
        (["put", "-u", "http://localhost/"], "it goes before the command: grid --gateway URL COMMAND"),
        (["put", "--node-url", "http://localhost/"], "it goes before the command: grid --gateway URL COMMAND"),
    ],
)
def test_usage_when_wrong_says_what_to_write(
    arguments: list[str], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert hint in said.err


def test_help_says_where_to_begin(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert "`grid up --detach`" in capsys.readouterr().out


def test_help_as_a_command_is_the_option(capsys: pytest.CaptureFixture[str]) -> None:
    for option, command in ((["--help"], ["help"]), (["create", "client", "--help"], ["help", "create", "client"])):
        assert main(option) == 0
        shown = capsys.readouterr().out
        assert main(command) == 0 and shown == capsys.readouterr().out
    assert main(["help", "lss"]) == 2 and "did you mean `grid ls`?" in capsys.readouterr().err


def test_help_on_a_put_says_where_its_encoding_comes_from(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["put", "--help"]) == 0
    assert "shares.needed, shares.happy and shares.total" in " ".join(capsys.readouterr().out.split())


def test_help_on_kinds_of_nodes_is_whole(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["create", "--help"]) == 0
    said = capsys.readouterr().out.partition("Commands:")[2]
    assert "..." not in said
    assert all(f"\n  {kind} " in said for kind in ("client", "introducer", "storage"))


def test_usage_when_a_command_is_a_capability_does_not_repeat_it(capsys: pytest.CaptureFixture[str]) -> None:
    secret = "ubyhxs6zs4tpkuvc2lu5s2zw5q"
    assert main([f"URI:CHK:{secret}:xltrzdg7dmk4boidlqgeh2rfmnwb4b2d3fmxmqbwiy3fsbuc6nfq:3:10:1000"]) == 2
    assert secret not in capsys.readouterr().err


def test_capability_when_cut_off_is_asked_for_whole() -> None:
    found = parse_cap("URI:CHK:ubyhxs6zs4tpkuvc2lu5s2zw5q")
    assert isinstance(found, UnknownCap)
    assert str(found.error).endswith("Was it copied completely?")
