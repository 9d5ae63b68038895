"""Messages when too few servers can store something: how many there are, which are missing, and what helps."""

from __future__ import annotations

from pathlib import Path

import pytest

from grid.caps import parse_cap
from grid.caps.parsing import require_usable
from grid.errors import CapError
from tests.support.memory_command import MemoryCommand


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> MemoryCommand:
    monkeypatch.chdir(tmp_path)
    Path("file").write_bytes(b"x" * 30_000)
    return MemoryCommand(tmp_path / "client", monkeypatch, capsys)


def lose(command: MemoryCommand, count: int) -> None:
    """Take servers away that nobody can know of then."""
    del command.grid.servers[len(command.grid.servers) - count :]


COMMANDS = (
    ("mkdir", "work:new"),
    ("create-alias", "other"),
    ("cp", "file", "work:file"),
    ("backup", "tree", "work:home"),
    ("put", "--mutable", "file"),
)


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda arguments: arguments[0])
def test_command_when_servers_are_missing_hints_at_what_it_can_do(
    command: MemoryCommand, arguments: tuple[str, ...]
) -> None:
    Path("tree").mkdir()
    lose(command, 4)
    said = command.run(*arguments)
    assert said.code != 0
    has_option = arguments[0] == "put"
    assert ("--happy" in said.err) is has_option
    assert ("`grid config set client.shares.happy N`" in said.err) is not has_option
    assert "start them again" in said.err


def test_mutable_write_says_how_many_servers_take_it_how_many_are_needed_and_who_is_missing(
    command: MemoryCommand,
) -> None:
    cap = command.succeed("put", "--mutable", "file")
    lose(command, 4)
    assert command.run("put", "file", cap).err.startswith(
        "grid: only 6 servers can take shares, and 7 are needed; nothing was changed; `grid status`"
    )


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ("3:2:1000", "no file can have 2 shares of which 3 are needed"),
        ("3:999:1000", "no file can have 999 shares of which 3 are needed"),
        ("1:0:1000", "no file can have 0 shares of which 1 is needed"),
    ],
)
def test_capability_with_a_bad_total_is_reported_in_plain_words(numbers: str, words: str) -> None:
    cap = parse_cap(f"URI:CHK:{'a' * 26}:{'a' * 52}:{numbers}")
    with pytest.raises(CapError) as caught:
        require_usable(cap)
    assert words in str(caught.value) and str(caught.value).endswith("Was it copied completely?")
