"""Sampling processes during an operation."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from itertools import pairwise

import pytest

from perf.sampling.sampler import CHILDREN_EVERY, Sampler, children_of, stalls, thinned

WORK = """
import time
held = bytearray(30_000_000)
while time.process_time() < 0.3: pass
print(flush=True)
input()
"""


def test_command_that_is_started_meanwhile_counts_as_the_clients() -> None:
    with Sampler({"client": [], "server0": [os.getpid()]}, interval_s=0.01) as sampler:
        command = subprocess.Popen(
            [sys.executable, "-c", WORK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert command.stdout is not None
        command.stdout.readline()  # It lives until the sampler's last look: how often that looks before is the machine's.
    command.communicate("\n")
    spent, series = sampler.watched.spent, sampler.watched.series
    assert spent["client"].cpu_s >= 0.2
    assert spent["client"].resident > 30_000_000
    assert spent["server0"].resident > 0
    assert len(series.at_ms) == len(series.cpu_ms["client"]) == len(series.resident_kib["server0"]) > 2
    assert list(series.at_ms) == sorted(series.at_ms)
    assert series.cpu_ms["client"][-1] >= 200


def test_what_was_started_before_and_is_not_watched_counts_for_nobody() -> None:
    stranger = subprocess.Popen([sys.executable, "-c", WORK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert stranger.stdout is not None
    stranger.stdout.readline()
    with Sampler({"client": []}) as sampler:
        pass
    stranger.communicate("\n")
    assert sampler.watched.spent["client"].resident == 0


def test_watched_processes_are_seldom_asked_for_children(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    seen = threading.Event()

    def counted(pid: int) -> list[int]:
        asked.append(pid)
        if asked.count(os.getpid()) > 3 * CHILDREN_EVERY:
            seen.set()
        return children_of(pid)

    node = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    monkeypatch.setattr("perf.sampling.sampler.children_of", counted)
    with Sampler({"client": [], "server0": [node.pid]}, interval_s=0.001):
        assert seen.wait(60)
    node.communicate(b"\n")
    assert asked.count(node.pid) <= asked.count(os.getpid()) / CHILDREN_EVERY + 2


def test_member_that_has_ended_has_spent_nothing() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    with Sampler({"client": [ended.pid]}) as sampler:
        pass
    assert sampler.watched.spent["client"].cpu_s == 0


def test_pressure_where_the_kernel_says_it_is_a_part_of_the_time() -> None:
    with Sampler({"client": []}) as sampler:
        pass
    assert set(sampler.watched.pressure) == set(stalls())
    series = sampler.watched.series
    assert {name: len(waited) for name, waited in series.waited_ms.items()} == dict.fromkeys(
        stalls(), len(series.at_ms)
    )
    assert all(0 <= a <= b for waited in series.waited_ms.values() for a, b in pairwise(waited))


def test_series_where_the_kernel_says_nothing_of_pressure_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perf.sampling.sampler.PRESSURES", ("nothing",))
    with Sampler({"client": []}) as sampler:
        pass
    assert sampler.watched.series.waited_ms == {}


@pytest.mark.parametrize(("count", "most"), [(0, 5), (1, 5), (5, 5), (6, 5), (100, 5), (1201, 1200), (7, 2)])
def test_points_when_there_are_too_many_keep_the_first_and_the_last(count: int, most: int) -> None:
    kept = thinned(range(count), most)
    assert len(kept) <= most
    assert kept == sorted(set(kept))
    if count:
        assert (kept[0], kept[-1]) == (0, count - 1)


def test_children_when_the_kernel_does_not_list_them_are_found_by_their_parents(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    listed = children_of(os.getpid())
    monkeypatch.setattr("perf.sampling.sampler._HAS_CHILDREN", False)
    assert child.pid in listed
    assert sorted(listed) == sorted(children_of(os.getpid()))
    child.communicate(b"\n")
    assert children_of(child.pid) == []


def test_what_a_server_starts_counts_as_the_servers() -> None:
    starts = f"import subprocess, sys; input(); subprocess.run([sys.executable, '-c', {WORK!r}])"
    server = subprocess.Popen([sys.executable, "-c", starts], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert server.stdin is not None and server.stdout is not None
    with Sampler({"client": [], "server0": [server.pid]}, interval_s=0.01) as sampler:
        server.stdin.write("\n")
        server.stdin.flush()
        server.stdout.readline()
    server.communicate("\n")

    assert sampler.watched.spent["client"].cpu_s < 0.1, "the watching itself at most"
    assert sampler.watched.spent["server0"].cpu_s >= 0.2
