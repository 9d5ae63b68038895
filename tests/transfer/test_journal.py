"""The journal of a transfer: what it keeps, who may use it, and its errors."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from grid.errors import BusyError, ConfigError, NoSpaceError
from grid.transfer.digest import digest_of_bytes
from grid.transfer.ends import Entry, KeptPart
from grid.transfer.journal import DONE, FAILED, STORED, UNVERIFIED, Journal, Row, journal_path
from grid.transfer.local_end import LocalEnd
from grid.transfer.records import JournalError, JournalFullError
from grid.transfer.status import read_status
from grid.transfer.traits import identity_of
from tests.transfer.test_engine import contents, send

ODD_NAMES = ("plain", "ü/ñ", "\udcff\udc80", "\ud800", "new\nline", "a" * 4000)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a journal goes, in a directory that is yet to be made."""
    return tmp_path / "grid" / "journal.sqlite"


def row(name: str, **others: object) -> Row:
    entry = Entry(name=name, size=10, mtime_ns=-5, tag="t", mode=0o640)
    return Row(source="s", entry=entry, **{"state": DONE, **others})  # type: ignore[arg-type]


def test_rows_when_the_journal_is_opened_again_are_what_was_noted(path: Path) -> None:
    rows = [row(name, state=STORED, token="URI:x", digest="gmac d", error="e") for name in ODD_NAMES]
    journal = Journal(path)
    journal.note(rows)
    journal.close()

    journal = Journal(path)

    assert [journal.find("s", name) for name in ODD_NAMES] == rows
    assert journal.find("other", "plain") is None
    assert (journal.count(STORED), journal.count(DONE)) == (len(rows), 0)
    journal.close()


@pytest.mark.parametrize(("state", "found"), [(DONE, DONE), (STORED, FAILED), (UNVERIFIED, FAILED), (FAILED, FAILED)])
def test_file_that_an_earlier_version_did_not_verify_is_sent_again(path: Path, state: str, found: str) -> None:
    """Its digest, a SHA-256, is of another kind."""
    journal = Journal(path)
    journal.note([row("f", state=state, token="URI:x", digest="00" * 32)])
    assert journal.find("s", "f") == row("f", state=found, token="URI:x", digest="")
    journal.close()


def test_parts_that_an_earlier_version_recorded_are_dropped(path: Path) -> None:
    entry, part = Entry(name="large", size=10, mtime_ns=1), KeptPart(offset=0, length=5, token="key", digest=bytes(32))
    journal = Journal(path)
    journal.parts_of("s", entry).keep(part)
    journal._rows.execute("UPDATE parts SET facts = ?", (repr(entry.facts),))
    assert journal.parts_of("s", entry).outdated() == ["key"]
    assert journal.parts_of("s", entry).load() == []
    journal.close()


def test_key_of_digests_is_that_of_the_journal(path: Path, tmp_path: Path) -> None:
    first, other = Journal(path), Journal(tmp_path / "other.sqlite")
    digest = digest_of_bytes(first.digest_key, b"x")
    first.close()
    again = Journal(path)
    assert digest_of_bytes(again.digest_key, b"x") == digest != digest_of_bytes(other.digest_key, b"x")
    again.close()
    other.close()


def test_parts_of_a_file_are_those_of_its_present_state(path: Path) -> None:
    entry = Entry(name="large", size=10, mtime_ns=1)
    part = KeptPart(offset=0, length=5, token="key", digest=b"d")
    journal = Journal(path)
    journal.parts_of("s", entry).keep(part)
    journal.parts_of("s", evolve(entry, name="other")).keep(part)
    journal.close()
    journal = Journal(path)
    assert journal.parts_of("s", entry).load() == [part]
    assert not journal.parts_of("s", evolve(entry, mtime_ns=2)).load()
    assert not journal.parts_of("s", entry).load(), "what it was before is dropped"
    other = journal.parts_of("s", evolve(entry, name="other"))
    other.forget()
    assert not other.load()
    journal.close()


