from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import sqlite3
import stat
from pathlib import Path

import pytest
from attrs import evolve

from grid.cli.transfer.database import LocalDatabase, hash_directory, needs_check
from grid.cli.transfer.tree import FileFacts
from grid.errors import ConfigError

SECOND = 10**9
NOW = 1_700_000_000.0
FACTS = FileFacts(
    size=10, mtime_ns=1_600_000_000 * SECOND + 5, ctime_ns=1_600_000_001 * SECOND + 7, mode=0o100644, inode=1,
    device=2, uid=3, gid=4,
)  # fmt: skip
CAP = "URI:LIT:onwwc3dm"
OTHER_CAP = "URI:LIT:onwwc3dn"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "backupdb.sqlite"


def warn_never(line: str) -> None:
    raise AssertionError(line)


def opened(path: Path) -> LocalDatabase:
    return LocalDatabase(path, warn_never)


def record(database: LocalDatabase, name: str = "/a/ü", facts: FileFacts = FACTS, cap: str = CAP) -> None:
    database.record_file(name, facts, cap, read_at_ns=int(NOW * SECOND), now=NOW)


def test_file_when_recorded_and_opened_again_is_known(path: Path) -> None:
    database = opened(path)
    record(database)
    database.close()
    database = opened(path)
    known = database.known_file("/a/ü", FACTS)
    assert known is not None and (known.cap, known.checked_at) == (CAP, NOW)
    database.close()


@pytest.mark.parametrize(
    "changed",
    [{"size": 11}, {"mtime_ns": FACTS.mtime_ns + 1}, {"ctime_ns": FACTS.ctime_ns + 1}, {"mtime_ns": 0}],
)
def test_file_when_anything_about_it_changed_is_not_known(path: Path, changed: dict[str, int]) -> None:
    database = opened(path)
    record(database)
    database.flush()
    assert database.known_file("/a/ü", evolve(FACTS, **changed)) is None
    assert database.known_file("/a/u", FACTS) is None
    database.close()


def test_file_when_it_changed_just_before_it_was_read_is_not_recorded(path: Path) -> None:
    database = opened(path)
    record(database, facts=evolve(FACTS, mtime_ns=int(NOW * SECOND) - 1000))
    database.flush()
    assert database.known_file("/a/ü", evolve(FACTS, mtime_ns=int(NOW * SECOND) - 1000)) is None
    database.close()


def test_database_when_made_is_private_and_has_the_tables_of_version_two(path: Path) -> None:
    database = opened(path)
    record(database)
    database.record_directory("x" * 52, "URI:DIR2-LIT:", NOW)
    database.close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT version FROM version").fetchall() == [(2,)]
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        assert connection.execute("SELECT * FROM local_files").fetchall() == [
            ("/a/ü", 10, 1_600_000_000, 1_600_000_001, 1)
        ]
        assert connection.execute("SELECT * FROM caps").fetchall() == [(1, CAP.encode())]
        assert connection.execute("SELECT * FROM last_upload").fetchall() == [(1, NOW, NOW)]
        assert connection.execute("SELECT * FROM directories").fetchall() == [(b"x" * 52, b"URI:DIR2-LIT:", NOW, NOW)]
    connection.close()


