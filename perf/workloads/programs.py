"""Single programs with many options: every cipher of OpenSSH; transfers, chunks and threads of rclone and Grid."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

from attrs import evolve

from perf.campaigns.workload import Workload, parse_set
from perf.peers.grids import GridPeer
from perf.peers.programs import find_program
from perf.peers.s3_commands import Rclone
from perf.peers.ssh import ciphers
from perf.records.record import Factor
from perf.workloads.files import make_files
from perf.workloads.folders import forget_pages
from perf.workloads.rows import Table, blank
from perf.workloads.subjects import each_subject, empty_folder, make_subject, started, take
from perf.workloads.verifying import digests, verified

REFUSABLE = "put to a server as it comes"


def with_ciphers(settings: Workload) -> Workload:
    """The workload with a system per cipher; MissingPeerError without ssh."""
    chosen = settings.ciphers or tuple(ciphers(find_program("ssh").path))
    labels = [f"{base}+cipher={cipher.removesuffix('@openssh.com')}" for cipher in chosen for base in settings.systems]
    return evolve(settings, systems=labels)


def scp_ciphers(settings: Workload, work: Path, table: Table) -> None:
    """Every cipher over each protocol, up and down; a cipher that the server refuses by default yields a sample that
    says so.

    settings: from `with_ciphers`.
    """
    for run, peer in each_subject(settings, work, table):
        for name in settings.sets:
            for _ in table.once(run, peer.label, {"files": name}):
                size, count = parse_set(name)
                sizes, sources, back = [size] * count, work / "sources", work / "back"
                make_files(sources, sizes, f"{settings.seed}/{peer.label}/{run}")
                try:
                    sample = blank(run, peer.label, "put", {}, sizes)
                    if take(table, sample, peer, peer.put_folder, sources, name).seconds is not None:
                        take(table, blank(run, peer.label, "get", {}, sizes), peer, peer.get_folder, name, back)
                        verified(table, digests(sources), digests(back))
                finally:
                    empty_folder(sources)
                    empty_folder(back)
    for _ in table.once(0, "", {"ask": "refusals"}):
        _refusals(work, table, settings.systems)


def transfer_modes(settings: Workload, work: Path, table: Table) -> None:
    """Compare rclone and `grid transfer`: streams and chunks, chunk sizes, transfers at a time, threads of each."""
    for run, peer in each_subject(settings, work, table):
        assert isinstance(peer, Rclone | GridPeer)
        words = _rclone_words if isinstance(peer, Rclone) else _transfer_words
        for name in settings.sets:
            size, count = parse_set(name)
            make_files(work / "sources", [size] * count, f"{settings.seed}/{peer.label}/{run}")
            try:
                for chunk, transfers, threads in _combinations(settings):
                    factors: dict[str, Factor] = {
                        "mode": "whole" if chunk is None else "chunked",
                        "chunk": chunk or 0,
                        "transfers": transfers,
                        "threads": threads,
                    }
                    for _ in table.once(run, peer.label, {"files": name, **factors}):
                        peer.words = words(chunk, transfers, threads)
                        _in_one_mode(work, table, (run, peer), [size] * count, factors)
            finally:
                empty_folder(work / "sources")


def _in_one_mode(
    work: Path, table: Table, place: tuple[int, Rclone | GridPeer], sizes: Sequence[int], factors: dict[str, Factor]
) -> None:
    run, peer = place
    sources, back = work / "sources", work / "back"
    name = "-".join(["modes", str(run), *map(str, factors.values())])
    forget_pages(sources)
    take(table, blank(run, peer.label, "put", factors, sizes), peer, peer.put_folder, sources, name)
    if take(table, blank(run, peer.label, "get", factors, sizes), peer, peer.get_folder, name, back).seconds:
        verified(table, digests(sources), digests(back))
    peer.delete_folder(name)
    empty_folder(back)


def _combinations(settings: Workload) -> list[tuple[int | None, int, int]]:
    whole = [(None, transfers, 1) for transfers in settings.jobs]
    return [*whole, *itertools.product(settings.chunks, settings.jobs, settings.jobs)]


def _rclone_words(chunk: int | None, transfers: int, threads: int) -> tuple[str, ...]:
    words = ("--transfers", str(transfers), "--no-check-dest")
    if chunk is None:
        return (*words, "--s3-upload-cutoff", "5G", "--multi-thread-streams", "0")
    size = f"{chunk}M"
    return (
        *words,
        *("--s3-upload-cutoff", "0", "--s3-chunk-size", size, "--s3-upload-concurrency", str(threads)),
        *("--multi-thread-cutoff", "0", "--multi-thread-chunk-size", size, "--multi-thread-streams", str(threads)),
    )


def _transfer_words(chunk: int | None, transfers: int, threads: int) -> tuple[str, ...]:
    words = ("--transfers", str(transfers), "--max-memory", "1GiB")
    if chunk is None:
        return (*words, "--mode", "stream")
    return (*words, "--mode", "chunked", "--chunk-size", f"{chunk}M", "--streams", str(threads))


def _refusals(work: Path, table: Table, labels: Sequence[str]) -> None:
    """Send one small file with each cipher to a server that accepts only its default ones."""
    (source,) = make_files(work / "small", [1000], "refusals")
    try:
        for number, label in enumerate(labels):
            peer = make_subject(label.replace("+cipher", "+strict+cipher"))
            if started(peer, work / f"strict{number}", 0, table):
                take(table, blank(0, peer.label, REFUSABLE, {}, [1000]), peer, peer.put, source, "small")
            peer.stop()
    finally:
        empty_folder(work / "small")
