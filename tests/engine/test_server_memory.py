"""Servers in doubt: since when, for which requests, and until when."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.engine.server_memory import (
    MANY_BYTES,
    MOST_SERVERS,
    PROBATION_S,
    RESENT_S,
    SILENCE_FACTOR,
    SILENCE_FLOOR_S,
    ServerMemory,
)
from grid.ports import ServerId

S0 = ServerId("s0")

A, B, C = ServerId("a"), ServerId("b"), ServerId("c")


def test_server_when_nothing_is_known_of_it_is_trusted() -> None:
    memory = ServerMemory()
    assert not memory.is_doubtful(A) and not memory.is_doubtful(A, "ReadSlot")


def test_server_when_it_was_silent_is_in_doubt_for_every_kind_of_request() -> None:
    memory = ServerMemory()
    memory.answered(A, "ReadSlot", 1.0)
    memory.silent(A, "WriteSlot", 2.0)
    assert memory.is_doubtful(A, "WriteSlot") and memory.is_doubtful(A, "ReadSlot") and memory.is_doubtful(A)


def test_server_when_it_answers_another_kind_since_is_in_doubt_for_the_kind_it_was_silent_on_alone() -> None:
    memory = ServerMemory()
    memory.silent(A, "WriteSlot", 2.0)
    memory.answered(A, "ReadSlot", 3.0)
    assert memory.is_doubtful(A, "WriteSlot") and not memory.is_doubtful(A, "ReadSlot")
    memory.answered(A, "WriteSlot", 4.0)
    assert not memory.is_doubtful(A, "WriteSlot")


def test_server_when_it_could_not_be_reached_is_cleared_by_any_answer() -> None:
    memory = ServerMemory()
    for now in (1.0, 2.0, 3.0):
        memory.failed(A, "WriteSlot", now)
    memory.answered(A, "ReadSlot", 4.0)
    assert not memory.is_doubtful(A, "WriteSlot")


def test_probe_when_it_is_answered_clears_a_first_doubt_and_leaves_one_that_came_again_for_its_probation() -> None:
    memory = ServerMemory()
    memory.silent(A, "WriteSlot", 0.0)
    memory.heard(A, 1.0)
    assert not memory.is_doubtful(A, "WriteSlot")
    memory.silent(A, "WriteSlot", 3.0)
    memory.heard(A, 4.0)
    assert memory.is_doubtful(A, "WriteSlot") and not memory.is_doubtful(A, "ReadSlot")
    memory.heard(A, 3.0 + PROBATION_S)
    assert not memory.is_doubtful(A, "WriteSlot")
    memory.silent(A, "WriteSlot", 20.0)
    memory.heard(A, 20.0 + PROBATION_S)
    assert memory.is_doubtful(A, "WriteSlot")
    memory.answered(A, "WriteSlot", 40.0)
    memory.silent(A, "WriteSlot", 50.0)
    memory.heard(A, 51.0)
    assert not memory.is_doubtful(A, "WriteSlot"), "an answer of that kind begins anew"


def test_server_when_it_stalls_on_many_bytes_is_in_doubt_for_the_kind_until_it_has_sent_as_many() -> None:
    memory = ServerMemory()
    memory.silent(S0, "ReadShares" + MANY_BYTES, 1.0)
    memory.answered(S0, "ReadShares", 2.0)
    assert memory.is_doubtful(S0, "ReadShares") and not memory.is_doubtful(S0, "FindShares")
    memory.answered(S0, "ReadShares" + MANY_BYTES, 3.0)
    assert not memory.has_doubts(S0)


def test_server_when_it_has_sent_many_bytes_is_not_in_doubt_for_few() -> None:
    memory = ServerMemory()
    memory.silent(S0, "ReadShares", 1.0)
    memory.answered(S0, "ReadShares" + MANY_BYTES, 2.0)
    assert not memory.has_doubts(S0)


def test_probe_when_the_server_had_answered_other_questions_while_it_was_silent_leaves_the_doubt() -> None:
    memory = ServerMemory()
    memory.answered(S0, "FindShares", 3.0)
    memory.silent(S0, "ReadShares", 4.0, sent_at=1.0)
    memory.heard(S0, 5.0)
    assert memory.is_doubtful(S0, "ReadShares")
    memory.heard(S0, 4.0 + PROBATION_S)
    assert not memory.has_doubts(S0)


def test_probe_when_a_kind_is_asked_separately_leaves_the_doubt_to_that_answer() -> None:
    memory = ServerMemory()
    memory.silent(S0, "ReadFronts", 1.0)
    memory.failed(S0, "WriteSlot", 1.0)
    assert memory.silent_on(S0) == {"ReadFronts"}
    memory.heard(S0, 2.0, asked_apart={"ReadFronts", "WriteSlot"})
    assert memory.silent_on(S0) == {"ReadFronts"} and not memory.is_doubtful(S0, "WriteSlot")


def test_probe_when_the_server_had_said_nothing_at_all_since_clears_its_doubt_however_often_it_was_silent() -> None:
    memory = ServerMemory()
    for now in (1.0, 2.0, 3.0):
        memory.silent(A, "WriteSlot", now)
    later = ServerMemory()
    later.restore(memory.export(4.0), age_s=1.0, now=10.0)
    for restarted, now in ((memory, 5.0), (later, 11.0)):
        restarted.heard(A, now)
        assert not restarted.is_doubtful(A, "WriteSlot")


def test_server_when_connecting_fails_is_in_doubt_for_everything_until_it_answers_anything() -> None:
    memory = ServerMemory()
    memory.unreached(A, 1.0, 2.5)
    assert memory.is_unreached(A) and memory.is_doubtful(A, "ReadSlot") and memory.is_doubtful(A, "WriteSlot")
    memory.answered(A, "ReadSlot", 3.0)
    assert not memory.is_unreached(A) and not memory.has_doubts(A)
    memory.unreached(A, 2.5, 4.0)
    assert not memory.is_unreached(A), "it has answered since the attempt began"


def test_order_when_some_are_in_doubt_keeps_the_others_first_and_each_part_as_it_was() -> None:
    memory = ServerMemory()
    memory.silent(A, "FindShares", 1.0)
    memory.failed(C, "FindShares", 1.0)
    assert memory.trusted_first([C, A, B], ["FindShares"]) == [B, C, A]


def test_hook_when_a_server_falls_into_doubt_is_called_once_until_it_is_trusted_again() -> None:
    memory = ServerMemory()
    called: list[ServerId] = []
    memory.on_doubt = called.append
    memory.silent(A, "ReadSlot", 1.0)
    memory.silent(A, "WriteSlot", 2.0)
    assert called == [A]
    memory.heard(A, 3.0)
    memory.failed(A, "ReadSlot", 4.0)
    assert called == [A, A]


def test_request_given_up_when_others_were_as_slow_counts_as_no_silence() -> None:
    memory = ServerMemory()
    just = SILENCE_FACTOR * 1.0
    assert not memory.is_overdue(A, "ReadSlot", 0, 0.0, 1.0, just - 0.01)
    assert memory.is_overdue(A, "ReadSlot", 0, 0.0, 1.0, just)


def test_request_given_up_when_a_quicker_one_came_first_counts_as_no_silence() -> None:
    memory = ServerMemory()
    assert not memory.is_overdue(A, "ReadSlot", 0, 0.0, 0.001, SILENCE_FLOOR_S / 2)
    assert memory.is_overdue(A, "ReadSlot", 0, 0.0, 0.001, SILENCE_FLOOR_S)


def test_request_given_up_when_the_server_answered_its_kind_meanwhile_counts_from_then() -> None:
    memory = ServerMemory()
    memory.answered(A, "ReadSlot", 5.0)
    assert not memory.is_overdue(A, "ReadSlot", 0, 0.0, 0.001, 5.0 + SILENCE_FLOOR_S / 2)


def test_request_given_up_when_much_was_asked_for_counts_from_what_that_takes() -> None:
    memory = ServerMemory()
    memory.latency(A).learn(10**6, 10**6, 1.0)
    assert not memory.is_overdue(A, "ReadShares", 10**6, 0.0, 0.001, 3.5)
    assert memory.is_overdue(A, "ReadShares", 10**6, 0.0, 0.001, 6.0)


def test_request_given_up_when_its_answer_may_have_been_sent_twice_over_a_long_line_counts_as_no_silence() -> None:
    memory = ServerMemory()
    memory.latency(A).learn(100, 100, 0.04)
    resent = 0.06 + RESENT_S
    assert not memory.is_overdue(A, "FindShares", 0, 0.0, 0.06, resent - 0.01)
    assert memory.is_overdue(A, "FindShares", 0, 0.0, 0.06, resent + 0.01)


def abandon(memory: ServerMemory, sent_at: float, now: float) -> bool:
    """Abandon a request for which the slowest other server took a second. Returns whether the server is in doubt."""
    memory.abandoned(A, "ReadShares", 0, sent_at, 1.0, now)
    return memory.is_doubtful(A, "ReadShares")


def test_requests_given_up_when_the_server_misses_a_second_one_count_as_silence() -> None:
    memory = ServerMemory()
    assert not abandon(memory, 0.0, 2.0)
    assert not abandon(memory, 1.0, 2.0), "sent before the first was given up"
    assert not abandon(memory, 3.0, 4.0), "no longer than others took"
    assert abandon(memory, 5.0, 7.0)


def is_avoided(memory: ServerMemory) -> bool:
    """Whether an upload leaves the server out, which needs FindShares and WriteShares."""
    return memory.is_doubtful_for_any(A, ("FindShares", "WriteShares"), ("FindShares", "ReadShares"))


def distant(quickest_s: float = 0.03) -> ServerMemory:
    memory = ServerMemory()
    memory.latency(A).quickest_s = quickest_s
    return memory


@pytest.mark.parametrize("kind", ["FindShares", "ReadShares", "ReadShares" + MANY_BYTES])
def test_upload_when_a_distant_server_was_silent_once_on_a_read_leaves_it_out_only_once_that_is_confirmed(
    kind: str,
) -> None:
    memory = distant()
    memory.silent(A, kind, 1.0)
    assert memory.is_doubtful(A, kind) and not is_avoided(memory)
    memory.unanswered(A)
    assert is_avoided(memory)
    memory = distant()
    memory.silent(A, kind, 1.0)
    memory.silent(A, kind, 2.0)
    assert is_avoided(memory), "a second read was not answered either"
    memory = distant()
    memory.silent(A, kind, 1.0)
    memory.heard(A, 1.5)
    memory.silent(A, kind, 2.0, sent_at=1.1)
    assert memory.is_doubtful(A, kind) and not is_avoided(memory), "it answers other requests"


def test_upload_when_a_server_is_near_or_away_or_stalls_on_writes_leaves_it_out_at_once() -> None:
    near = distant(0.001)
    near.silent(A, "ReadShares", 1.0)
    away = distant()
    away.failed(A, "ReadShares", 1.0)
    stalled = distant()
    stalled.silent(A, "WriteShares" + MANY_BYTES, 1.0)
    assert all(map(is_avoided, (near, away, stalled)))


@pytest.mark.parametrize("by_probe", [True, False])
def test_requests_given_up_when_the_server_answers_in_between_count_as_no_silence(by_probe: bool) -> None:
    memory = ServerMemory()
    assert not abandon(memory, 0.0, 2.0)
    if by_probe:
        memory.heard(A, 3.0)
    else:
        memory.answered(A, "AskVersion", 3.0)
    assert not abandon(memory, 5.0, 7.0)
    assert abandon(memory, 8.0, 10.0)


def test_later_process_when_it_restores_begins_with_doubts_and_speeds() -> None:
    memory = ServerMemory()
    memory.latency(A).learn(1, 1, 0.02)
    memory.silent(B, "WriteSlot", 10.0)
    memory.answered(C, "ReadSlot", 10.0)
    document = json.loads(json.dumps(memory.export(20.0)))
    later = ServerMemory()
    later.restore(document, age_s=5.0, now=1000.0)
    assert later.latency(A).latency_s == pytest.approx(0.02) == later.latency(A).quickest_s
    assert later.is_doubtful(B, "ReadSlot") and not later.is_doubtful(C)
    later.heard(B, 1000.0)
    assert not later.is_doubtful(B)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["doubts", "latency_s", "byte_s", "ReadSlot", "x"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(
    document=_JSON
    | st.fixed_dictionaries({"format": st.just(1), "servers": st.dictionaries(st.text(max_size=4), _JSON)})
)
def test_restore_when_the_document_is_anything_never_fails_and_keeps_sane_numbers(document: Any) -> None:
    memory = ServerMemory()
    memory.restore(document, age_s=1.0, now=10.0)
    for server_id in list(document.get("servers", {}) if isinstance(document, dict) else {}):
        assert 0 <= memory.latency(ServerId(server_id)).time_of(1) < 1e13
    memory.export(11.0)


def test_memory_when_there_are_ever_more_servers_stays_bounded() -> None:
    memory = ServerMemory()
    for number in range(MOST_SERVERS + 10):
        memory.silent(ServerId(str(number)), "ReadSlot", 1.0)
    assert len(memory.export(1.0)["servers"]) == MOST_SERVERS
