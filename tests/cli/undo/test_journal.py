"""The journal: what survives a kill, what is dropped when it is full, and what is refused."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from grid.caps import DirectoryCap, UnknownChild, parse_cap
from grid.cli.undo import journal as journal_module
from grid.cli.undo.changes import Change, ChangedLink, pack_change, parse_change
from grid.cli.undo.journal import MAX_CHANGES, MAX_LINKS, Journal, Recorder, journal_path
from grid.directory.pack import Child
from grid.errors import ConfigError, FormatError

DIRECTORY = parse_cap("URI:DIR2:" + "a" * 26 + ":" + "a" * 51 + "q")
FILE = parse_cap("URI:LIT:mfra")
assert isinstance(DIRECTORY, DirectoryCap)


def link(name: str = "name") -> ChangedLink:
    old = Child(target=FILE, metadata={"mtime": 5})  # type: ignore[arg-type]
    return ChangedLink(directory=DIRECTORY, name=name, shown=f"work:{name}", old=old, new=None)  # type: ignore[arg-type]


CHANGE = Change(number=0, time=1_000_000_000.5, command="rm", client="/client", links=(link(),))


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "state" / "grid" / "undo")


def test_journal_is_below_the_state_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert journal_path() == Path("/state/grid/undo")
    monkeypatch.setenv("HOME", "/home/me")
    for text in ("", "relative"):
        monkeypatch.setenv("XDG_STATE_HOME", text)
        assert journal_path() == Path("/home/me/.local/state/grid/undo")


def test_change_comes_back_as_it_was_written(journal: Journal) -> None:
    unknown = UnknownChild(write=b"future:rw", read=b"ro.future:ro")
    given = evolve(CHANGE, links=[evolve(link(), old=Child(target=unknown), new=Child(target=DIRECTORY))])  # type: ignore[arg-type]
    assert journal.changes() == []
    assert (journal.begin(CHANGE), journal.begin(given)) == (1, 2)
    journal.add(evolve(CHANGE, number=1, links=(link("more"),)))
    first, second = journal.changes()
    assert first == evolve(CHANGE, number=1, links=[link(), link("more")])
    assert second == evolve(given, number=2)
    journal.drop(first)
    assert [change.number for change in journal.changes()] == [2]


def test_journal_is_private_to_its_owner(journal: Journal) -> None:
    journal.begin(CHANGE)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in journal.path.parent.iterdir()}
    assert modes == {"undo": 0o600, "undo.lock": 0o600}
    journal.drop(*journal.changes())
    assert stat.S_IMODE(journal.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(journal.path.parent.stat().st_mode) == 0o700


def test_oldest_changes_go_when_there_are_too_many(journal: Journal) -> None:
    lines = [pack_change(evolve(CHANGE, number=number)) for number in range(1, MAX_CHANGES + 1)]
    journal.path.parent.mkdir(parents=True)
    journal.path.write_bytes(b"".join(lines))
    journal.path.chmod(0o600)
    for _ in range(3):
        journal.begin(CHANGE)
    assert [change.number for change in journal.changes()] == list(range(4, MAX_CHANGES + 4))


def test_oldest_changes_go_when_they_take_too_much_room(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "MAX_JOURNAL", 3 * len(pack_change(evolve(CHANGE, number=1))))
    for _ in range(5):
        journal.begin(CHANGE)
    assert [change.number for change in journal.changes()] == [3, 4, 5]
    journal.begin(evolve(CHANGE, command="x" * journal_module.MAX_JOURNAL))
    assert journal.changes() == []


@pytest.mark.parametrize("kept", [0, 1, 40])
def test_line_that_a_kill_tore_is_dropped(journal: Journal, kept: int) -> None:
    journal.begin(CHANGE)
    line = pack_change(evolve(CHANGE, number=2))
    with journal.path.open("ab") as file:
        file.write(line[:kept] if kept != 40 else line[:-1])
    assert [change.number for change in journal.changes()] == [1]
    assert journal.begin(CHANGE) == 2
    assert [change.number for change in journal.changes()] == [1, 2]


KILLED = """
import os, signal, sys
sys.path.insert(0, {root!r})
from pathlib import Path
from tests.cli.undo.test_journal import CHANGE, Journal
from grid.node import files
journal = Journal(Path({path!r}))
replace = Path.replace
def kill(*arguments):
    os.kill(os.getpid(), signal.SIGKILL)
