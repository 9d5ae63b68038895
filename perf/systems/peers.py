"""Peers as systems: programs other than grids, run as their users run them.

A single file takes one command. Several files form a folder, which one command moves with the program's own
concurrency, as its users would. Encodings mean nothing to a peer, and a capability is a file's name.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from perf.campaigns.campaign import Encoding, Format, Load
from perf.campaigns.labels import Label, parse_label
from perf.network.contract import Placement
from perf.peers.catalogue import make_peer as make
from perf.peers.contract import Cost, Peer
from perf.peers.programs import MissingPeerError, settle_tahoe
from perf.peers.servers import server_use
from perf.processes.installation import OWN, install_baseline
from perf.processes.node_directory import Transport
from perf.sampling.usage import Usage, cpu_seconds, peak_resident, reset_peaks, resident
from perf.systems.contract import Capabilities, Fetch, Member, NotOfferedError, System, WarmClient
from perf.systems.grid import GridSystem
from perf.systems.tahoe import TahoeSystem

T = TypeVar("T")


def make_peer(text: str) -> PeerSystem:
    """The system of a label in perf.campaigns.labels.PEERS, not started; MissingPeerError."""
    peer = make(text)
    peer.versions()
    return PeerSystem(peer)


class PeerSystem:
    """A peer behind the interface of campaigns."""

    def __init__(self, peer: Peer) -> None:
        self.label = peer.label
        self._peer = peer
        self._stored = 0
        self._idle_rss = 0

    def start(self, root: Path, servers: int, encodings: Sequence[Encoding], placement: Placement) -> None:
        """Start its server on the first server host, regardless of a grid's number of storage nodes."""
        self._peer.start(root, placement)
        self._idle_rss = resident(self._peer.client_pids)

    def stop(self) -> None:
        """End every process and remove every file."""
        self._peer.stop()

    def capabilities(self, encoding: Encoding) -> Capabilities:
        """The peer's own description."""
        said = self._peer.properties
        return Capabilities(
            expansion=said.expansion,
            encrypts=said.encrypts,
            proves=said.proves,
            syncs=said.syncs,
            survives=said.survives,
            versions=self._peer.versions(),
            notes=said.notes,
        )

    def refuses(self, load: Load, client: str) -> str:
        """Peers store only whole files."""
        if load.scenario != "put-get" or load.format != "chk":
            return "it stores whole files and nothing else"
        wanted = "warm" if self._peer.stays else "cli"
        return "" if client == wanted else f"it has only the client `{wanted}`"

    def members(self) -> Sequence[Member]:
        """Its server, and a permanent client."""
        clients = [Member(role="client", name=self.label, pid=pid) for pid in self._peer.client_pids]
        servers = enumerate(self._peer.server_pids)
        return [*clients, *(Member(role="server", name=self.label, pid=pid, index=index) for index, pid in servers)]

    def put(
        self, client: str, encoding: Encoding, sources: Sequence[Path], concurrency: int, format: Format = "chk"
    ) -> tuple[Sequence[str], Usage]:
        """Store one file, or several as a folder."""
        self._stored += 1
        name = f"stored{self._stored}"
        if len(sources) == 1:
            return [name], self._measured(lambda: self._peer.put(sources[0], name))
        folder = self._peer.root / "folder"
        folder.mkdir()
        try:
            for number, source in enumerate(sources):
                _link(source, folder / f"{number:06}")
            usage = self._measured(lambda: self._peer.put_folder(folder, name))
        finally:
            shutil.rmtree(folder)
        return [f"{name}/{number:06}" for number in range(len(sources))], usage

    def get(self, client: str, encoding: Encoding, fetches: Sequence[Fetch], concurrency: int) -> Usage:
        """Fetch one file, or all of a folder."""
        if any(fetch.length is not None for fetch in fetches):
            raise NotOfferedError(f"{self.label} reads no ranges here")
        names = {fetch.cap.partition("/")[0] for fetch in fetches}
        if len(names) != 1:
            raise NotOfferedError(f"{self.label} fetches what was stored together")
        (name,) = names
        if "/" not in fetches[0].cap:
            return self._measured(lambda: self._peer.get(name, fetches[0].target))
        folder = fetches[0].target.parent / "folder"
        try:
            usage = self._measured(lambda: self._peer.get_folder(name, folder))
            for fetch in fetches:
                (folder / fetch.cap.partition("/")[2]).rename(fetch.target)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        return usage

    def ask(self, encoding: Encoding, operation: Callable[[WarmClient], T], client: str = "warm") -> tuple[T, Usage]:
        """Refuse: peers support only files."""
        raise NotOfferedError(f"{self.label} stores whole files and nothing else")

    def server_cpus_s(self) -> list[float]:
        """Processor seconds of its server, including reaped children; empty without a server."""
        used = [server_use(pid) for pid in self._peer.server_pids]
        return [one.user_s + one.system_s for one in used] or [0.0]

    def server_peaks(self) -> list[int]:
        """Its server's peak memory in bytes."""
        return [server_use(pid).peak_rss for pid in self._peer.server_pids] or [0]

    def _measured(self, operation: Callable[[], Cost]) -> Usage:
        pids = self._peer.client_pids
        reset_peaks(pids)
        before = cpu_seconds(pids)
        cost = operation()
        self._peer.settle()
        return Usage(
            seconds=cost.seconds,
            client_cpu_s=cost.user_s + cost.system_s + cpu_seconds(pids) - before,
            client_idle_rss=self._idle_rss,
            client_peak_rss=cost.peak_rss + sum(peak_resident(pid) for pid in pids),
        )


def _link(source: Path, name: Path) -> None:
    try:
        os.link(source, name)
    except OSError:  # On another file system.
        shutil.copyfile(source, name)


def make_system(text: str) -> System:
    """The system of a label; ValueError if there is none, or if its program is not installed."""
    try:
        return _make_system(text, parse_label(text))
    except MissingPeerError as error:
        raise ValueError(f"{text}: {error}") from None


def _make_system(text: str, label: Label) -> System:
    transport: Transport = "foolscap" if label.base.endswith("@foolscap") else "http"
    if label.is_peer:
        return make_peer(text)
    if not label.is_grid:
        settle_tahoe()
        return TahoeSystem(text, transport)
    return GridSystem(
        text,
        transport,
        plaintext_reads=label.base == "grid@http-plain",
        durability=label.durability or "full",
        codec=label.codec or "isal",
        installation=install_baseline(label.commit) if label.commit else OWN,
        options=label.options,
    )