def test_parts_of_a_file_without_time_and_tag_are_not_kept(path: Path) -> None:
    journal = Journal(path)
    parts = journal.parts_of("s", Entry(name="large", size=10))
    parts.keep(KeptPart(offset=0, length=5, token="key", digest=b"d"))
    assert not parts.load()
    journal.close()


def test_row_when_noted_again_replaces_the_older_one(path: Path) -> None:
    journal = Journal(path)
    journal.note([row("a", state=FAILED)])
    journal.note([row("a", state=DONE)])
    assert (journal.count(FAILED), journal.count(DONE)) == (0, 1)
    journal.close()


def test_target_listing_and_requests_are_forgotten_with_the_process(path: Path) -> None:
    journal = Journal(path)
    journal.listings.note_there([Entry(name=name, size=1) for name in ("a", "b", "\udcff")])
    assert journal.listings.want(["a", "\udcfe"], "one") == {}
    assert journal.listings.want(["a", "c"], "two") == {"a": ("a", "one")}, "the first source that has a name keeps it"
    assert journal.listings.want(["a", "c"], "one") == {"c": ("c", "two")}
    assert set(journal.listings.unwanted()) == {"b", "\udcff"}
    assert journal.listings.there(["a", "c", "\udcff"]) == {name: Entry(name=name, size=1) for name in ("a", "\udcff")}
    journal.close()
    journal = Journal(path)
    assert journal.listings.there(["a"]) == {}
    assert not list(journal.listings.unwanted())
    journal.close()


def test_rows_when_one_of_them_cannot_be_kept_are_not_kept_at_all(path: Path) -> None:
    journal = Journal(path)
    with pytest.raises(JournalError):
        journal.note([row("good"), Row(source="s", entry=Entry(name="bad", mode=2**70), state=DONE)])
    assert journal.find("s", "good") is None
    journal.note([row("good")])
    assert journal.find("s", "good") is not None
    journal.close()


def test_journal_is_for_its_owner_and_for_one_process(path: Path) -> None:
    journal = Journal(path)
    journal.note([row("a", token="URI:secret")])
    assert {each.stat().st_mode & 0o077 for each in path.parent.iterdir()} == {0}
    with pytest.raises(BusyError):
        Journal(path)
    journal.close()
    Journal(path).close()


def test_journal_when_it_is_not_a_database_says_which_file_to_remove(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"not a database" * 1000)
    for _ in range(2):
        with pytest.raises(ConfigError, match=r"journal\.sqlite.*remove"):
            Journal(path)


@pytest.mark.parametrize(
    "change",
    [
        "CREATE TABLE files (source TEXT, name BLOB, state TEXT)",
        "CREATE TABLE secret (value BLOB, made_at REAL)",
        "CREATE TABLE seen (source TEXT, place BLOB, mtime_ns INTEGER, tag TEXT, PRIMARY KEY (source, place))",
    ],
)
def test_journal_of_another_version_says_which_file_to_remove(path: Path, change: str) -> None:
    path.parent.mkdir()
    other = sqlite3.connect(path)
    other.execute(change)
    other.close()
    with pytest.raises(
        ConfigError, match=r"journal\.sqlite: another version of Grid made it; remove it to start over$"
    ):
        Journal(path)


