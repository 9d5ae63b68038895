"""What `grid transfer` and packs save: tiny files and a second run over them, single slices, and folders between S3 and a grid."""

from __future__ import annotations

import json
import random
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median

from attrs import evolve

from perf.campaigns.workload import Workload, parse_set
from perf.peers.commands import read_peer, run_peer
from perf.peers.contract import Cost, Peer
from perf.peers.grids import GridPeer
from perf.peers.object_servers import Versity
from perf.peers.s3_commands import BUCKET, REGION, Rclone
from perf.records.record import Sample
from perf.sampling.touched import touch_for
from perf.workloads.files import evict, make_files
from perf.workloads.rows import Meter, Table, blank, describe, transfers_of
from perf.workloads.subjects import each_subject, empty_folder, take, take_checked
from perf.workloads.verifying import WrongBytesError, expect_files

Moves = tuple[Callable[[], Cost], Callable[[], Cost], Path]
"""From S3, to S3, and the folder that is served as the bucket."""

SINGLE_READS = 200
"""Files that are read one by one; sets of fewer files go from and to S3 instead."""

SERVED = "served"
"""The folder of the bucket in which a set of few files begins."""


def moving(settings: Workload, work: Path, table: Table) -> None:
    """Sets of many files: from a local folder, again, single files, and back. Sets of a few, by those that can: from S3 and
    back to it.
    """
    for run, peer in each_subject(settings, work, table):
        for name in settings.sets:
            for attempt in table.once(run, peer.label, {"files": name}):
                with attempt:
                    _move(settings, work, table, (run, peer), name)


def _move(settings: Workload, work: Path, table: Table, place: tuple[int, Peer], name: str) -> None:
    run, peer = place
    size, count = parse_set(name)
    try:
        make_files(work / "sources", [size] * count, f"{settings.seed}/{peer.label}/{run}/{name}")
        if count < SINGLE_READS:
            if isinstance(peer, Rclone) or _is_transfer(peer):
                _between_stores(work, table, place, [size] * count, name)
        elif isinstance(peer, GridPeer):
            _tiny_files(work, table, (run, peer), [size] * count, name)
    finally:
        for folder in ("sources", "back"):
            empty_folder(work / folder)


def _tiny_files(work: Path, table: Table, place: tuple[int, GridPeer], sizes: list[int], name: str) -> None:
    run, peer = place
    sources, back = work / "sources", work / "back"
    evict([sources])
    if _stored(table, blank(run, peer.label, "put", {}, sizes), peer, sources, name) is None:
        return
    if _is_transfer(peer):
        take(table, blank(run, peer.label, "put again", {}, sizes), peer, peer.put_folder, sources, name)
    sample, check = blank(run, peer.label, "get", {}, sizes), partial(expect_files, sources, back)
    take_checked(table, sample, peer, check, peer.get_folder, name, back)
    if _is_transfer(peer):
        sample = blank(run, peer.label, "get one of many", {"count": len(sizes)}, sizes[:1])
        take(table, sample, peer, _single_files, peer, name, sources, work / "one")


def _is_transfer(peer: Peer) -> bool:
    return isinstance(peer, GridPeer) and peer.client.startswith("transfer")


def _stored(table: Table, sample: Sample, peer: GridPeer, sources: Path, name: str) -> float | None:
    """Put the folder; the sample says what it left on the disks of all servers. Return its seconds."""
    files, held = len(peer.share_files()), peer.stored_bytes()
    touch_for(sample.size)
    try:
        with Meter(peer) as meter:
            cost = peer.put_folder(sources, name)
        sample = meter.fill(evolve(sample, seconds=cost.seconds), [cost])
    except Exception as failure:  # noqa: BLE001 - whatever a system under test does wrong is a result
        table.add(evolve(sample, error=describe(failure)))
        return None
    left = evolve(sample, stored_files=len(peer.share_files()) - files, stored_bytes=peer.stored_bytes() - held)
    table.add(left, transfers_of(left, cost))
    return cost.seconds


