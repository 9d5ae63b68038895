"""Topologies in namespaces: hosts around a bridge, or around an emulated link with delay, loss and limited rates.

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
"""Bytes that TCP may pass to an emulated link at once: 1.3 ms at 100 Mbit/s."""


ETHERNET = Access(up=GIGABIT, down=GIGABIT)


@frozen(kw_only=True)
class Spokes:
    """Hosts around a center. servers: their number. client, server: their access; the introducer has the client's.

    loss: of each packet. congestion: the congestion control of every connection; empty for the machine's default.
    """

    servers: int = 10
    client: Access = ETHERNET
    server: Access = ETHERNET
    loss: float = 0.0
    congestion: str = ""

    def accesses(self) -> dict[str, Access]:
        """The access of each host by name: client, introducer, servers."""
        servers = {f"server{index}": self.server for index in range(self.servers)}
        return {"client": self.client, "introducer": self.client, **servers}


class SpokesTopology(ABC):
    """Hosts in namespaces around a center, which subclasses build."""

    def __init__(
        self, name: str, spokes: Spokes, *, seed: int = 1, rate_s: float = RATE_S, urgent: bool = True
    ) -> None:
        """seed: of packet loss. rate_s: seconds to measure each rate; 0 to skip the rates.

        urgent: run the link at real-time priority.
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
        """Client, introducer and servers on separate hosts."""
        servers = tuple(self._hosts[f"server{index}"] for index in range(self.spokes.servers))
        return Placement(client=self._hosts["client"], introducer=self._hosts["introducer"], servers=servers)

    def found(self) -> Mapping[str, Any]:
        """The probe's findings and the requested settings."""
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
        """Leave the client's host, end everything on all hosts, and remove them."""
        self._stack.close()

    @abstractmethod
    def _connect(self, spaces: Namespaces, stack: ExitStack) -> None:
        """Build the center, and give each host its address and route."""


class Bridged(SpokesTopology):
    """Hosts on one Ethernet: virtual cables to a bridge, each limited by tbf. No delay, no loss."""

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
    """Hosts around an emulated link."""

    line: Line

    def found(self) -> Mapping[str, Any]:
        """Includes the link's current counters."""
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
    """Set it by route, which leaves the machine's default alone."""
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
"""Topologies by name: class and parameters. wan1 is a link like the others, with 1 Gbit/s per host."""
