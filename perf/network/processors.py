"""Slow machines: a topology with server and client limited to part of a core, with or without AES instructions."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any, Self

from attrs import asdict, evolve, frozen

from perf.network.contract import Host, Loopback, Placement, Topology
from perf.network.control_groups import PERIOD_US, ControlGroup

WITHOUT_AES = {"OPENSSL_ia32cap": "~0x200000200000000:~0x60000000000"}
"""Makes OpenSSL ignore AES-NI, PCLMULQDQ, VAES and VPCLMULQDQ.

Grid's AES is OpenSSL's. Its own kernels (hashing, erasure coding) use no AES instructions.
"""


@frozen(kw_only=True)
class Limits:
    """server, client: fraction of one core allowed for each server's host and for the client; 0.0 for no limit.

    aes: whether they may use the processor's AES instructions.
    """

    server: float = 0.0
    client: float = 0.0
    aes: bool = True


class Slowed:
    """Another topology with processor limits. Storage nodes on the same host share its limit."""

    def __init__(self, limits: Limits, inner: Topology | None = None, *, servers: int = 10) -> None:
        """inner: loopback by default. servers: hosts on loopback, which otherwise has only one."""
        self.limits = limits
        self._inner: Topology = inner or Loopback()
        self._servers = servers
        self._stack = ExitStack()
        self._groups: list[ControlGroup] = []
        self._placement = Placement()

    @property
    def name(self) -> str:
        """The inner topology's name; limits are a separate factor."""
        return self._inner.name

    @property
    def placement(self) -> Placement:
        """The inner topology's hosts, with the limited ones in their groups."""
        return self._placement

    def found(self) -> Mapping[str, Any]:
        """The inner topology's findings, the limits, and how often each has throttled processes."""
        throttled = {group.path.name.rpartition("-")[2]: group.statistics() for group in self._groups}
        return {
            **self._inner.found(),
            "limits": {**asdict(self.limits), "period_us": PERIOD_US},
            "throttled": throttled,
        }

    def __enter__(self) -> Self:
        """Build the inner topology and the groups."""
        with ExitStack() as stack:
            placement = stack.enter_context(self._inner).placement
            hosts = placement.servers
            if len(hosts) == 1 and self.limits.server:
                hosts = tuple(evolve(hosts[0], name=f"server{index}") for index in range(self._servers))
            client = evolve(placement.client, name="client")
            self._placement = evolve(
                placement,
                client=self._slow(client, self.limits.client, stack),
                servers=tuple(self._slow(host, self.limits.server, stack) for host in hosts),
            )
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *details: object) -> None:
        """End what runs in the groups, remove them, and leave the inner topology."""
        self._groups.clear()
        self._stack.close()

    def _slow(self, host: Host, part: float, stack: ExitStack) -> Host:
        environment = {**host.environment, **({} if self.limits.aes else WITHOUT_AES)}
        if not part:
            return evolve(host, environment=environment)
        group = stack.enter_context(ControlGroup("cpu", host.name))
        group.limit_processor(100 * part)
        self._groups.append(group)
        return evolve(host, prefix=(*host.prefix, *group.prefix), environment=environment)
