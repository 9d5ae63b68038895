"""Where a cell runs: topology, medium and processor limits, by their names in campaigns. Pure."""

from __future__ import annotations

from attrs import frozen

TOPOLOGIES = (
    "loopback",
    "atlas",
    "wan1",
    "wan30",
    "wan100",
    "lossy",
    "lossy-bbr",
    "adsl",
    "slow-server",
    "slow-client",
    "existing",
    "machines",
)
MEDIA = ("tmpfs", "ext4", "xfs", "sshfs", "sshfs-aes128-gcm", "throttled", "delayed")


@frozen(kw_only=True, order=True)
class Site:
    """A key: cells of equal sites share one topology.

    medium: of the shares, one of MEDIA; empty for the campaign's own directory. server_cpu, client_cpu: fraction of one
    core that each server's processes and the client's may use; 0.0 for no limit. aes: whether they may use AES
    instructions. node: the client directory of a real grid, for the topology `existing`.
    """

    topology: str = "loopback"
    medium: str = ""
    server_cpu: float = 0.0
    client_cpu: float = 0.0
    aes: bool = True
    node: str = ""

    def __str__(self) -> str:
        limits = [
            f"{name} at {part:.0%} of a core"
            for name, part in (("servers", self.server_cpu), ("client", self.client_cpu))
            if part
        ]
        words = [
            self.topology,
            self.medium and f"on {self.medium}",
            *limits,
            "" if self.aes else "without AES instructions",
        ]
        return ", ".join(word for word in words if word)


LOOPBACK = Site()
"""Everything on this machine, without limits."""