def test_journal_when_its_disk_is_full_says_so_and_keeps_what_it_had(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = sqlite3.connect

    def connect_to_small(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*arguments, **options)
        connection.execute("PRAGMA max_page_count = 20")
        return connection

    monkeypatch.setattr("grid.transfer.journal.sqlite3.connect", connect_to_small)
    journal = Journal(path)
    journal.note([row("a")])
    with pytest.raises(JournalFullError, match=r"make room there$"):
        journal.note([row("n" * 3000 + str(number)) for number in range(100)])
    assert journal.find("s", "a") == row("a")
    journal.close()


def test_name_of_a_journal_differs_by_ends_and_reveals_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    names = {journal_path(*ends) for ends in ((["a"], "b"), (["b"], "a"), (["a", "b"], ""), (["a\0b"], "c"))}
    assert len(names) == 4
    assert str(journal_path(["URI:DIR2:secret"], "b")).count("secret") == 0
    assert journal_path(["a"], "b").parent == Path("/state/grid/transfers")


def test_journal_when_its_step_is_killed_has_all_rows_or_none(path: Path) -> None:
    class StopError(Exception):
        pass

    def stop() -> None:
        raise StopError

    journal = Journal(path, stop)
    with pytest.raises(StopError):
        journal.note([row("a"), row("b")])
    journal.close()
    rows = sqlite3.connect(path).execute("SELECT COUNT(*) FROM files").fetchone()[0]
    assert rows == 0


def test_text_and_numbers_that_sqlite_does_not_take_are_kept_as_well_as_they_can_be(path: Path) -> None:
    journal = Journal(path)
    entry = Entry(name="a", size=5, mtime_ns=2**63, tag="\udcff")
    journal.listings.note_there([entry])
    journal.note_under_way(entry, 0.0)
    assert journal.listings.want(["a"], "folder-\udcff") == {}
    journal.note([Row(source="folder-\udcff", entry=entry, state=FAILED, error="\udcff: gone")])
    found = journal.find("folder-\udcff", "a")
    assert found is not None and (found.entry.size, found.entry.mtime_ns, found.state) == (5, None, FAILED)
    parts = journal.parts_of("folder-\udcff", entry)
    parts.keep(KeptPart(offset=0, length=5, token="key", digest=b"d"))
    assert len(parts.load()) == 1
    journal.close()


def test_journal_that_is_damaged_inside_says_which_file_to_remove(path: Path) -> None:
    journal = Journal(path)
    journal.note([row(f"{number:05}", error="x" * 400) for number in range(500)])
    journal.close()
    data = bytearray(path.read_bytes())
    data[2 * 4096 :] = b"\xa5" * (len(data) - 2 * 4096)
    path.write_bytes(data)
    uses: list[Callable[[Journal], object]] = [
        lambda journal: [journal.find("s", f"{number:05}") for number in range(500)],
        lambda journal: journal.count(DONE),
        lambda journal: journal.done_after("s", "", 500),
        lambda journal: journal.note([row("new")]),
    ]
    refused = 0
    for use in uses:
        try:
            journal = Journal(path)
        except ConfigError as error:
            assert "remove it" in str(error)
            refused += 1
            continue
        try:
            use(journal)
        except JournalError as error:
            assert str(error).endswith("remove it to start over")
            refused += 1
        journal.close()
    assert refused == len(uses)


CHANGES: list[tuple[str, Callable[[Journal], object]]] = [
    ("UPDATE files SET size = 'much'", lambda journal: journal.done_after("s", "", 5)),
    ("UPDATE files SET size = 'much'", lambda journal: journal.find("s", "a")),
    ("UPDATE files SET token = x'00'", lambda journal: journal.find_all("s", ["a", "b"])),
    ("UPDATE files SET mode = 0.5", lambda journal: journal.find_all("s", ["a", "b"])),
    ("UPDATE seen SET tag = x'00'", lambda journal: journal.find("s", "a")),
    ("UPDATE parts SET offset = 'first'", lambda journal: journal.load_parts("s", row("a").entry)),
    ("UPDATE parts SET offset = -1", lambda journal: journal.load_parts("s", row("a").entry)),
    ("UPDATE parts SET length = 1.5", lambda journal: journal.load_parts("s", row("a").entry)),
    ("UPDATE parts SET digest = 'text'", lambda journal: journal.load_parts("s", row("a").entry)),
    ("UPDATE parts SET token = x'00'", lambda journal: journal.part_tokens()),
    ("UPDATE parts SET token = x'00', facts = ''", lambda journal: journal.outdated_tokens("s", row("a").entry)),
    ("UPDATE parts SET name = 'a'", lambda journal: journal.forget_unwanted_parts()),
    ("UPDATE secret SET value = 'known'", lambda journal: journal.mark),
    ("UPDATE secret SET value = 5", lambda journal: journal.mark),
]


@pytest.mark.parametrize(
    ("change", "use"), CHANGES, ids=[f"{number} {change}" for number, (change, _) in enumerate(CHANGES)]
)
def test_journal_that_was_changed_by_hand_says_which_file_to_remove(
    path: Path, change: str, use: Callable[[Journal], object]
) -> None:
    journal = Journal(path)
    journal.note([row("a", there=(5, "tag"))])
    journal.note_part("s", row("a").entry, KeptPart(offset=0, length=5, token="key", digest=b"d"))
    use(journal)
    journal.note_part("s", row("a").entry, KeptPart(offset=0, length=5, token="key", digest=b"d"))
    journal.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute(change)
    with pytest.raises((JournalError, ConfigError), match=r"journal\.sqlite: .*remove it to start over$"):
        use(Journal(path))


def test_transfer_whose_journal_was_changed_by_hand_ends_with_one_error(path: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "large").write_bytes(bytes(3 * 2**20))

    async def listing() -> list[Entry]:
        return [found async for found in LocalEnd(str(source)).entries() if isinstance(found, Entry)]

    (large,) = asyncio.run(listing())
    journal = Journal(path)
    part = KeptPart(offset=0, length=2**20, token="key", digest=b"d")
    journal.note_part(identity_of(LocalEnd(str(source))), large, part)
    journal.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("UPDATE parts SET offset = 'first'")
    with pytest.raises(JournalError, match=r"journal\.sqlite: .*remove it to start over$"):
        send(source, tmp_path / "target", path.parent)
    path.unlink()
    assert not list(send(source, tmp_path / "target", path.parent).failures)
    assert contents(tmp_path / "target") == contents(source)


def test_status_of_a_journal_that_was_changed_by_hand_says_which_file_to_remove(path: Path) -> None:
    journal = Journal(path)
    journal.note([row("a", state=FAILED)])
    journal.note_under_way(row("b").entry, 5.0)
    assert read_status(path).failures == [("a", "")]
    for table in ("files", "under_way"):
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute(f"UPDATE {table} SET name = CAST(name AS TEXT)")
        with pytest.raises(ConfigError, match=r"journal\.sqlite: .*remove it to start over$"):
            read_status(path)
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute(f"UPDATE {table} SET name = CAST(name AS BLOB)")
    journal.close()


def test_journal_on_a_disk_that_is_full_is_not_to_be_removed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> sqlite3.Connection:
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise error

    monkeypatch.setattr("grid.transfer.journal.sqlite3.connect", full)
    with pytest.raises(NoSpaceError, match=r"journal\.sqlite: its disk is full; make room there$"):
        Journal(path)


def test_journal_that_others_could_read_becomes_private_once_it_is_opened(path: Path) -> None:
    Journal(path).close()
    path.chmod(0o644)
    Journal(path).close()
    assert path.stat().st_mode & 0o077 == 0
    path.rename(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))
    with pytest.raises(ConfigError, match=r"symbolic links$"):
        Journal(path)


def test_page_of_known_files_costs_a_statement_for_each_question_and_no_transaction(path: Path) -> None:
    journal = Journal(path)
    names = [f"file-{number}" for number in range(100)]
    journal.note([row(name) for name in names])
    journal.listings.note_there([Entry(name=name, size=1) for name in names])
    statements: list[str] = []
    for database in (journal._rows, journal.listings._rows):
        database.set_trace_callback(statements.append)
    assert journal.listings.want(names, "s") == {}
    assert len([each for each in statements if not each.startswith("INSERT OR IGNORE INTO wanted")]) == 0
    statements.clear()
    assert set(journal.listings.there([*names, "other"])) == set(names)
    assert journal.find_all("s", [*names, "other"]) == {name: row(name) for name in names}
    journal.scratch_name("s", "a")
    assert len(statements) == 2, statements
    journal.close()
