"""Large objects whose upload was interrupted: which parts are sent again, and what stays at the server."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from grid.ports import Buffer
from grid.transfer.ends import EndError, PassingError
from grid.transfer.object_end import open_object_end
from grid.transfer.outcome import Outcome, Plan
from grid.transfer.s3_uploads import MAX_PARTS, PART_SIZE, cut, open_uploads, part_size_of
from tests.transfer.conftest import require
from tests.transfer.scripted_s3 import BUCKET, Fault, ScriptedS3, scripted_s3
from tests.transfer.test_engine import send
from tests.transfer.test_partial_files import InterruptedEnd

MIB = 2**20
SIZE = 6 * MIB + 5
PLAN = Plan(mode="stream", retries=0, verify=True)


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedS3]:
    """A running server, to which files of two MiB and more go in parts of one."""
    require("obstore")
    require("urllib3")
    monkeypatch.setattr("grid.transfer.engine.pause_before", lambda attempt, draw: 0.0)
    monkeypatch.setattr("grid.transfer.engine.RESUMED_SIZE", 2 * MIB)
    monkeypatch.setattr("grid.transfer.s3_uploads.PAUSE_S", 0)
    monkeypatch.setattr("grid.transfer.s3_uploads.PART_SIZE", MIB)
    state = ScriptedS3()
    with scripted_s3(state) as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        yield state


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder with one file of several parts."""
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / "large").write_bytes(os.urandom(SIZE))
    return folder


def upload(source: InterruptedEnd, state: Path, plan: Plan = PLAN) -> Outcome:
    return send(source, open_object_end(f"s3://{BUCKET}/out", is_target=True), state, plan)


def parts_sent(state: ScriptedS3) -> int:
    """How many parts were asked to be taken."""
    return sum(each.startswith("PUT") and "partNumber" in each for each in state.asked)


def test_upload_when_interrupted_goes_on_with_the_parts_that_the_server_has(
    s3: ScriptedS3, source: Path, tmp_path: Path
) -> None:
    assert len(upload(InterruptedEnd(source, 4 * MIB), tmp_path).failures) == 1
    assert len(s3.uploads) == 1 and not s3.objects
    sent = parts_sent(s3)

    second = InterruptedEnd(source)
    outcome = upload(second, tmp_path)

    assert (outcome.copied, list(outcome.failures)) == (1, [])
    assert outcome.sent_bytes == second.count <= SIZE - 3 * MIB
    assert parts_sent(s3) == 7 and sent == 4
    assert (s3.objects, s3.uploads) == ({"out/large": (source / "large").read_bytes()}, {})


def test_upload_when_interrupted_keeps_the_checksums_of_the_parts_that_the_server_has(
    s3: ScriptedS3, source: Path, tmp_path: Path
) -> None:
    s3.checksums = "kept"
    assert len(upload(InterruptedEnd(source, 4 * MIB), tmp_path).failures) == 1
    assert not upload(InterruptedEnd(source), tmp_path).failures
    assert parts_sent(s3) == 7
    assert s3.objects == {"out/large": (source / "large").read_bytes()}


