"""The gateway's operations, as it shows and keeps them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pytest_twisted import ensureDeferred
from twisted.internet.defer import Deferred

from grid.codec import base32
from grid.errors import NotHappyError
from grid.gateway.history.history import MAX_LENGTH, MAX_NAMES, History, SubjectNames
from grid.gateway.history.operation import KEPT, MAX_ROWS, Operation
from grid.ports import Event, ServerId
from tests.support.virtual_time import VirtualClock

INDEX = bytes(range(16))
SERVER = ServerId("v0-server")


def event(what: str, detail: str = "", **fields: Any) -> Event:
    return Event(at=fields.pop("at", 0.0), what=what, detail=detail, **fields)


@pytest.fixture
def history() -> History:
    return History(VirtualClock())


def test_upload_when_it_makes_progress_then_is_listed_and_counted_at_the_end(history: History) -> None:
    with history.upload(size=1000) as operation:
        operation.name(INDEX)
        history.observe(event("progress", "hashing", count=500, total=1000))
        assert history.active[0].to_json()["progress-hash"] == 0.5
        history.observe(event("progress", count=250, total=1000))
        found = history.active[0].to_json()
        assert (found["progress-hash"], found["progress-encode-push"], found["bytes"]) == (1.0, 0.25, 250)
    assert not history.active
    assert history.recent[0].to_json()["status"] == "Finished"
    assert history.counters.values == {"uploader.files_uploaded": 1, "uploader.bytes_uploaded": 1000}


def test_literal_file_when_stored_then_is_counted_and_not_listed(history: History) -> None:
    with history.upload(size=10):
        pass
    assert not history.recent
    assert history.counters.values["uploader.bytes_uploaded"] == 10


def test_operation_when_it_fails_then_says_why_without_a_capability(history: History) -> None:
    with pytest.raises(NotHappyError), history.upload(INDEX, 100):
        raise NotHappyError("URI:CHK:secret:secret could not be placed")
    found = history.recent[0]
    assert found.outcome == "failed"
    assert "secret" not in json.dumps(found.to_whole_json())
    assert not history.counters.values


def test_requests_when_sent_and_answered_then_are_rows_with_both_times(history: History) -> None:
    with history.download(INDEX, 100) as operation:
        began = operation.times.began_at
        request = {"server_id": SERVER, "share_numbers": (3,), "request_index": 0, "count": 40}
        history.observe(event("send", "ReadShares", at=began + 1, **request))
        history.observe(event("answer", "ReadShares", at=began + 3, **request))
        history.observe(event("reject", "a bad block", at=began + 4, server_id=SERVER, share_numbers=(3,)))
        rows = [row.to_json() for row in operation.timeline.rows]
    assert rows[0] == {
        "what": "ReadShares",
        "began": 1.0,
        "ended": 3.0,
        "server": "v0-server",
        "shares": [3],
        "bytes": 40,
        "outcome": "answer",
        "detail": "",
    }
    assert (rows[1]["what"], rows[1]["detail"]) == ("reject", "a bad block")


def test_timeline_when_there_are_too_many_requests_then_keeps_the_first_and_counts_the_rest(history: History) -> None:
    with history.download(INDEX, 100) as operation:
        for index in range(MAX_ROWS + 5):
            history.observe(event("send", "ReadShares", server_id=SERVER, request_index=index))
        assert (len(operation.timeline.rows), operation.timeline.dropped) == (MAX_ROWS, 5)


def test_retrieve_when_its_first_plan_asks_whole_slots_then_a_mapupdate_is_listed_too(history: History) -> None:
    with history.retrieve(INDEX):
        history.observe(event("send", "ReadFronts", server_id=SERVER, request_index=0))
        assert {each.kind for each in history.active} == {"retrieve", "mapupdate"}
        history.observe(event("send", "ReadBlocks", server_id=SERVER, request_index=0, share_numbers=(1,)))
        assert {each.kind for each in history.active} == {"retrieve"}
    found = history.find("mapupdate", 0)
    assert found is not None
    assert (found.mode, found.to_json()["total-size"]) == ("MODE_READ", "-NA-")


def test_recent_when_more_end_than_are_kept_then_the_oldest_go(history: History) -> None:
    for _ in range(KEPT["upload"] + 3):
        with history.upload(INDEX, 100):
            pass
    assert len(history.recent) == KEPT["upload"]
    assert history.find("upload", 0) is None
    assert history.find("upload", KEPT["upload"] + 2) is not None


def test_watcher_when_it_watches_then_hears_begin_and_end_until_it_stops(history: History) -> None:
    heard: list[tuple[str, str]] = []

    def watch(operation: Operation) -> None:
        heard.append((operation.key, operation.outcome))

    stop = history.watch(watch)
    with history.upload(INDEX, 100):
        pass
    stop()
    with history.upload(INDEX, 100):
        pass
    assert heard == [("upload-0", "active"), ("upload-0", "done")]


@ensureDeferred
async def test_events_when_two_operations_run_at_once_then_each_gets_its_own() -> None:
    history = History(VirtualClock())
    gates: list[Deferred[None]] = [Deferred(), Deferred()]

    async def download(index: int) -> Operation:
        with history.download(INDEX, 100 + index) as operation:
            await gates[index]
            history.observe(event("progress", count=10 * (index + 1), total=100))
            assert operation.progress.count == 10 * (index + 1)
        return operation

    tasks = [Deferred.fromCoroutine(download(index)) for index in range(2)]
    assert len(history.active) == 2
    for gate in gates:
        gate.callback(None)
    assert [(await task).size for task in tasks] == [100, 101]


def test_event_when_no_operation_runs_then_is_passed_over(history: History) -> None:
    history.observe(event("progress", count=1, total=2))
    assert not history.active


def index_of(number: int) -> bytes:
    return number.to_bytes(16, "big")


def found_in(names: SubjectNames, number: int) -> str:
    return names.find(base32.encode(index_of(number)))


def test_last_name_of_an_object_is_found_and_old_ones_are_forgotten() -> None:
    names = SubjectNames()
    names.note(index_of(0), "first")
    names.note(index_of(1), "x" * 10_000)
    names.note(index_of(0), "second")
    names.note(index_of(0), "")
    names.note(None, "nothing")
    assert (found_in(names, 0), len(found_in(names, 1)), found_in(names, 2), names.find(None)) == (
        "second",
        MAX_LENGTH,
        "",
        "",
    )
    for number in range(2, MAX_NAMES + 1):
        names.note(index_of(number), "other")
    assert (found_in(names, 0), found_in(names, 1)) == ("second", "")


def test_reads_of_a_directory_and_searches_for_its_shares_are_marked_and_its_changes_are_not(history: History) -> None:
    for record, marked in ((history.retrieve, True), (history.download, True), (history.publish, False)):
        with record(INDEX) as operation:
            operation.subject.is_directory = True
            history.observe(event("send", "ReadFronts", server_id=SERVER, request_index=0))
        assert operation.is_directory_read is marked
        found = next((each for each in history.recent if each.kind == "mapupdate"), None)
        assert found is None or found.is_directory_read
    assert any(each.kind == "mapupdate" for each in history.recent)
    with history.retrieve(INDEX) as operation:
        pass
    assert not operation.is_directory_read