def test_rows_of_1_20_when_there_is_nothing_of_ours_beside_them_are_believed(path: Path) -> None:
    opened(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("INSERT INTO caps VALUES (7, ?)", (CAP,))
        connection.execute("INSERT INTO last_upload VALUES (7, 1.5, 2.5)")
        connection.execute("INSERT INTO local_files VALUES ('/f', 10, 1600000000, 1600000001, 7)")
        connection.execute("INSERT INTO directories VALUES (?, 'URI:DIR2-LIT:', 1.5, 2.5)", ("y" * 52,))
    connection.close()
    database = opened(path)
    known = database.known_file("/f", FACTS)
    assert known is not None and (known.cap, known.checked_at) == (CAP, 2.5)
    found = database.known_directory("y" * 52)
    assert found is not None and found.cap == "URI:DIR2-LIT:"
    record(database, "/g")
    database.flush()
    database.close()
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT count(*) FROM caps").fetchone() == (1,)
    connection.close()


def test_database_of_version_one_when_opened_becomes_version_two(path: Path) -> None:
    opened(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE directories")
        connection.execute("UPDATE version SET version = 1")
    connection.close()
    database = opened(path)
    database.record_directory("z" * 52, "URI:DIR2-LIT:", NOW)
    database.close()
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT version FROM version").fetchall() == [(2,)]
    connection.close()


@pytest.mark.parametrize("version", [0, 3, "two", None])
def test_database_of_another_version_when_opened_is_refused_and_left_alone(path: Path, version: object) -> None:
    opened(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE version SET version = ?", (version,))
    connection.close()
    before = path.read_bytes()
    with pytest.raises(ConfigError, match="version"):
        opened(path)
    assert path.read_bytes() == before


def test_database_of_another_program_when_opened_is_refused_and_left_alone(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE bookmarks (url TEXT)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(ConfigError, match="another program"):
        opened(path)
    assert path.read_bytes() == before


def test_file_that_is_not_a_database_when_opened_is_set_aside_and_replaced(path: Path) -> None:
    path.write_bytes(b"These are not the pages you are looking for." * 100)
    lines: list[str] = []
    database = LocalDatabase(path, lines.append)
    record(database)
    database.flush()
    assert database.known_file("/a/ü", FACTS) is not None
    database.close()
    assert len(lines) == 1 and "unreadable-0" in lines[0]
    assert path.with_name("backupdb.sqlite.unreadable-0").read_bytes().startswith(b"These")


def test_damage_anywhere_when_read_again_never_gives_a_wrong_cap(path: Path) -> None:
    database = opened(path)
    for number in range(40):
        record(database, f"/file{number}", cap=CAP if number % 2 else OTHER_CAP)
    database.record_directory("x" * 52, "URI:DIR2-LIT:", NOW)
    database.record_download("/d", FACTS, CAP)
    database.close()
    whole = path.read_bytes()
    believed = 0
    for offset in range(3, len(whole), 211):
        damaged = bytearray(whole)
        damaged[offset] ^= 0x01
        path.write_bytes(damaged)
        path.with_name("backupdb.sqlite.unreadable-0").unlink(missing_ok=True)
        try:
            database = LocalDatabase(path, lambda line: None)
        except ConfigError:
            continue
        for number in range(40):
            known = database.known_file(f"/file{number}", FACTS)
            assert known is None or known.cap == (CAP if number % 2 else OTHER_CAP)
            believed += known is not None
        found = database.known_directory("x" * 52)
        assert found is None or found.cap == "URI:DIR2-LIT:"
        assert database.known_download("/d", FACTS) in (None, CAP)
        database.close()
    assert believed


def test_download_when_recorded_is_known_as_such_and_not_as_an_upload(path: Path) -> None:
    database = opened(path)
    database.record_download("/d", FACTS, CAP)
    database.flush()
    assert database.known_download("/d", FACTS) == CAP
    assert database.known_download("/d", evolve(FACTS, ctime_ns=1)) is None
    assert database.known_file("/d", FACTS) is None
    database.close()


def _record_and_die(path: Path) -> None:
    database = opened(path)
    for number in range(2000):
        record(database, f"/file{number}")
    os.kill(os.getpid(), signal.SIGKILL)


def test_process_when_killed_leaves_what_was_flushed(path: Path) -> None:
    process = multiprocessing.get_context("fork").Process(target=_record_and_die, args=(path,))
    process.start()
    process.join(30)
    assert process.exitcode == -signal.SIGKILL
    database = opened(path)
    found = sum(database.known_file(f"/file{number}", FACTS) is not None for number in range(2000))
    assert found >= 1536
    database.close()


def test_database_when_locked_by_another_keeps_its_records_for_later(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grid.cli.transfer.database.BUSY_S", 0.01)
    database = opened(path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    record(database)
    database.flush()
    assert database.known_file("/a/ü", FACTS) is None
    other.execute("COMMIT")
    other.close()
    database.flush()
    assert database.known_file("/a/ü", FACTS) is not None
    database.close()


def test_database_with_other_tables_when_written_to_is_given_up_and_says_why(path: Path) -> None:
    opened(path).close()
    with sqlite3.connect(path) as connection:
        connection.executescript("DROP TABLE local_files; CREATE TABLE local_files (path, size)")
    connection.close()
    warnings: list[str] = []
    database = LocalDatabase(path, warnings.append)
    assert database.known_file("/a/ü", FACTS) is None
    record(database)
    database.flush()
    database.close()
    assert len(warnings) == 1 and "can no longer be used" in warnings[0]


def test_database_path_when_it_is_not_a_file_is_refused_and_keeps_its_mode(path: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "pipe").chmod(0o666)
    path.symlink_to(tmp_path / "pipe")
    with pytest.raises(ConfigError, match="not a regular file"):
        opened(path)
    assert stat.S_IMODE((tmp_path / "pipe").stat().st_mode) == 0o666


def test_database_when_the_disk_is_full_is_skipped_with_a_warning(path: Path) -> None:
    said: list[str] = []
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))  # As on a full disk, files may be made and not written.
    try:
        database = LocalDatabase(path, said.append)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert len(said) == 1 and str(path) in said[0] and "can no longer be used" in said[0]
    database.record_directory("hash", "URI:DIR2-LIT:", 1.0)
    database.close()
    assert LocalDatabase(path, said.append).known_directory("hash") is None
    assert len(said) == 1


def test_warning_of_a_damaged_database_is_one_line(path: Path) -> None:
    opened(path).close()
    byte_count = bytearray(path.read_bytes())
    byte_count[4096:4100] = b"junk"
    path.write_bytes(byte_count)
    warnings: list[str] = []
    LocalDatabase(path, warnings.append).close()
    assert len(warnings) == 1 and "is damaged" in warnings[0] and "\n" not in warnings[0]


def test_directory_hash_when_made_leaves_order_out_and_has_the_length_of_the_specification() -> None:
    first = hash_directory({"a": CAP, "ü": OTHER_CAP})
    assert first == hash_directory({"ü": OTHER_CAP, "a": CAP})
    assert len(first) == 52 and first != hash_directory({"a": OTHER_CAP, "ü": CAP})


def test_check_when_a_capability_grows_old_becomes_more_likely() -> None:
    day = 86400.0
    assert not needs_check(29 * day, 0.0)
    assert needs_check(45 * day, 0.49) and not needs_check(45 * day, 0.51)
    assert needs_check(61 * day, 0.999999)
    assert needs_check(-2 * day, 0.999999) and not needs_check(-day / 2, 0.0)


@pytest.mark.parametrize(
    ("name", "facts"),
    [("/a/\udcff", FACTS), ("/a", evolve(FACTS, mtime_ns=2**63)), ("/a", evolve(FACTS, size=2**63))],
    ids=["not UTF-8", "the year 2300", "too large"],
)
def test_file_when_sqlite_cannot_hold_its_name_or_times_is_not_recorded_and_others_are(
    path: Path, name: str, facts: FileFacts
) -> None:
    database = opened(path)
    database.record_download(name, facts, CAP)
    database.record_file(name, facts, CAP, read_at_ns=2**70, now=NOW)
    record(database, "/other")
    assert database.known_download(name, facts) is None
    database.flush()
    assert database.known_file(name, facts) is None
    assert database.known_file("/other", FACTS) is not None
    database.close()
