"""Topologies in namespaces: hosts behind a bridge, or around an emulated line with delay, loss and limited rates.

Each is measured when it is built, between the client and the first server.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any, Self

from attrs import frozen

from perf.network.contract import Host, Placement
from perf.network.line import DEVICE, GIGABIT, MEGABIT, Access, Line
from perf.network.namespaces import Namespaces, inside, run_tool
from perf.network.probe import RATE_S, Found, probe

NETWORK = "10.99.0"
BURST = "128k"
LATENCY = "20ms"

LARGEST_BURST = 16 * 1024
"""Bytes that TCP may hand to an emulated line in one piece: 1.3 ms of 100 Mbit/s."""


ETHERNET = Access(up=GIGABIT, down=GIGABIT)


@frozen(kw_only=True)
class Spokes:
    """Hosts around one middle. servers: how many. client, server: their access; the introducer has the client's.

    loss: of each packet. congestion: the congestion control of every connection; the machine's own if empty.
    """

    servers: int = 10
    client: Access = ETHERNET
    server: Access = ETHERNET
    loss: float = 0.0
    congestion: str = ""

    def accesses(self) -> dict[str, Access]:
        """Of each host by name: the client first, then the introducer, then the servers."""
        servers = {f"server{index}": self.server for index in range(self.servers)}
        return {"client": self.client, "introducer": self.client, **servers}


class SpokesTopology(ABC):
    """Hosts in namespaces around a middle, which subclasses make."""

    def __init__(
        self, name: str, spokes: Spokes, *, seed: int = 1, rate_s: float = RATE_S, urgent: bool = True
    ) -> None:
        """seed: of what is lost. rate_s: how long each rate is measured; 0 to leave the rates out.

        urgent: let the line run before all other processes.
        """
        self.name = name
        self.spokes = spokes
        self._seed = seed
        self._urgent = urgent
        self._rate_s = rate_s
        self._stack = ExitStack()
        self._names: dict[str, str] = {}
        self._hosts: dict[str, Host] = {}
        self._found: Found | None = None

    @property
    def placement(self) -> Placement:
        """Client, introducer and servers on hosts of their own."""
        servers = tuple(self._hosts[f"server{index}"] for index in range(self.spokes.servers))
        return Placement(client=self._hosts["client"], introducer=self._hosts["introducer"], servers=servers)

    def found(self) -> Mapping[str, Any]:
        """What the probe found, and what was asked for."""
        measured = self._found.described() if self._found else {}
        client, server = self.spokes.client, self.spokes.server
        asked = {
            "round_trip_s": 2 * (client.delay_s + server.delay_s),
            "client_up": client.up,
            "client_down": client.down,
            "server_up": server.up,
            "server_down": server.down,
            "loss": self.spokes.loss,
        }
        return {"topology": self.name, "servers": self.spokes.servers, "asked": asked, "measured": measured}

    def __enter__(self) -> Self:
        """Build, measure, and enter the client's host."""
        with ExitStack() as stack:
            spaces = stack.enter_context(Namespaces(self.name))
            for number, host in enumerate(self.spokes.accesses(), 1):
                self._names[host] = spaces.add(host)
                self._hosts[host] = spaces.host(host, self._names[host], f"{NETWORK}.{number}")
            self._connect(spaces, stack)
            self._found = probe(
                partial(inside, self._names["client"]),
                partial(inside, self._names["server0"]),
                self._hosts["server0"].address,
                self._rate_s,
            )
            stack.enter_context(inside(self._names["client"]))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *details: object) -> None:
        """Leave the client's host, end what runs on any host, and remove them all."""
        self._stack.close()

    @abstractmethod
    def _connect(self, spaces: Namespaces, stack: ExitStack) -> None:
        """Make the middle, and give each host its address and its way there."""


class Bridged(SpokesTopology):
    """Hosts on one Ethernet: virtual cables to a bridge, each held to the rates of its access by tbf. No delay, no loss."""

    def _connect(self, spaces: Namespaces, stack: ExitStack) -> None:
        switch = spaces.add("switch")
        spaces.batch(switch, ["link add bridge0 type bridge", "link set bridge0 up"])
        for number, (host, access) in enumerate(self.spokes.accesses().items()):
            name, port = self._names[host], f"port{number}"
            run_tool("ip", "-n", switch, *f"link add {port} type veth peer name eth0 netns {name}".split())
            spaces.batch(switch, [f"link set {port} master bridge0", f"link set {port} up"])
            spaces.batch(name, [f"addr add {self._hosts[host].address}/24 dev eth0", "link set eth0 up"])
            for namespace, device, rate in ((name, "eth0", access.up), (switch, port, access.down)):
                if rate:
                    shaping = f"qdisc add dev {device} root tbf rate {rate}bit burst {BURST} latency {LATENCY}"
                    run_tool("tc", "-n", namespace, *shaping.split())
            _set_congestion(spaces, name, "eth0", self.spokes.congestion)


class Lined(SpokesTopology):
    """Hosts around an emulated line."""

    line: Line

    def found(self) -> Mapping[str, Any]:
        """With the counts of the line so far."""
        return {**super().found(), "line": self.line.counts()}

    def _connect(self, spaces: Namespaces, stack: ExitStack) -> None:
        accesses = self.spokes.accesses()
        ends = [(self._names[host], self._hosts[host].address, access) for host, access in accesses.items()]
        self.line = stack.enter_context(Line(ends, loss=self.spokes.loss, seed=self._seed, urgent=self._urgent))
        for name, address, _ in ends:
            spaces.batch(
                name,
                [
                    f"addr add {address}/24 dev {DEVICE}",
                    f"link set {DEVICE} gso_max_size {LARGEST_BURST}",
                    f"link set {DEVICE} txqueuelen 10000",
                    f"link set {DEVICE} up",
                ],
            )
            _set_congestion(spaces, name, DEVICE, self.spokes.congestion)


def _set_congestion(spaces: Namespaces, name: str, device: str, congestion: str) -> None:
    """By route: an unprivileged default stays what it is on the machine."""
    if congestion:
        spaces.batch(name, [f"route replace {NETWORK}.0/24 dev {device} congctl {congestion}"])


def _wan(round_trip_s: float, *, rate: int = 100 * MEGABIT, loss: float = 0.0, congestion: str = "") -> Spokes:
    server = Access(delay_s=round_trip_s / 2, up=rate, down=rate)
    return Spokes(server=server, loss=loss, congestion=congestion)


ADSL = Spokes(client=Access(delay_s=0.015, up=20 * MEGABIT, down=100 * MEGABIT), server=ETHERNET)

SPOKES: dict[str, tuple[type[SpokesTopology], Spokes]] = {
    "atlas": (Bridged, Spokes(servers=3)),
    "wan1": (Lined, _wan(0.001, rate=GIGABIT)),
    "wan30": (Lined, _wan(0.03)),
    "wan100": (Lined, _wan(0.1)),
    "lossy": (Lined, _wan(0.03, loss=0.01, congestion="cubic")),
    "lossy-bbr": (Lined, _wan(0.03, loss=0.01, congestion="bbr")),
    "adsl": (Lined, ADSL),
}
"""By name: what makes them, and of what. wan1 is a line like the others, with 1 Gbit/s for each host."""