def test_upload_begun_with_checksums_goes_on_with_them_where_none_would_be_begun(
    s3: ScriptedS3, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    s3.checksums = "kept"
    upload(InterruptedEnd(source, 4 * MIB), tmp_path)
    monkeypatch.setattr("grid.transfer.s3_uploads.quick_crc32", lambda: None)
    assert not upload(InterruptedEnd(source), tmp_path).failures
    assert parts_sent(s3) == 7


@pytest.mark.parametrize(("checksums", "begun"), [("kept", 2), ("ignored", 2), ("refused", 3)])
def test_upload_without_checksums_where_the_server_does_not_keep_them(
    s3: ScriptedS3, source: Path, tmp_path: Path, checksums: Any, begun: int
) -> None:
    """A server that refuses them is asked once."""
    (source / "other").write_bytes(os.urandom(SIZE))
    s3.checksums = checksums
    assert not upload(InterruptedEnd(source), tmp_path, evolve(PLAN, transfers=1)).failures
    assert {key: len(data) for key, data in s3.objects.items()} == {"out/large": SIZE, "out/other": SIZE}
    assert sum(each.startswith("POST") and "uploads" in each for each in s3.asked) == begun


def test_upload_when_the_user_wants_no_checksums_has_none(
    s3: ScriptedS3, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_REQUEST_CHECKSUM_CALCULATION", "when_required")
    s3.checksums = "refused"
    assert not upload(InterruptedEnd(source), tmp_path).failures
    assert sum(each.startswith("POST") and "uploads" in each for each in s3.asked) == 1


def test_upload_when_the_server_has_dropped_it_starts_over(s3: ScriptedS3, source: Path, tmp_path: Path) -> None:
    upload(InterruptedEnd(source, 4 * MIB), tmp_path)
    s3.uploads.clear()

    assert not upload(InterruptedEnd(source), tmp_path, evolve(PLAN, retries=1)).failures

    assert (s3.objects, s3.uploads) == ({"out/large": (source / "large").read_bytes()}, {})


def test_upload_when_its_source_changed_is_aborted_and_starts_over(
    s3: ScriptedS3, source: Path, tmp_path: Path
) -> None:
    upload(InterruptedEnd(source, 4 * MIB), tmp_path)
    (source / "large").write_bytes(os.urandom(SIZE))

    second = InterruptedEnd(source)
    assert not upload(second, tmp_path).failures

    assert second.count == SIZE
    assert (s3.objects, s3.uploads) == ({"out/large": (source / "large").read_bytes()}, {})


@pytest.mark.parametrize("size", [0, 5, MIB + 5])
def test_upload_of_a_file_that_became_small_is_aborted(s3: ScriptedS3, source: Path, tmp_path: Path, size: int) -> None:
    upload(InterruptedEnd(source, 4 * MIB), tmp_path)
    assert len(s3.uploads) == 1
    (source / "large").write_bytes(os.urandom(size))
    outcome = upload(InterruptedEnd(source), tmp_path)
    assert (outcome.copied, list(outcome.failures)) == (1, [])
    assert s3.objects["out/large"] == (source / "large").read_bytes()
    assert not s3.uploads


def test_upload_that_cannot_continue_leaves_no_parts(s3: ScriptedS3, source: Path, tmp_path: Path) -> None:
    upload(InterruptedEnd(source, 4 * MIB, EndError("refused")), tmp_path)
    assert not s3.uploads
    s3.faults = [Fault("PUT", 403, "AccessDenied")]
    ((_, error),) = upload(InterruptedEnd(source), tmp_path).failures
    assert "do not permit" in str(error) and "secret" not in str(error)
    assert not s3.uploads and not s3.objects


def test_source_that_is_only_read_from_its_start_is_uploaded_from_there(
    s3: ScriptedS3, source: Path, tmp_path: Path
) -> None:
    upload(InterruptedEnd(source, 4 * MIB), tmp_path)
    second = InterruptedEnd(source)
    second.only_from_start = True

    assert not upload(second, tmp_path, evolve(PLAN, retries=1)).failures

    assert (s3.objects, s3.uploads) == ({"out/large": (source / "large").read_bytes()}, {})


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda state: state.faults.append(Fault("POST", 200)), "began no upload"),
        (lambda state: state.faults.extend(Fault("PUT", 200, is_for=_is_first) for _ in range(3)), "no entity tag"),
        (lambda state: state.faults.append(Fault("POST", 200, is_for=_is_last)), "did not complete"),
        (lambda state: state.faults.extend(Fault("PUT", 0, is_for=_is_first) for _ in range(3)), "s3://bucket/out"),
        (lambda state: state.faults.append(Fault("POST", 301)), "region"),
    ],
)
def test_upload_when_answers_are_not_what_they_should_be_fails_and_says_why(
    s3: ScriptedS3, source: Path, tmp_path: Path, spoil: Callable[[ScriptedS3], None], says: str
) -> None:
    spoil(s3)
    ((_, error),) = upload(InterruptedEnd(source), tmp_path).failures
    assert says in str(error)
    assert not s3.faults and not s3.objects


def _is_first(path: str) -> bool:
    return "partNumber=1&" in path


def _is_last(path: str) -> bool:
    return "uploadId" in path


def test_upload_when_only_obstore_can_send_is_left_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    require("urllib3")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    account = {"region": "us-east-1", "access_key_id": "key", "secret_access_key": "secret"}
    made = open_uploads("bucket", account)
    assert made is not None and "secret" not in repr(made._account)
    assert open_uploads("bucket", {"region": "us-east-1"}) is None
    for name, value in (("AWS_SERVER_SIDE_ENCRYPTION", "aws:kms"), ("https_proxy", "http://127.0.0.1:1")):
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            assert open_uploads("bucket", account) is None


@pytest.mark.parametrize("size", [1, PART_SIZE * MAX_PARTS, PART_SIZE * MAX_PARTS + 1, 5 * 10**12])
def test_parts_are_whole_mebibytes_and_not_too_many(size: int) -> None:
    part = part_size_of(size)
    assert part % MIB == 0 and part >= PART_SIZE
    assert -(-size // part) <= MAX_PARTS


@pytest.mark.parametrize("length", [1, 9, 10, 11, 20, 25])
def test_parts_are_cut_from_pieces_of_any_size_which_are_only_lent(length: int) -> None:
    data = bytes(range(length))

    async def pieces(step: int) -> AsyncIterator[Buffer]:
        lent = bytearray(step)
        for begin in range(0, length, step):
            size = min(step, length - begin)
            lent[:size] = data[begin : begin + size]
            yield memoryview(lent)[:size]
            lent[:] = bytes(step)

    async def case(step: int) -> list[memoryview]:
        return [part async for part in cut(pieces(step), length, 10)]

    for step in (1, 3, 10, 25):
        parts = asyncio.run(case(step))
        assert b"".join(parts) == data
        assert [len(part) for part in parts] == [min(10, length - begin) for begin in range(0, length, 10)]


def test_passing_errors_are_those_that_leave_parts(s3: ScriptedS3, source: Path, tmp_path: Path) -> None:
    s3.faults = [Fault("PUT", 503, "SlowDown", is_for=lambda path: "partNumber=3" in path) for _ in range(3)]
    ((_, error),) = upload(InterruptedEnd(source), tmp_path).failures
    assert isinstance(error, PassingError)
    assert len(s3.uploads) == 1
    assert not upload(InterruptedEnd(source), tmp_path).failures
    assert (s3.objects, s3.uploads) == ({"out/large": (source / "large").read_bytes()}, {})
