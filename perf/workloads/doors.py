"""Doors beside other ways in: files up and down, listings by pages, first bytes, and clients that read and write too slowly."""

from __future__ import annotations

import json
import os
import urllib.parse
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from attrs import evolve

from grid.caps import KnownCap, parse_cap
from grid.s3.object_info import ObjectInfo
from perf.campaigns.arrivals import Schedule
from perf.campaigns.workload import Workload, parse_set
from perf.peers.boto3_peer import Boto3
from perf.peers.contract import Cost, Peer, PeerError
from perf.peers.grids import GridPeer
from perf.peers.object_servers import GridServer
from perf.peers.s3_commands import BUCKET, TUNED_WORKERS, S3Peer, S5cmd
from perf.peers.sftp_door import SftpAtGrid, SshfsAtGrid
from perf.processes.open_doors import S3Door
from perf.records.record import Factor
from perf.sampling.usage import peak_resident
from perf.workloads.copying import up_and_down
from perf.workloads.files import make_files
from perf.workloads.folders import folder_up_and_down
from perf.workloads.rows import Meter, Table, blank, describe
from perf.workloads.slow_clients import slow_at_s3, slow_at_sftp, slow_at_web
from perf.workloads.subjects import each_subject, empty_folder, shuffled, take
from perf.workloads.verifying import digest

COMMANDS = 100
"""Sets of more files are left to permanent clients, and to one command of s5cmd: one for each file would measure the command."""

FIRST_BYTES = 20
FIRST_SIZE = 2**20
SLOW_SIZE = 6_000_000
KEYS_BELOW = 1000
"""Keys in each directory of a listing."""

ANSWER_S = 600.0
AT_ONCE = 4


def doors(settings: Workload, work: Path, table: Table) -> None:
    """Each set up and down, and what else each subject can show of sections of this module."""
    for run, peer in each_subject(settings, work, table):
        place = (run, peer)
        for name in settings.sets:
            _move(settings, work, table, place, name)
        if isinstance(peer, Boto3):
            for attempt in table.once(run, peer.label, {"ask": "first bytes"}):
                with attempt:
                    _first_bytes(settings, work, table, (run, peer))
        door = _s3_door(peer)
        if isinstance(peer, S5cmd) and not peer.tuned and door is not None and settings.keys:
            for attempt in table.once(run, peer.label, {"ask": "keys", "count": settings.keys}):
                with attempt:
                    _list_keys(settings.keys, work, table, (run, peer), door)
        if settings.slow_clients and ((isinstance(peer, Boto3) and door is not None) or _has_other_door(peer)):
            for attempt in table.once(run, peer.label, {"ask": "slow clients", "count": settings.slow_clients}):
                with attempt:
                    _keep_waiting(settings, work, table, place)


def _s3_door(peer: Peer) -> S3Door | None:
    return peer.server.grid.door if isinstance(peer, S3Peer) and isinstance(peer.server, GridServer) else None


def _has_other_door(peer: Peer) -> bool:
    """Whether it is of the kind whose slow clients are measured at the SFTP interface or at the web gateway."""
    if isinstance(peer, GridPeer):
        return peer.client == "gateway"
    return isinstance(peer, SftpAtGrid) and not isinstance(peer, SshfsAtGrid)


def _move(settings: Workload, work: Path, table: Table, place: tuple[int, Peer], files: str) -> None:
    """Put and get a set: a single file by itself, several with each number of jobs, by commands one after the other.

    A tuned s5cmd moves a large set by one command: it takes a tenth of the processor time that boto3 takes for a file.
    """
    run, peer = place
    size, count = parse_set(files)
    if count > COMMANDS and not peer.stays:
        if isinstance(peer, S5cmd) and peer.tuned:
            together: dict[str, Factor] = {"way": "together", "concurrency": TUNED_WORKERS}
            for attempt in table.once(run, peer.label, {"files": files, **together}):
                with attempt:
                    folder_up_and_down(settings, work, table, place, files, together)
        return
    for jobs in shuffled(settings, run, peer.label, settings.jobs if count > 1 and peer.stays else (1,)):
        plan = Schedule(workers=jobs, due_s=(0.0,) * count)
        factors: dict[str, Factor] = {"concurrency": jobs}
        for attempt in table.once(run, peer.label, {"files": files, **factors}):
            with attempt:
                up_and_down(settings, work, table, place, plan, [size] * count, factors)


def _first_bytes(settings: Workload, work: Path, table: Table, place: tuple[int, Boto3]) -> None:
    """Put objects, and read each once, with connections that are open already."""
    run, peer = place
    paths = make_files(work / "sources", [FIRST_SIZE] * FIRST_BYTES, f"{settings.seed}/{peer.label}/{run}/first")
    try:
        names = [f"first-{run}-{path.name}" for path in paths]
        for path, name in zip(paths, names, strict=True):
            peer.put(path, name)
        for path, name in zip(paths, names, strict=True):
            sample = blank(run, peer.label, "first byte", {"length": 1}, [FIRST_SIZE])
            take(table, sample, peer, peer.first_byte, name, digest(path))
    finally:
        empty_folder(work / "sources")


