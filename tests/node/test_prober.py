"""Probing servers in doubt in the background."""

from __future__ import annotations

import pytest
from attrs import define, field

from grid.engine.server_memory import PROBATION_S, ServerMemory
from grid.errors import PeerRefusedError
from grid.immutable.share import requests as immutable_requests
from grid.mutable.share import requests as mutable_requests
from grid.node.prober import ANSWER_S, FIRST_PAUSE_S, LONGEST_PAUSE_S, PROBES, Prober
from grid.ports import ServerId
from tests.support.scripted_server import ScriptedServer
from tests.support.virtual_time import VirtualRuntime

S0, S1 = ServerId("s0"), ServerId("s1")


@define
class Stage:
    """Two servers and their prober."""

    runtime: VirtualRuntime = field(factory=VirtualRuntime)
    memory: ServerMemory = field(factory=ServerMemory)
    servers: dict[ServerId, ScriptedServer] = field(init=False)
    prober: Prober = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.servers = {name: ScriptedServer(name, self.runtime.clock) for name in (S0, S1)}
        self.prober = Prober(self.memory, self.runtime, self.servers.get)

    def silent(self, name: ServerId, kind: str = "ReadShares") -> None:
        self.memory.silent(name, kind, self.runtime.clock.now())

    def wait(self, seconds: float) -> None:
        self.runtime.run(self.runtime.clock.sleep(seconds))

    @property
    def timers(self) -> int:
        return len(self.runtime.clock.task_clock.getDelayedCalls())


@pytest.fixture
def stage() -> Stage:
    stage = Stage()
    stage.prober.start()
    return stage


def test_prober_when_no_server_is_in_doubt_asks_nothing_and_has_no_timer(stage: Stage) -> None:
    stage.memory.answered(S0, "ReadShares", 0.0)
    stage.wait(100)
    assert not stage.servers[S0].calls and not stage.timers


def test_prober_when_a_server_was_silent_asks_it_soon_and_its_answer_ends_the_doubt(stage: Stage) -> None:
    stage.silent(S0)
    stage.wait(FIRST_PAUSE_S + 0.1)
    assert stage.servers[S0].calls == ["get_version", "read_shares"] and not stage.servers[S1].calls
    assert not stage.memory.is_doubtful(S0, "ReadShares") and not stage.timers


@pytest.mark.parametrize("fault", [{"silent_from": 0}, {"dead_from": 0}])
def test_prober_when_a_server_stays_away_asks_it_ever_more_rarely_until_it_is_back(
    stage: Stage, fault: dict[str, int]
) -> None:
    script = stage.servers[S0].script
    for name, value in fault.items():
        setattr(script, name, value)
    stage.silent(S0)
    stage.wait(600)
    asked = len(stage.servers[S0].calls)
    assert 600 / (LONGEST_PAUSE_S + ANSWER_S) - 1 < asked < 600 / LONGEST_PAUSE_S + 8
    assert stage.memory.is_doubtful(S0, "ReadShares")
    script.silent_from = script.dead_from = None
    stage.wait(LONGEST_PAUSE_S + ANSWER_S)
    assert not stage.memory.is_doubtful(S0, "ReadShares") and not stage.timers


@pytest.mark.parametrize("only", [frozenset(), frozenset({"read_shares"})])
def test_prober_when_a_distant_server_leaves_a_probe_unanswered_confirms_the_doubt(
    stage: Stage, only: frozenset[str]
) -> None:
    script = stage.servers[S0].script
    script.silent_from, script.only = 0, only
    stage.memory.latency(S0).quickest_s = 0.1
    stage.silent(S0)
    kinds = ("ReadShares",)
    assert not stage.memory.is_doubtful_for_any(S0, kinds, kinds)
    stage.wait(FIRST_PAUSE_S + ANSWER_S + 0.1)
    assert stage.memory.is_doubtful_for_any(S0, kinds, kinds)


def test_prober_when_another_answer_ends_the_doubt_first_asks_nothing(stage: Stage) -> None:
    stage.silent(S0)
    stage.memory.answered(S0, "ReadShares", 0.1)
    stage.wait(100)
    assert not stage.servers[S0].calls and not stage.timers


