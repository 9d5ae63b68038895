"""Runs a workload's driver, and ends everything it started in any event."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from attrs import asdict, evolve

from perf.campaigns.workload import Workload
from perf.peers.contract import Peer
from perf.peers.programs import MissingPeerError
from perf.records.record import RecordWriter
from perf.systems.contract import Capabilities
from perf.workloads.copying import copy_modes, streams
from perf.workloads.doors import doors
from perf.workloads.folders import size_count, tiny_files
from perf.workloads.growing import faults, scale
from perf.workloads.moving import moving
from perf.workloads.processor import PROCESSORS, ciphers_micro
from perf.workloads.programs import REFUSABLE, scp_ciphers, transfer_modes, with_ciphers
from perf.workloads.rows import Begun, Table
from perf.workloads.storing import chunking, hashing, repair, reverify
from perf.workloads.subjects import make_subject

Driver = Callable[[Workload, Path, Table], None]

DRIVERS: Mapping[str, Driver] = {
    "copy-modes": copy_modes,
    "streams": streams,
    "size-count": size_count,
    "tiny-files": tiny_files,
    "scp-ciphers": scp_ciphers,
    "transfer-modes": transfer_modes,
    "ciphers-micro": ciphers_micro,
    "reverify": reverify,
    "hashing": hashing,
    "chunking": chunking,
    "repair": repair,
    "scale": scale,
    "faults": faults,
    "doors": doors,
    "moving": moving,
}


def prepared(workload: Workload, seed: int) -> Workload:
    """The workload with its seed, and with every system by name."""
    workload = evolve(workload, seed=seed)
    if workload.driver == "ciphers-micro":
        return evolve(workload, systems=list(PROCESSORS))
    return with_ciphers(workload) if workload.driver == "scp-ciphers" else workload


def capabilities(workload: Workload) -> dict[str, dict[str, Any]]:
    """What each system does with bytes; processors do nothing with them."""
    if workload.driver == "ciphers-micro":
        return {}
    return {label: asdict(_capabilities(make_subject(label, workload.servers))) for label in workload.systems}


def run_workload(
    workload: Workload,
    directory: Path,
    writer: RecordWriter,
    tell: Callable[[str], None],
    environment: Mapping[str, Any],
    begun: Begun | None = None,
) -> int:
    """Do all work that was not completed before an interruption; return the number of failed operations.

    A cipher that a server refuses is not a failure, since it is what the workload asks for. workload: from `prepared`.
    directory: exists; everything is made below it.
    """
    with ExitStack() as stack:
        table = Table(writer, tell, environment, stack, begun, workload.runs)
        DRIVERS[workload.driver](workload, directory, table)
        table.end()
    return sum(sample.seconds is None and sample.scenario != REFUSABLE for sample in table.samples)


def _capabilities(peer: Peer) -> Capabilities:
    said = peer.properties
    try:
        versions: Mapping[str, str] = peer.versions()
    except MissingPeerError as gap:
        versions = {gap.name: "missing"}
    return Capabilities(
        expansion=said.expansion,
        encrypts=said.encrypts,
        proves=said.proves,
        syncs=said.syncs,
        survives=said.survives,
        versions=versions,
        notes=said.notes,
    )