def _single_files(peer: GridPeer, name: str, sources: Path, target: Path) -> Cost:
    """Read random files of the folder by a warm process; the median of their times, after a first that does not count."""
    listed = json.loads(read_peer(peer.command("ls", "--json", f"bench:{name}"), peer.environment()))
    children: Mapping[str, tuple[str, Mapping[str, str]]] = listed[1]["children"]
    names = random.Random(name).sample(sorted(children), min(SINGLE_READS, len(children) - 1) + 1)
    times = []
    client = peer.open_library()
    try:
        for one in names:
            started = time.perf_counter()
            client.get(children[one][1]["ro_uri"], target)
            times.append(time.perf_counter() - started)
            if target.read_bytes() != (sources / one).read_bytes():
                raise WrongBytesError(f"{one} came back with other bytes")
    finally:
        client.stop()
        target.unlink(missing_ok=True)
    return Cost(seconds=median(times[1:]))


def _between_stores(work: Path, table: Table, place: tuple[int, Peer], sizes: list[int], name: str) -> None:
    """From S3 to the peer and back to S3. rclone goes through the local disk, to a bucket that it encrypts."""
    run, peer = place
    sources = work / "sources"
    with ExitStack() as stack:
        if isinstance(peer, Rclone):
            up, down, served = _by_rclone(peer, work / "between", name)
        else:
            assert isinstance(peer, GridPeer)
            up, down, served = _by_grid(peer, work / "s3", name, stack)
        stack.callback(empty_folder, served)
        begin = served / SERVED / name
        begin.mkdir(parents=True)
        for path in sources.iterdir():
            shutil.copyfile(path, begin / path.name)
        evict([begin])
        take(table, blank(run, peer.label, "from S3", {}, sizes), peer, up)
        sample, check = (
            blank(run, peer.label, "to S3", {}, sizes),
            partial(expect_files, sources, served / "back" / name),
        )
        take_checked(table, sample, peer, check, down)


def _by_grid(peer: GridPeer, root: Path, name: str, stack: ExitStack) -> Moves:
    """`grid transfer` both ways, and the folder that its S3 server serves as a bucket."""
    server = Versity()
    stack.callback(empty_folder, root)
    stack.callback(server.stop)
    served = root / "remote" / BUCKET
    served.mkdir(parents=True)
    server.start(root, peer.placement, peer.environment())
    peer.make_folder(name)
    environment = {
        **peer.environment(),
        "AWS_ACCESS_KEY_ID": server.access_key,
        "AWS_SECRET_ACCESS_KEY": server.secret_key,
        "AWS_ENDPOINT_URL": server.url,
        "AWS_REGION": REGION,
    }

    def transfer(*ends: str) -> Cost:
        return run_peer(peer.command("transfer", *peer.words, *ends), environment)

    on_grid = f"bench:{name}"
    up = partial(transfer, f"s3://{BUCKET}/{SERVED}/{name}", on_grid)
    return up, partial(transfer, on_grid, f"s3://{BUCKET}/back/{name}"), served


def _by_rclone(peer: Rclone, between: Path, name: str) -> Moves:
    """Two copies each way, through the local disk, and the folder that is served as a bucket."""

    def copy(first: str, second: str) -> Cost:
        empty_folder(between)
        costs = [peer.run("copy", *peer.words, first, between), peer.run("copy", *peer.words, between, second)]
        empty_folder(between)
        return Cost(
            seconds=sum(cost.seconds for cost in costs),
            user_s=sum(cost.user_s for cost in costs),
            system_s=sum(cost.system_s for cost in costs),
            peak_rss=max(cost.peak_rss for cost in costs),
        )

    plain = f"server:{BUCKET}"
    up = partial(copy, f"{plain}/{SERVED}/{name}", f"sealed:{name}")
    return up, partial(copy, f"sealed:{name}", f"{plain}/back/{name}"), peer.root / "remote" / BUCKET