def test_prober_when_a_server_stalls_again_and_again_on_one_kind_asks_until_its_probation_is_over(stage: Stage) -> None:
    for _ in range(2):
        stage.silent(S0)
        stage.wait(FIRST_PAUSE_S + 0.5)
        stage.silent(S0)
    stage.wait(2 * LONGEST_PAUSE_S + 4 * PROBATION_S)
    assert not stage.memory.has_doubts(S0) and not stage.timers


def test_prober_when_a_server_falls_silent_again_asks_it_soon_however_long_its_pauses_are(stage: Stage) -> None:
    stage.servers[S0].script.dead_from = 0
    stage.silent(S0)
    stage.wait(200)
    stage.servers[S0].script.dead_from = None
    stage.memory.heard(S0, stage.runtime.clock.now())
    stage.silent(S0, "WriteShares")
    asked = len(stage.servers[S0].calls)
    stage.wait(FIRST_PAUSE_S + 0.1)
    assert len(stage.servers[S0].calls) == asked + 1


def test_prober_when_a_server_stalls_on_reads_alone_keeps_the_doubt_whatever_else_it_answers(stage: Stage) -> None:
    script = stage.servers[S0].script
    script.silent_from, script.only = 0, frozenset({"read_shares"})
    stage.silent(S0)
    stage.silent(S0, "WriteShares")
    stage.wait(FIRST_PAUSE_S + 0.1)
    assert stage.memory.is_doubtful(S0, "ReadShares") and not stage.memory.is_doubtful(S0, "WriteShares")
    script.silent_from = None
    stage.wait(LONGEST_PAUSE_S + ANSWER_S)
    assert not stage.memory.is_doubtful(S0, "ReadShares") and not stage.timers


def test_prober_when_a_server_refuses_the_question_again_takes_that_for_an_answer(stage: Stage) -> None:
    script = stage.servers[S0].script
    script.dead_from, script.only = 0, frozenset({"read_shares"})
    script.failure = lambda: PeerRefusedError("no", kind="KeyError")
    stage.silent(S0)
    stage.wait(FIRST_PAUSE_S + 0.1)
    assert not stage.memory.is_doubtful(S0, "ReadShares") and not stage.timers


def test_probes_are_of_kinds_of_request_that_exist() -> None:
    classes = {name for module in (immutable_requests, mutable_requests) for name in vars(module)}
    assert set(PROBES) <= classes


def test_prober_when_a_server_is_no_longer_known_forgets_it(stage: Stage) -> None:
    del stage.servers[S0]
    stage.silent(S0)
    stage.wait(FIRST_PAUSE_S + 0.1)
    assert not stage.timers


def test_prober_when_it_starts_asks_those_that_are_in_doubt_already() -> None:
    stage = Stage()
    stage.silent(S1)
    stage.prober.start()
    stage.wait(FIRST_PAUSE_S + 0.1)
    assert stage.servers[S1].calls == ["get_version", "read_shares"]


def test_ask_once_when_servers_are_in_doubt_asks_each_at_once_and_never_again() -> None:
    stage = Stage()
    stage.servers[S1].script.silent_from = 0
    stage.silent(S0)
    stage.silent(S1)
    stage.prober.ask_once()
    stage.wait(0.02)
    assert not stage.memory.has_doubts(S0) and stage.memory.has_doubts(S1)
    stage.wait(600)
    assert [server.calls for server in stage.servers.values()] == [
        ["get_version", "read_shares"],
        ["get_version"],
    ] and not stage.timers


def test_close_when_probes_wait_or_are_under_way_leaves_no_timer(stage: Stage) -> None:
    stage.servers[S0].script.silent_from = 0
    stage.silent(S0)
    stage.wait(FIRST_PAUSE_S + 0.1)
    stage.silent(S1)
    stage.prober.close()
    assert not stage.timers
    stage.memory.answered(S1, "ReadShares", 5.0)
    stage.silent(S1)
    assert not stage.timers
