"""The packed form of queries about several files: round trips, and everything else is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.errors import FormatError
from grid.limits import FIND_CALL_FILES, READ_CALL_BYTES
from grid.ports import Find, Range, StorageIndex
from grid.wire.packed.find_messages import (
    MAX_FIND_MESSAGE,
    MAX_FIND_RANGES,
    Found,
    finder_of,
    pack_find_answers,
    pack_finds,
    parse_find_answers,
    parse_finds,
)
from tests.support.scripted_server import Script, ScriptedServer
from tests.support.virtual_time import VirtualRuntime

RANGES = st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 2**32 - 1)), max_size=5)
FINDS = st.lists(
    st.builds(lambda index, ranges: Find(StorageIndex(index), ranges), st.binary(min_size=16, max_size=16), RANGES),
    max_size=5,
)


def find(number: int, *ranges: Range) -> Find:
    return Find(StorageIndex(number.to_bytes(16, "big")), ranges)


async def ask(server: ScriptedServer, finds: list[Find]) -> list[Found | None]:
    return list(await finder_of(server)(finds))


def plain(answers: list[Found | None]) -> list[object]:
    return [
        found and {number: [bytes(piece) for piece in pieces] for number, pieces in found.items()} for found in answers
    ]


@given(FINDS)
def test_finds_when_packed_and_parsed_are_the_same(finds: list[Find]) -> None:
    parsed = parse_finds(pack_finds(finds))
    assert [(each.storage_index, list(each.ranges)) for each in parsed] == [
        (each.storage_index, list(each.ranges)) for each in finds
    ]


@given(FINDS.filter(bool), st.data())
def test_message_when_cut_is_refused_or_has_fewer_questions(finds: list[Find], data: st.DataObject) -> None:
    message = pack_finds(finds)
    try:
        parsed = parse_finds(message[: data.draw(st.integers(0, len(message) - 1))])
    except FormatError:
        return
    assert len(parsed) < len(finds)


@given(st.binary(max_size=300))
def test_message_when_it_is_noise_is_refused_or_parsed(message: bytes) -> None:
    try:
        parse_finds(message)
    except FormatError:
        pass


def test_message_when_it_asks_too_much_is_refused() -> None:
    assert len(parse_finds(pack_finds([find(1)] * FIND_CALL_FILES))) == FIND_CALL_FILES
    for message in (
        pack_finds([find(1)] * (FIND_CALL_FILES + 1)),
        bytes(16) + (MAX_FIND_RANGES + 1).to_bytes(2, "big") + bytes(12 * (MAX_FIND_RANGES + 1)),
        bytes(MAX_FIND_MESSAGE + 1),
    ):
        with pytest.raises(FormatError):
            parse_finds(message)
    with pytest.raises(ValueError, match="ranges"):
        pack_finds([find(1, *[(0, 1)] * (MAX_FIND_RANGES + 1))])


def test_answers_when_packed_and_parsed_are_the_same() -> None:
    finds = [find(1, (0, 3), (9, 9)), find(2, (0, 1)), find(3), find(4, (0, 1))]
    answers: list[Found | None] = [{7: [b"abc", b""], 0: []}, None, {5: []}, {}]  # type: ignore[dict-item]
    assert plain(parse_find_answers(b"".join(pack_find_answers(answers)), finds)) == plain(answers)


@pytest.mark.parametrize(
    ("answers", "finds"),
    [
        ([{}], []),
        ([], [find(1)]),
        ([{0: [b"a", b"b"]}], [find(1, (0, 1))]),
        ([{0: [b"ab"]}], [find(1, (0, 1))]),
    ],
)
def test_answers_when_they_do_not_fit_the_questions_are_refused(answers: list[Found | None], finds: list[Find]) -> None:
    with pytest.raises(FormatError):
        parse_find_answers(b"".join(pack_find_answers(answers)), finds)


@given(st.binary(max_size=100))
def test_answers_when_they_are_noise_are_refused_or_parsed(answer: bytes) -> None:
    try:
        parse_find_answers(answer, [find(1, (0, 5)), find(2)])
    except FormatError:
        pass


def test_finder_when_the_server_looks_for_one_file_at_a_time_asks_one_by_one() -> None:
    runtime = VirtualRuntime()
    server = ScriptedServer("s", runtime.clock, Script(broken=frozenset({1})))
    server.shares = {find(number).storage_index: {number: b"share %d" % number} for number in range(3)}
    answers = runtime.run(ask(server, [find(number, (0, 99)) for number in range(4)]))
    assert plain(answers) == [{0: [b"share 0"]}, None, {2: [b"share 2"]}, {}]


def test_finder_when_the_answers_outgrow_one_leaves_data_out() -> None:
    runtime = VirtualRuntime()
    server = ScriptedServer("s", runtime.clock)
    half = READ_CALL_BYTES // 2
    server.shares = {find(number).storage_index: {0: bytes(half)} for number in range(3)}
    answers = runtime.run(ask(server, [find(number, (0, half)) for number in range(3)]))
    assert [[len(piece) for pieces in (found or {}).values() for piece in pieces] for found in answers] == [
        [half],
        [half],
        [],
    ]
