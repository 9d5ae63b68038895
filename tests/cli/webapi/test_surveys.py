"""Streams over trees: every line is used, and broken streams are continued."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from grid.cli.surveys import CheckFlags
from grid.cli.webapi.refusals import GatewayError
from grid.cli.webapi.surveys import GatewaySurvey
from grid.directory.node_json import describe_unit
from grid.directory.pack import Target
from grid.directory.walk import Visited
from grid.errors import GridError, NotEnoughSharesError, PeerGoneError
from tests.cli.webapi.scripted import Asked, Reply, reply, scripted
from tests.cli.webapi.test_directory import DIRECTORY, FILE, FILE_NODE, OTHER, OTHER_NODE, listing

STATS = {"type": "stats", "stats": {"count-files": 1, "size-directories": 5}}
COUNTS = {"count-shares-good": 3, "count-shares-needed": 3, "count-shares-expected": 10, "count-wrong-shares": 0}


def unit(path: list[str], target: Target, **more: object) -> dict[str, object]:
    return {**describe_unit(tuple(path), target, target.to_string()), **more}  # type: ignore[union-attr]


def stream(*lines: object) -> Reply:
    return reply("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))


def check(*, healthy: bool) -> dict[str, object]:
    results = {"healthy": healthy, "recoverable": True, **COUNTS, "list-corrupt-shares": [["v0-a", "si", 2]]}
    return {"storage-index": "aaaa", "summary": "words", "results": results}


async def test_manifest_gives_what_the_lines_say() -> None:
    stats: list[Mapping[str, object]] = []
    lines = stream(unit([], DIRECTORY), unit(["f"], FILE), STATS)
    async with scripted([lines]) as (gateway, store):
        found = [visited async for visited in GatewaySurvey(store).visit(DIRECTORY, stats.append)]
    assert [(visited.path, visited.target) for visited in found] == [((), DIRECTORY), (("f",), FILE)]
    assert stats == [STATS["stats"]]
    assert gateway.targets[0].endswith("?t=stream-manifest")


async def test_check_gives_the_health_of_each() -> None:
    lines = stream(unit(["f"], FILE, **{"check-results": check(healthy=False)}), STATS)
    async with scripted([lines]) as (gateway, store):
        flags = CheckFlags(verify=True)
        (checked,) = [found async for found in GatewaySurvey(store).check(DIRECTORY, flags, lambda stats: None)]
    assert checked.health is not None
    assert not checked.health.healthy
    assert checked.health.corrupt == {("v0-a", 2)}
    assert gateway.targets[0].endswith("?t=stream-deep-check&verify=true")


async def test_repair_gives_what_was_done() -> None:
    data = {
        "storage-index": "aaaa",
        "repair-attempted": True,
        "repair-successful": True,
        "pre-repair-results": check(healthy=False),
        "post-repair-results": check(healthy=True),
    }
    lines = stream(unit(["f"], FILE, **{"check-and-repair-results": data}), STATS)
    async with scripted([lines]) as (_, store):
        flags = CheckFlags(repair=True)
        (checked,) = [found async for found in GatewaySurvey(store).check(DIRECTORY, flags, lambda stats: None)]
    assert checked.repair is not None
    assert checked.repair.successful
    assert checked.repair.after.healthy


async def test_stream_that_breaks_off_is_continued_by_listings() -> None:
    unread: list[tuple[Visited, GridError]] = []
    stats: list[Mapping[str, object]] = []

    def answer(asked: Asked) -> Reply:
        if "stream-manifest" in asked.target:
            return stream(unit([], DIRECTORY), "ERROR: UnrecoverableFileError(no)", "words")
        if "DIR2%3Amrsgi" in asked.target:
            return reply(listing(lost=OTHER_NODE, f=FILE_NODE))
        return reply("UnrecoverableFileError: no", "410 Gone")

    async with scripted(answer) as (_, store):
        survey = GatewaySurvey(store)
        found = [v async for v in survey.visit(DIRECTORY, stats.append, lambda v, error: unread.append((v, error)))]
    assert [visited.path for visited in found] == [(), ("f",), ("lost",)]
    ((visited, error),) = unread
    assert visited.target == OTHER
    assert isinstance(error, NotEnoughSharesError)
    assert "size-directories" not in stats[0]


async def test_stream_of_a_directory_that_cannot_be_read_ends_with_its_error() -> None:
    def answer(asked: Asked) -> Reply:
        return stream("ERROR: X(no)") if "stream" in asked.target else reply("NoSharesError: no", "410 Gone")

    async with scripted(answer) as (_, store):
        with pytest.raises(NotEnoughSharesError):
            async for _ in GatewaySurvey(store).visit(DIRECTORY, lambda stats: None):
                pass


async def test_directory_that_the_gateway_cannot_read_is_reported() -> None:
    unread: list[GridError] = []
    lines = stream(unit([], DIRECTORY), unit(["d"], OTHER, error="UnrecoverableFileError: no"), STATS)
    async with scripted([lines]) as (_, store):
        survey = GatewaySurvey(store)
        assert len([v async for v in survey.visit(DIRECTORY, lambda s: None, lambda v, e: unread.append(e))]) == 2
    assert isinstance(unread[0], NotEnoughSharesError)


async def test_stream_in_many_pieces_gives_the_lines_it_has() -> None:
    lines = "".join(json.dumps(line) + "\n" for line in (unit([], DIRECTORY), unit(["a"], FILE), STATS)).encode()
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in lines) + b"0\r\n\r\n"
    async with scripted([Reply(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks)]) as (_, store):
        found = [visited.path async for visited in GatewaySurvey(store).visit(DIRECTORY, lambda stats: None)]
    assert found == [(), ("a",)]


async def test_stream_with_a_line_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grid.cli.webapi.surveys.MAX_CHECK_JSON", 5000)
    async with scripted([reply(b"[" * 6000, length=10**9)]) as (_, store):
        with pytest.raises(GatewayError, match="is too long"):
            async for _ in GatewaySurvey(store).visit(DIRECTORY, lambda stats: None):
                pass


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (stream(unit([], DIRECTORY)), GatewayError),
        (stream("{"), GatewayError),
        (stream([]), GatewayError),
        (stream({"path": [1], "cap": ""}), GatewayError),
        (stream({"path": [], "cap": 1}), GatewayError),
        (stream({"type": "stats"}), GatewayError),
        (stream(STATS, unit([], DIRECTORY)), GatewayError),
        (reply(json.dumps(unit([], DIRECTORY)) + "\n", length=10_000, closes=True), PeerGoneError),
    ],
)
async def test_stream_that_is_incomplete_or_invalid_is_an_error(answer: Reply, error: type[GridError]) -> None:
    async with scripted([answer]) as (_, store):
        with pytest.raises(error):
            async for _ in GatewaySurvey(store).visit(DIRECTORY, lambda stats: None):
                pass


@pytest.mark.parametrize(
    "data",
    [None, {}, {"storage-index": "a b", "results": {"healthy": True}}, {"storage-index": "aaaa", "results": {}},
     {"storage-index": "aaaa", "results": {"healthy": True, "recoverable": True}},
     {"storage-index": "aaaa", "results": {"healthy": True, "recoverable": True, **COUNTS, "list-corrupt-shares": [1]}}],
)  # fmt: skip
async def test_check_without_a_valid_result_is_an_error(data: object) -> None:
    async with scripted([reply(data)]) as (_, store):
        with pytest.raises(GatewayError):
            await store.check(FILE)