Path.replace = kill
journal.drop(journal.changes()[0])
"""


def test_journal_when_its_writer_is_killed_is_as_before(journal: Journal) -> None:
    for _ in range(3):
        journal.begin(CHANGE)
    root = str(Path(__file__).parents[3])
    done = subprocess.run([sys.executable, "-c", KILLED.format(root=root, path=str(journal.path))], check=False)
    assert done.returncode == -signal.SIGKILL
    assert [change.number for change in journal.changes()] == [1, 2, 3]
    assert journal.begin(CHANGE) == 4  # The lock of a process that is gone is nobody's.


def _begin(path: Path, count: int) -> None:
    for _ in range(count):
        Journal(path).begin(CHANGE)


def test_changes_of_processes_at_the_same_time_are_all_kept(journal: Journal) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_begin, args=(journal.path, 20)) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [change.number for change in journal.changes()] == list(range(1, 41))


def test_journal_that_is_locked_too_long_is_refused(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "LOCK_WAIT_S", 0)
    with journal._locked(), pytest.raises(ConfigError, match="keeps the journal locked"):
        journal.begin(CHANGE)


def _line(**changed: object) -> bytes:
    value = json.loads(pack_change(evolve(CHANGE, number=1)))
    return json.dumps({**value, **changed}).encode()


def _link_line(**changed: object) -> bytes:
    value = json.loads(pack_change(evolve(CHANGE, number=1)))
    return _line(links=[{**value["links"][0], **changed}])


HOSTILE = {
    "text": b"hello",
    "not UTF-8": b'{"number": 1, "\xff": 2}',
    "a number": b"1",
    "deep": b"[" * 100_000,
    "long number": b'{"number": ' + b"9" * 10_000 + b"}",
    "number below 1": _line(number=-1),
    "a truth": _line(number=True),
    "no time": _line(time=None),
    "a time that is none": _line(time=float("nan")),
    "no text": _line(command=["rm"]),
    "a long text": _line(client="x" * 100_000),
    "no links": _line(links={}),
    "a link that is none": _line(links=[1]),
    "a capability of a file": _link_line(directory="URI:LIT:mfra"),
    "a capability that only reads": _link_line(directory=DIRECTORY.read_cap().to_string()),
    "no capability": _link_line(directory="URI:DIR2:"),
    "a name that is none": _link_line(name="\ud800"),
    "an entry that is none": _link_line(old=["filenode"]),
    "metadata that is none": _link_line(old=["filenode", {"ro_uri": "URI:LIT:mfra", "metadata": 5}]),
    "large metadata": _link_line(old=["filenode", {"ro_uri": "URI:LIT:mfra", "metadata": {"a": "x" * 10_000_000}}]),
}


@pytest.mark.parametrize("line", HOSTILE.values(), ids=HOSTILE)
def test_invalid_line_of_the_journal_is_refused_and_not_quoted(journal: Journal, line: bytes) -> None:
    with pytest.raises(FormatError) as refused:
        parse_change(line)
    assert "URI:" not in str(refused.value)
    journal.path.parent.mkdir(parents=True)
    journal.path.write_bytes(line + b"\n")
    journal.path.chmod(0o600)
    with pytest.raises(ConfigError, match=r"is not a journal of changes: .*; remove it to start over"):
        journal.changes()


@given(place=st.integers(0, 500), bit=st.integers(0, 7))
def test_line_with_a_flipped_bit_is_a_change_or_refused(place: int, bit: int) -> None:
    line = bytearray(pack_change(evolve(CHANGE, number=1)))
    line[place % len(line)] ^= 1 << bit
    try:
        assert isinstance(parse_change(bytes(line)), Change)
    except FormatError:
        pass


def test_file_that_is_not_ours_alone_is_refused(journal: Journal, tmp_path: Path) -> None:
    journal.begin(CHANGE)
    journal.path.chmod(0o640)
    for use in (journal.changes, lambda: journal.begin(CHANGE)):
        with pytest.raises(ConfigError, match="others can read or change it"):
            use()
    journal.path.unlink()
    os.mkfifo(journal.path)
    with pytest.raises(ConfigError, match="not a regular file"):
        journal.changes()
    journal.path.unlink()
    (tmp_path / "elsewhere").write_bytes(b"")
    journal.path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="symbolic links"):
        journal.begin(CHANGE)
    assert (tmp_path / "elsewhere").read_bytes() == b""


def test_file_that_is_larger_than_any_journal_is_refused(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    journal.begin(CHANGE)
    monkeypatch.setattr(journal_module, "MAX_JOURNAL", 100)
    with pytest.raises(ConfigError, match="too large"):
        journal.changes()


def test_directory_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "grid").write_bytes(b"")
    with pytest.raises(ConfigError, match="grid"):
        Journal(tmp_path / "grid" / "undo").begin(CHANGE)


def test_recorder_keeps_a_bounded_number_of_links_and_says_so(journal: Journal) -> None:
    recorder = Recorder(journal, evolve(CHANGE, links=()))
    recorder.record([link()] * (MAX_LINKS - 1))
    with pytest.raises(ConfigError, match="only in part"):
        recorder.record([link()] * 3)
    (change,) = journal.changes()
    assert len(change.links) == MAX_LINKS


def test_number_of_a_change_that_was_undone_is_given_to_no_other(journal: Journal) -> None:
    for _ in range(2):
        journal.begin(CHANGE)
    one, two = journal.changes()
    journal.drop(two)
    journal.drop(one)
    assert journal.changes() == []
    assert journal.begin(CHANGE) == 3
    journal.drop(two)  # By another process, which undid it at the same time.
    assert [change.number for change in journal.changes()] == [3]
    journal.drop(*journal.changes())
    assert journal.begin(CHANGE) == 4
    assert len(journal.path.read_bytes().splitlines()) == 1


def test_links_that_are_added_while_a_change_is_undone_stay_in_the_journal(journal: Journal) -> None:
    number = journal.begin(CHANGE)
    (read,) = journal.changes()
    for name in ("second", "third"):
        journal.add(evolve(CHANGE, number=number, links=(link(name),)))
        journal.drop(read)
        (left,) = journal.changes()
        assert [each.name for each in left.links] == [name]
        assert (left.number, left.command, left.client) == (number, CHANGE.command, CHANGE.client)
        read = left
    journal.drop(read)
    assert journal.changes() == []
    journal.add(evolve(CHANGE, number=number, links=(link("last"),)))
    assert [each.links for each in journal.changes()] == [[link("last")]]


def test_directory_that_goes_under_a_writer_is_reported(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    def vanished(*_: object) -> None:
        raise FileNotFoundError(2, "No such file or directory")

    journal.begin(CHANGE)
    monkeypatch.setattr(journal_module, "write_atomically", vanished)
    with pytest.raises(ConfigError, match="No such file"):
        journal.drop(*journal.changes())
