"""Faults of SFTP servers: they run out of space, stall, drop connections, lie, and give names that are none."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from grid.transfer.choices import Mode
from grid.transfer.ends import EndError, Entry, PassingError
from grid.transfer.engine import Transfer
from grid.transfer.journal import Journal
from grid.transfer.local_end import LocalEnd
from grid.transfer.outcome import Outcome, Plan
from grid.transfer.sftp_end import open_sftp_end
from tests.transfer.conftest import require
from tests.transfer.end_contract import BytesBody
from tests.transfer.scripted_sftp import Fault, SftpScript, make_home, scripted_sftp
from tests.transfer.test_engine import FAST, contents

SIZE = 3 * 2**20 + 5


@pytest.fixture
def key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A key that is the host's and the user's; retries do not wait, and silence is short."""
    require("asyncssh")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    monkeypatch.setattr("grid.transfer.engine.pause_before", lambda attempt, draw: 0.0)
    for name in ("local", "remote"):
        (tmp_path / name).mkdir()
    return make_home(tmp_path)


def upload(tmp_path: Path, key: Any, script: SftpScript | Callable[..., Any], plan: Plan = FAST) -> Outcome:
    """Send `local` to `remote`, both below the temporary directory."""
    return _transfer(tmp_path, key, script, plan, is_upload=True)


def download(tmp_path: Path, key: Any, script: SftpScript | Callable[..., Any], plan: Plan = FAST) -> Outcome:
    """Send `remote` to `local`."""
    return _transfer(tmp_path, key, script, plan, is_upload=False)


def _transfer(
    tmp_path: Path, key: Any, script: SftpScript | Callable[..., Any], plan: Plan, *, is_upload: bool
) -> Outcome:
    async def case() -> Outcome:
        async with scripted_sftp(tmp_path, key, script) as url:
            remote = open_sftp_end(f"{url}{tmp_path}/remote", is_target=is_upload)
            local = LocalEnd(str(tmp_path / "local"))
            source, target = (local, remote) if is_upload else (remote, local)
            journal = Journal(tmp_path / "state" / "journal.sqlite")
            try:
                return await Transfer([source], target, journal, plan).run()
            finally:
                journal.close()
                await remote.close()

    return asyncio.run(case())


@pytest.mark.parametrize("size", [100, SIZE])
def test_upload_when_the_server_is_full_fails_by_itself_and_leaves_nothing(
    tmp_path: Path, key: object, size: int
) -> None:
    import asyncssh

    class FullServer(asyncssh.SFTPServer):
        def write(self, file_obj: object, offset: int, data: bytes) -> int:
            raise asyncssh.SFTPFailure("No space left on device")

    (tmp_path / "local" / "file").write_bytes(os.urandom(size))
    (tmp_path / "remote" / "file").write_bytes(b"older")

    outcome = upload(tmp_path, key, FullServer)

    ((name, error),) = outcome.failures
    assert name == "file"
    assert "No space left on device" in str(error)
    assert contents(tmp_path / "remote") == {"file": b"older"}


FAULTS = pytest.mark.parametrize("fault", ["stall", "drop"])


@FAULTS
@pytest.mark.parametrize("mode", ["stream", "chunked"])
@pytest.mark.parametrize("at", ["write", "rename"])
def test_upload_when_the_server_stalls_or_drops_the_connection_once_arrives(
    tmp_path: Path, key: object, monkeypatch: pytest.MonkeyPatch, at: str, mode: Mode, fault: Fault
) -> None:
    monkeypatch.setattr("grid.transfer.sftp_end.SILENCE_S", 1.0)
    for name, size in (("large", SIZE), ("small", 5), ("empty", 0)):
        (tmp_path / "local" / name).write_bytes(os.urandom(size))
    script = SftpScript(at=at, fault=fault, count=1)

    outcome = upload(tmp_path, key, script, evolve(FAST, mode=mode))

    assert (script.stalled, script.dropped) == ((1, 0) if fault == "stall" else (0, 1))
    assert script.connections == 2
    assert (list(outcome.failures), outcome.copied) == ([], 3)
    assert contents(tmp_path / "remote") == contents(tmp_path / "local"), "and no incomplete file is left"