def _list_keys(count: int, work: Path, table: Table, place: tuple[int, S5cmd], door: S3Door) -> None:
    """List a bucket by pages; the sample's peak memory is the gateway's alone.

    s5cmd lists, because boto3 takes more time to parse a page than the gateway to make it.
    """
    run, peer = place
    (source,) = make_files(work / "sources", [10_000], f"keys/{run}")
    try:
        make_keys(door, "keys", count, source.read_bytes())
    finally:
        empty_folder(work / "sources")

    def listed() -> Cost:
        found, cost = peer.count_keys("keys/")
        if found != count:
            raise PeerError(f"{found} of {count} keys were listed")
        return cost

    _take_at_door(table, place, "list keys", count, listed)


def _take_at_door(
    table: Table, place: tuple[int, Peer], scenario: str, count: int, operation: Callable[[], Cost]
) -> None:
    """Measure an operation; the client's peak memory is that of the node with the door."""
    run, peer = place
    sample = evolve(blank(run, peer.label, scenario, {"count": count}, []), count=count)
    try:
        with Meter(peer) as meter:
            cost = operation()
        done = meter.fill(evolve(sample, seconds=cost.seconds), [cost])
        done = evolve(done, client_peak_rss=sum(map(peak_resident, _gateway_pids(peer))))
    except Exception as failure:  # noqa: BLE001 - whatever a system under test does wrong is a result
        done = evolve(sample, error=describe(failure))
    table.add(done)


def _gateway_pids(peer: Peer) -> list[int]:
    return list(peer.server.gateway_pids if isinstance(peer, S3Peer) else peer.client_pids)


def make_keys(door: S3Door, name: str, count: int, data: bytes) -> None:
    """Make a directory of objects in the bucket through the web gateway, KEYS_BELOW in each directory of it.

    All objects have the same contents, and the attributes of objects that were stored over S3.
    """
    cap = _ask(door, "PUT", "uri", data).decode()
    target = parse_cap(cap)
    assert isinstance(target, KnownCap)
    bucket = _ask(door, "GET", f"uri/{_quoted(door.buckets)}/{BUCKET}?t=uri").decode().strip()

    def child(number: int) -> list[object]:
        info = ObjectInfo(etag=os.urandom(16).hex(), modified=1.7e9 + number, nonce=os.urandom(8).hex())
        return ["filenode", {"ro_uri": cap, "metadata": info.to_metadata(target, {})}]

    def directory(first: int) -> tuple[str, str]:
        children = {f"{number:07}": child(number) for number in range(first, min(first + KEYS_BELOW, count))}
        made = _ask(door, "POST", "uri?t=mkdir-with-children", json.dumps(children).encode())
        return f"d{first:07}", made.decode().strip()

    with ThreadPoolExecutor(AT_ONCE) as pool:
        made = list(pool.map(directory, range(0, count, KEYS_BELOW)))
    above = {name: ["dirnode", {"rw_uri": cap}] for name, cap in made}
    _ask(door, "POST", f"uri/{_quoted(bucket)}?t=mkdir-with-children&name={name}", json.dumps(above).encode())


def _ask(door: S3Door, method: str, path: str, body: bytes | None = None) -> bytes:
    """The body of the web gateway's answer; OSError for a refusal."""
    headers = {"Content-Type": "application/octet-stream"}
    request = urllib.request.Request(f"http://127.0.0.1:{door.web}/{path}", body, headers, method=method)
    with urllib.request.urlopen(request, timeout=ANSWER_S) as answer:
        data: bytes = answer.read()
    return data


def _quoted(cap: str) -> str:
    return urllib.parse.quote(cap, safe="")


def _keep_waiting(settings: Workload, work: Path, table: Table, place: tuple[int, Peer]) -> None:
    """Let many clients ask for a large file and take none of it, or send the start of one; measure what the door holds."""
    run, peer = place
    (source,) = make_files(work / "sources", [SLOW_SIZE], f"{settings.seed}/{peer.label}/{run}/slow")
    try:
        peer.put(source, "slow")
    finally:
        empty_folder(work / "sources")
    count, pids = settings.slow_clients, _gateway_pids(peer)

    def attack() -> Cost:
        if isinstance(peer, GridPeer):
            return slow_at_web(peer.gateway_url, f"/uri/{_quoted(peer.cap('slow'))}", SLOW_SIZE, count, pids)
        if isinstance(peer, S3Peer):
            return slow_at_s3(peer.server, f"/{BUCKET}/slow", SLOW_SIZE, count, pids)
        assert isinstance(peer, SftpAtGrid)
        assert peer.grid.door is not None
        return slow_at_sftp(peer.grid.door, "/slow", SLOW_SIZE, count, pids)

    _take_at_door(table, place, "slow clients", count, attack)
