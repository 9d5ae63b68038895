"""The emulated line, between two hosts in namespaces: what it delays, loses, holds back and counts."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from perf.network.contract import NetworkError
from perf.network.line import MEGABIT, Access, line_program
from perf.network.namespaces import NAMED, inside, owner_name
from perf.network.site import TOPOLOGIES, Site
from perf.network.spokes import Lined, Spokes
from perf.network.topologies import make_topology
from perf.processes.node_process import wait_until

PACKETS = 2000
AT_ONCE = 100
FEW = 10
"""The last packets of the probe's connection, which may meet the same fate."""

PAYLOAD = bytes(1000)
SO_RCVBUFFORCE = 33
"""Of Linux; Python has no name for it."""


@contextmanager
def lined(label: str, spokes: Spokes, seed: int = 1) -> Iterator[Lined]:
    """One client and one server around a line; no rate is measured."""
    with Lined(label, spokes, seed=seed, rate_s=0, urgent=False) as made:
        yield made


def space(made: Lined, host: str) -> str:
    """The name of a host's namespace."""
    (path,) = [path for path in NAMED.glob("gridperf-*") if path.name.endswith(f"-{made.name}-{host}")]
    return path.name


def send_datagrams(made: Lined, count: int) -> int:
    """How many of the packets arrive at the server, sent as fast as the line accepts them."""
    with inside(space(made, "server0")):
        receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with receiver, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        receiver.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 26)
        receiver.bind((made.placement.servers[0].address, 0))
        receiver.setblocking(False)
        wanted = counted(made)["packets"]
        for _ in range(count // AT_ONCE):
            for _ in range(AT_ONCE):
                sender.sendto(PAYLOAD, receiver.getsockname())
            wanted += AT_ONCE
            wait_until(partial(_taken, made, wanted), "the line to take the packets")
        wait_until(lambda: _settled(counted(made)), "all packets to arrive or be lost")
        arrived = 0
        while _received(receiver):
            arrived += 1
        return arrived


def counted(made: Lined) -> Counter[str]:
    """The counts of all hosts together."""
    return sum((Counter(host) for host in made.line.counts()["hosts"]), Counter())


def _taken(made: Lined, wanted: int) -> bool:
    return counted(made)["packets"] >= wanted


def _settled(counts: Counter[str]) -> bool:
    return counts["packets"] == sum(counts[fate] for fate in ("delivered", "lost", "dropped", "refused"))


def _received(receiver: socket.socket) -> bytes:
    try:
        return receiver.recv(2 * len(PAYLOAD))
    except BlockingIOError:
        return b""


def test_round_trip_when_a_line_delays_takes_at_least_that_long(line_possible: None) -> None:
    with lined("delay", Spokes(servers=1, client=Access(), server=Access(delay_s=0.01))) as made:
        measured = made.found()["measured"]
    assert measured["round_trips_s"][0] >= 0.02
    assert measured["round_trips_s"] == sorted(measured["round_trips_s"])


def test_packets_when_a_line_loses_a_tenth_are_lost_about_that_often(line_possible: None) -> None:
    with lined("loses", Spokes(servers=1, client=Access(), server=Access(), loss=0.1)) as made:
        before = counted(made)
        arrived = send_datagrams(made, PACKETS)
        counts = counted(made)
    assert 0 <= counts["lost"] - before["lost"] - (PACKETS - arrived) <= FEW
    assert PACKETS * 0.05 < PACKETS - arrived < PACKETS * 0.2
    assert counts["dropped"] == counts["refused"] == 0


def test_packets_when_more_wait_than_the_queue_holds_are_dropped(line_possible: None) -> None:
    access = Access(up=MEGABIT, down=MEGABIT)
    with lined("queue", Spokes(servers=1, client=access, server=Access())) as made:
        arrived = send_datagrams(made, PACKETS)
        counts = counted(made)
    assert arrived >= access.queue_bytes // (len(PAYLOAD) + 42)
    assert arrived < PACKETS
    assert 0 <= counts["dropped"] - (PACKETS - arrived) <= FEW
    assert counts["lost"] == 0


def test_congestion_control_when_a_topology_names_one_is_that_of_connections(line_possible: None) -> None:
    for name in ("cubic", "bbr"):
        with lined(name, Spokes(servers=1, client=Access(), server=Access(), congestion=name)) as made:
            assert made.found()["measured"]["congestion_control"] == name


def test_namespaces_when_a_topology_ends_are_gone(line_possible: None) -> None:
    with lined("ends", Spokes(servers=1)):
        assert list(NAMED.glob("gridperf-*-ends-*"))
    assert not list(NAMED.glob("gridperf-*-ends-*"))


def test_line_without_a_compiler_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(NetworkError, match="install gcc"):
        line_program()


def test_topology_of_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(NetworkError, match="wan100"):
        make_topology(Site(topology="wan5"), 3)
    made = [make_topology(Site(topology=name), 3) for name in TOPOLOGIES if name != "machines"]
    assert {one.name for one in made} >= {"loopback", "atlas", "wan1", "wan30", "wan100", "lossy", "lossy-bbr", "adsl"}
    assert owner_name(1).startswith("gridperf-1-")