@FAULTS
@pytest.mark.parametrize("mode", ["stream", "chunked", "chunked-stream"])
def test_download_when_the_server_stalls_or_drops_the_connection_once_arrives(
    tmp_path: Path, key: object, monkeypatch: pytest.MonkeyPatch, mode: Mode, fault: Fault
) -> None:
    monkeypatch.setattr("grid.transfer.sftp_end.SILENCE_S", 1.0)
    for name, size in (("large", SIZE), ("small", 5)):
        (tmp_path / "remote" / name).write_bytes(os.urandom(size))
    script = SftpScript(at="read", fault=fault, count=1)

    outcome = download(tmp_path, key, script, evolve(FAST, mode=mode))

    assert script.stalled + script.dropped == 1 and script.connections == 2
    assert (list(outcome.failures), outcome.copied) == ([], 2)
    assert contents(tmp_path / "local") == contents(tmp_path / "remote")


def test_download_when_the_server_never_stops_stalling_fails_and_leaves_nothing(
    tmp_path: Path, key: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grid.transfer.sftp_end.SILENCE_S", 0.3)
    (tmp_path / "remote" / "large").write_bytes(os.urandom(SIZE))
    script = SftpScript(at="read", count=1000)

    outcome = download(tmp_path, key, script)

    ((name, error),) = outcome.failures
    assert name == "large" and "stopped answering" in str(error)
    assert script.connections == 1 + FAST.retries
    assert contents(tmp_path / "local") == {}


@FAULTS
def test_listing_when_the_server_stalls_or_drops_the_connection_removes_nothing(
    tmp_path: Path, key: object, monkeypatch: pytest.MonkeyPatch, fault: Fault
) -> None:
    monkeypatch.setattr("grid.transfer.sftp_end.SILENCE_S", 0.3)
    (tmp_path / "remote" / "file").write_bytes(b"x")
    (tmp_path / "local" / "kept").write_bytes(b"y")
    plan = evolve(FAST, delete=True)

    with pytest.raises(PassingError):
        download(tmp_path, key, SftpScript(at="list", fault=fault, count=1), plan)

    assert "kept" in contents(tmp_path / "local")
    assert download(tmp_path, key, SftpScript(), plan).removed == 1
    assert contents(tmp_path / "local") == {"file": b"x"}


@pytest.mark.parametrize("mode", ["stream", "chunked"])
@pytest.mark.parametrize("change", ["grow", "shrink", "rewrite"])
def test_remote_file_when_it_changes_while_it_is_read_is_sent_as_it_is_in_the_end(
    tmp_path: Path, key: object, change: str, mode: Mode
) -> None:
    path = tmp_path / "remote" / "large"
    path.write_bytes(os.urandom(SIZE))
    final = {"grow": path.read_bytes() + b"more", "shrink": b"short", "rewrite": os.urandom(SIZE)}[change]
    reads: list[None] = []

    def alter() -> None:
        reads.append(None)
        if len(reads) == 2:
            with path.open("r+b", buffering=0) as file:
                file.write(final)
                file.truncate()
            os.utime(path, (2e9, 2e9))

    outcome = download(tmp_path, key, SftpScript(before_read=alter), evolve(FAST, mode=mode))

    assert len(reads) > 2 and not outcome.failures
    assert contents(tmp_path / "local") == {"large": final}


@pytest.mark.parametrize("lie", [7, -2])
def test_remote_file_when_the_server_lies_about_its_size_never_appears_with_a_hole(
    tmp_path: Path, key: object, lie: int
) -> None:
    (tmp_path / "remote" / "file").write_bytes(b"12345")

    outcome = download(tmp_path, key, SftpScript(lie=lie))

    # Who says that a file is shorter than it is gives a file of that length, as far as anybody can tell.
    assert len(outcome.failures) == (lie > 0)
    assert contents(tmp_path / "local") == ({} if lie > 0 else {"file": b"123"})


def test_names_of_a_server_that_lead_elsewhere_are_left_out_and_others_stop_nothing(
    tmp_path: Path, key: object
) -> None:
    (tmp_path / "remote" / "good").write_bytes(b"ok")
    (tmp_path / "remote" / os.fsdecode(b"latin-\xe9")).write_bytes(b"odd")
    (tmp_path / "remote" / "link").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "remote" / "pipe")
    script = SftpScript(names=[b"../out", b"/etc/passwd", b"..", b"a\0b", b"", b"n" * 300])

    outcome = download(tmp_path, key, script)

    assert contents(tmp_path / "local") == {"good": b"ok", os.fsdecode(b"latin-\xe9"): b"odd"}
    assert {each.name for each in outcome.left_out} == {"../out", "/etc/passwd", "a?b", "link", "pipe"}
    assert {name for name, _ in outcome.failures} == {"", "n" * 300}
    assert {path.name for path in tmp_path.iterdir()} <= {"home", "local", "remote", "state"}


