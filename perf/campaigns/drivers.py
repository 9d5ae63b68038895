"""What each driver of workloads needs, takes and measures, by the keys of campaign files. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import frozen

from perf.campaigns.labels import BASES, is_label, parse_label

COMMON = ("driver", "purpose", "duration", "runs", "seed")
"""Keys that every driver takes."""

PLACED = ("topology", "medium", "server-cpu", "client-cpu", "aes", "encoding", "warmups", "servers")
"""Keys of drivers that measure their systems at sites; the others start everything themselves."""


@frozen(kw_only=True)
class Takes:
    """The keys of a driver. needs: those without which it has nothing to do. may: others. images: whether sets may be `images`.

    measures: whether it can measure a system. measured: which, in words.
    """

    needs: tuple[str, ...] = ("systems", "sets")
    may: tuple[str, ...] = PLACED
    images: bool = False
    measures: Callable[[str], bool] = lambda system: True
    measured: str = "peers, and grids with their clients"

    @property
    def keys(self) -> tuple[str, ...]:
        """All keys that it takes."""
        return (*COMMON, *self.needs, *self.may)


def _is_grid(system: str) -> bool:
    return "/" in system


def _is_transfer(system: str) -> bool:
    label, _, client = system.partition("/")
    return client.startswith("transfer") or parse_label(label).base.startswith("rclone@")


def _is_moved(system: str) -> bool:
    label = parse_label(system.partition("/")[0])
    return _is_grid(system) or (label.base.startswith("rclone@") and "crypt" in label.options)


def _has_faults(system: str) -> bool:
    label, _, client = system.partition("/")
    return label in (BASES[0], BASES[1]) and client in ("cli", "gateway")


def _has_ciphers(system: str) -> bool:
    """Whether another cipher can be appended to the label, and it is a program with an OpenSSH server."""
    return is_label(system) and parse_label(system).base in ("scp", "sftp") and "cipher=" not in system


_GRIDS = "grids with their clients, as grid@http/cli"

TAKES: Mapping[str, Takes] = {
    "copy-modes": Takes(needs=("systems", "sets", "modes"), may=(*PLACED, "span_s", "warm-up"), images=True),
    "streams": Takes(needs=("systems", "sets", "jobs"), images=True),
    "size-count": Takes(),
    "tiny-files": Takes(),
    "scp-ciphers": Takes(may=("ciphers",), measures=_has_ciphers, measured="scp and sftp, without a cipher"),
    "transfer-modes": Takes(
        needs=("systems", "sets", "chunks", "jobs"),
        measures=_is_transfer,
        measured="rclone, as rclone@versitygw, and grids with grid transfer, as grid@http/transfer",
    ),
    "ciphers-micro": Takes(needs=(), may=()),
    "reverify": Takes(needs=("systems", "sets", "jobs"), measures=_is_grid, measured=_GRIDS),
    "hashing": Takes(measures=_is_grid, measured=_GRIDS),
    "chunking": Takes(measures=_is_grid, measured=_GRIDS),
    "repair": Takes(needs=("systems", "sets", "lost"), measures=_is_grid, measured=_GRIDS),
    "scale": Takes(needs=("systems", "clients", "nodes", "sets"), may=(), measures=_is_grid, measured=_GRIDS),
    "faults": Takes(
        needs=("systems",),
        may=("lost",),
        measures=_has_faults,
        measured=f"{BASES[0]} and {BASES[1]} with the clients cli and gateway",
    ),
    "doors": Takes(needs=("systems", "sets", "jobs"), may=(*PLACED, "keys", "slow-clients")),
    "moving": Takes(
        measures=_is_moved, measured="grids with their clients, and rclone that encrypts, as rclone@versitygw+crypt"
    ),
}
"""By the names of drivers."""


def wrong_key(driver: str, keys: Mapping[str, object]) -> tuple[str, str] | None:
    """The first of the keys that this driver does not take or lacks, and what it takes; None if there is none.

    keys: of a file, with their values.
    """
    takes = TAKES[driver]
    known = ", ".join(takes.keys)
    for key in keys:
        if key not in takes.keys:
            return key, f"the driver {driver} has no {key}; leave it out: it has {known}"
    for key in takes.needs:
        if not keys.get(key):
            return key, f"the driver {driver} has nothing to do without {key}; it needs {', '.join(takes.needs)}"
    return None
