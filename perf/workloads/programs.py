"""Single programs with many options: every cipher of OpenSSH; transfers, chunks and threads of rclone and Grid."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import product
from pathlib import Path

from attrs import evolve

from perf.campaigns.workload import Workload, parse_set
from perf.peers.contract import Peer
from perf.peers.grids import GridPeer
from perf.peers.programs import find_program
from perf.peers.s3_commands import Rclone
from perf.peers.ssh import ciphers
from perf.records.record import Factor
from perf.workloads.files import evict, make_files
from perf.workloads.rows import Table, blank
from perf.workloads.subjects import each_subject, empty_folder, make_subject, shuffled, started, take, take_checked
from perf.workloads.verifying import expect_files

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
        for name in shuffled(settings, run, peer.label, settings.sets):
            for attempt in table.once(run, peer.label, {"files": name}):
                with attempt:
                    _with_cipher(settings, work, table, (run, peer), name)
    for attempt in table.once(0, "", {"ask": "refusals"}):
        with attempt:
            _refusals(work, table, settings.systems)


def _with_cipher(settings: Workload, work: Path, table: Table, place: tuple[int, Peer], files: str) -> None:
    run, peer = place
    size, count = parse_set(files)
    sizes, sources, back = [size] * count, work / "sources", work / "back"
    try:
        make_files(sources, sizes, f"{settings.seed}/{peer.label}/{run}")
        sample = blank(run, peer.label, "put", {}, sizes)
        if take(table, sample, peer, peer.put_folder, sources, files).seconds is not None:
            sample, check = blank(run, peer.label, "get", {}, sizes), partial(expect_files, sources, back)
            take_checked(table, sample, peer, check, peer.get_folder, files, back)
    finally:
        empty_folder(sources)
        empty_folder(back)


def transfer_modes(settings: Workload, work: Path, table: Table) -> None:
    """Compare rclone and `grid transfer`: streams and chunks, chunk sizes, transfers at a time, threads of each."""
    for run, peer in each_subject(settings, work, table):
        assert isinstance(peer, Rclone | GridPeer)
        words = _rclone_words if isinstance(peer, Rclone) else _transfer_words
        modes = ("chunked",) if isinstance(peer, Rclone) else ("chunked", "chunked-stream")
        for name in settings.sets:
            size, count = parse_set(name)
            try:
                make_files(work / "sources", [size] * count, f"{settings.seed}/{peer.label}/{run}")
                for combination in shuffled(settings, run, peer.label, _combinations(settings, modes)):
                    mode, chunk, transfers, threads = combination
                    factors: dict[str, Factor] = {
                        "mode": mode,
                        "chunk": chunk,
                        "transfers": transfers,
                        "threads": threads,
                    }
                    for attempt in table.once(run, peer.label, {"files": name, **factors}):
                        with attempt:
                            peer.words = words(*combination)
                            _in_one_mode(work, table, (run, peer), [size] * count, factors)
            finally:
                empty_folder(work / "sources")


def _in_one_mode(
    work: Path, table: Table, place: tuple[int, Rclone | GridPeer], sizes: Sequence[int], factors: dict[str, Factor]
) -> None:
    run, peer = place
    sources, back = work / "sources", work / "back"
    name = "-".join(["modes", str(run), *map(str, factors.values())])
    evict([sources])
    try:
        take(table, blank(run, peer.label, "put", factors, sizes), peer, peer.put_folder, sources, name)
        sample, check = blank(run, peer.label, "get", factors, sizes), partial(expect_files, sources, back)
        take_checked(table, sample, peer, check, peer.get_folder, name, back)
        peer.delete_folder(name)
    finally:
        empty_folder(back)


def _combinations(settings: Workload, modes: Sequence[str]) -> list[tuple[str, int, int, int]]:
    """Mode, MB of a chunk (0: none), transfers at a time, threads of each. modes: of chunks."""
    whole = [("whole", 0, transfers, 1) for transfers in settings.jobs]
    return [*whole, *product(modes, settings.chunks, settings.jobs, settings.jobs)]


def _rclone_words(mode: str, chunk: int, transfers: int, threads: int) -> tuple[str, ...]:
    words = ("--transfers", str(transfers), "--no-check-dest")
    if mode == "whole":
        return (*words, "--s3-upload-cutoff", "5G", "--multi-thread-streams", "0")
    size = f"{chunk}M"
    return (
        *words,
        *("--s3-upload-cutoff", "0", "--s3-chunk-size", size, "--s3-upload-concurrency", str(threads)),
        *("--multi-thread-cutoff", "0", "--multi-thread-chunk-size", size, "--multi-thread-streams", str(threads)),
    )


def _transfer_words(mode: str, chunk: int, transfers: int, threads: int) -> tuple[str, ...]:
    words = ("--transfers", str(transfers), "--max-memory", "1GiB")
    if mode == "whole":
        return (*words, "--mode", "stream")
    return (*words, "--mode", mode, "--chunk-size", f"{chunk}M", "--streams", str(threads))


def _refusals(work: Path, table: Table, labels: Sequence[str]) -> None:
    """Send one small file with each cipher to a server that accepts only its default ones."""
    try:
        (source,) = make_files(work / "small", [1000], "refusals")
        for number, label in enumerate(labels):
            peer = make_subject(label.replace("+cipher", "+strict+cipher"))
            with table.attempt(0, label, {}):
                if started(peer, work / f"strict{number}", 0, table):
                    take(table, blank(0, peer.label, REFUSABLE, {}, [1000]), peer, peer.put, source, "small")
                peer.stop()
    finally:
        empty_folder(work / "small")