def test_name_that_is_no_text_goes_to_a_server_and_comes_back(tmp_path: Path, key: object) -> None:
    odd = os.fsdecode(b"latin-\xe9")
    (tmp_path / "local" / odd).write_bytes(b"odd")
    for copied in (1, 0):
        outcome = upload(tmp_path, key, SftpScript())
        assert (list(outcome.failures), outcome.copied) == ([], copied)
    assert contents(tmp_path / "remote") == {odd: b"odd"}


def test_target_that_is_a_file_is_refused_and_stays_as_it_is(tmp_path: Path, key: object) -> None:
    (tmp_path / "remote").rmdir()
    (tmp_path / "remote").write_bytes(b"a file")
    for name in ("one", "two"):
        (tmp_path / "local" / name).write_bytes(b"x")
    with pytest.raises(EndError, match="is not a directory"):
        upload(tmp_path, key, SftpScript())
    assert (tmp_path / "remote").read_bytes() == b"a file"


@pytest.mark.parametrize("code", [2, 3])
def test_directory_that_a_server_does_not_list_is_a_gap_and_the_others_are_read(
    tmp_path: Path, key: object, code: int
) -> None:
    """Codes: it vanished; it is not permitted."""
    for name in ("closed", "open"):
        (tmp_path / "remote" / name).mkdir()
        (tmp_path / "remote" / name / "file").write_bytes(b"x")
    (tmp_path / "local" / "kept").write_bytes(b"y")

    outcome = download(tmp_path, key, SftpScript(closed={b"closed": code}), evolve(FAST, delete=True))

    assert contents(tmp_path / "local") == {"open/file": b"x", "kept": b"y"}
    assert [name for name, _ in outcome.failures] == ["closed"]


def test_directory_that_vanishes_while_a_target_is_listed_does_not_hide_the_others(tmp_path: Path, key: object) -> None:
    for name in ("gone", "other"):
        (tmp_path / "remote" / name).mkdir()
        (tmp_path / "remote" / name / "file").write_bytes(b"x")
    outcome = upload(tmp_path, key, SftpScript(closed={b"gone": 2}), evolve(FAST, delete=True, dry_run=True))
    assert outcome.to_remove == 0
    (tmp_path / "local" / "new").write_bytes(b"x")
    assert upload(tmp_path, key, SftpScript(closed={b"gone": 2}), evolve(FAST, delete=True)).removed == 1


@pytest.mark.parametrize("seconds", [-5, 2**32 + 5])
def test_time_that_a_server_cannot_keep_becomes_the_nearest_one(tmp_path: Path, key: object, seconds: int) -> None:
    (tmp_path / "local" / "file").write_bytes(b"x")
    (tmp_path / "local" / "other").write_bytes(b"x")
    os.utime(tmp_path / "local" / "file", (seconds, seconds))
    outcome = upload(tmp_path, key, SftpScript())
    assert (outcome.copied, list(outcome.failures)) == (2, [])
    assert (tmp_path / "remote" / "file").stat().st_mtime == (0 if seconds < 0 else 2**32 - 1)


@pytest.mark.parametrize(("mode", "final"), [(0o604, 0o604), (None, 0o640)])
def test_upload_is_private_until_it_is_complete(tmp_path: Path, key: object, mode: int | None, final: int) -> None:
    import asyncssh

    seen: set[int] = set()

    class NotingServer(asyncssh.SFTPServer):
        def write(self, file_obj: object, offset: int, data: bytes) -> int:
            seen.add(os.fstat(file_obj.fileno()).st_mode & 0o777)  # type: ignore[attr-defined]
            count = super().write(file_obj, offset, data)
            assert isinstance(count, int)
            return count

    async def case() -> None:
        async with scripted_sftp(tmp_path, key, NotingServer) as url:
            end = open_sftp_end(f"{url}{tmp_path}/remote")
            try:
                for name in ("a", "b"):
                    await end.store(Entry(name=name, size=4, mode=mode), BytesBody(b"text"))
            finally:
                await end.close()

    before = os.umask(0o027)
    try:
        asyncio.run(case())
    finally:
        os.umask(before)
    assert seen == {0o600}
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "remote").iterdir()} == {final}
    assert contents(tmp_path / "remote") == {"a": b"text", "b": b"text"}
