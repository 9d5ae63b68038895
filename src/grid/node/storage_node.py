"""The storage server of a node directory: assembles its store, settings and identity."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from attrs import evolve

from grid.codec import base32
from grid.crypto.ed25519 import VerifyingKey
from grid.discovery.announcement import server_id_of
from grid.errors import ConfigError
from grid.node.directory import NodeDirectory
from grid.node.files import expand_home, read_text
from grid.node.identity import permutation_seed_text
from grid.ports import CpuPool, Runtime, ServerIdentity
from grid.storage.calls.service import StorageService
from grid.storage.files.disk import RealDisk
from grid.storage.settings import ExpirySettings, StorageSettings
from grid.storage.upkeep.housekeeping import Housekeeping
from grid.values import define


def identify_node(directory: NodeDirectory, key: VerifyingKey, node_id: bytes) -> tuple[str, ServerIdentity]:
    """The permutation seed as announced, and the node's identity. node_id: the 20 bytes of its certificate."""
    text = permutation_seed_text(directory, key, node_id, has_shares=_has_shares(directory.storage_path))
    identity = ServerIdentity(
        server_id=server_id_of(key),
        nickname=directory.settings.nickname,
        permutation_seed=base32.decode_lax(text),
        lease_seed=node_id,
    )
    return text, identity


def make_service(
    directory: NodeDirectory, identity: ServerIdentity, runtime: Runtime, io: CpuPool, open_files: int
) -> StorageService:
    """The storage server over the node's disk, not started yet. ConfigError.

    io: threads for blocking disk operations. open_files: the number of share files that may be open at once.
    """
    path = directory.storage_path
    try:
        disk = RealDisk(str(path))
    except OSError as problem:
        raise ConfigError(
            f"{directory.config_file}: section [storage], key storage_dir: {path}: {problem.strerror}"
        ) from None
    return StorageService(identity, disk, runtime, evolve(server_settings(directory), open_files=open_files), io)


def server_settings(directory: NodeDirectory) -> StorageSettings:
    """The configured settings of the store."""
    written = directory.settings.storage
    expire = written.expire
    return StorageSettings(
        reserved_space=written.reserved_space,
        readonly=written.readonly,
        durability=written.durability,
        expire=ExpirySettings(
            enabled=expire.enabled,
            # A mode that is not in force may lack its date.
            mode=expire.mode if expire.enabled else "age",
            override_s=expire.override_s,
            cutoff=expire.cutoff,
            immutable=expire.immutable,
            mutable=expire.mutable,
        ),
    )


def _has_shares(base: Path) -> bool:
    """Whether a share was ever completed here."""
    try:
        return any(name != "incoming" for name in os.listdir(base / "shares"))
    except FileNotFoundError:
        return False


_KEYS = {"certificate", "signature"}


def read_certificates(directory: NodeDirectory) -> tuple[Mapping[str, str], ...]:
    """Certificates from the files in [grid_manager_certificates]; none unless `[storage] grid_management` is on.

    ConfigError, which names the key of an unusable file. Paths are relative to the node's directory.
    """
    if not directory.settings.storage.grid_management:
        return ()
    return tuple(_read(directory, name, file) for name, file in directory.settings.certificates)


def _read(directory: NodeDirectory, name: str, file: str) -> Mapping[str, str]:
    where = f"{directory.config_file}: section [grid_manager_certificates], key {name}"
    text = read_text(directory.path / expand_home(file))
    if text is None:
        raise ConfigError(f"{where}: there is no such file")
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict) or content.keys() != _KEYS:
        raise ConfigError(f"{where}: the file holds no certificate")
    if not all(isinstance(value, str) for value in content.values()):
        raise ConfigError(f"{where}: the file holds no certificate")
    return content


_DAY_S = 86400


@define(eq=False)
class LocalStorage:
    """The server in the form of a gateway's StorageView."""

    _service: StorageService
    _housekeeping: Housekeeping
    _settings: StorageSettings

    def counters(self) -> Mapping[str, int]:
        """Counts of requests by kind."""
        return {f"storage_server.{name}": count for name, count in self._service.meter.counts.items()}

    async def statistics(self) -> dict[str, float | int | None]:
        """Latencies, free space, and stored shares. Unknown values are left out; PeerError if the disk fails."""
        space, available = await self._service.space()
        found: dict[str, float | int | None] = {
            "allocated": self._service.reserved_size,
            "reserved_space": self._settings.reserved_space,
            "accepting_immutable_shares": int(available is None or available > 0),
            **{f"latencies.{name}": value for name, value in self._service.meter.latencies().items()},
        }
        if space is not None:
            found |= {
                "disk_total": space.total,
                "disk_used": space.total - space.free_for_root,
                "disk_free_for_root": space.free_for_root,
                "disk_free_for_nonroot": space.free,
                "disk_avail": max(0, space.free - self._settings.reserved_space),
            }
        if self._housekeeping.bucket_count is not None:
            found["total_bucket_count"] = self._housekeeping.bucket_count
        return {f"storage_server.{name}": value for name, value in found.items()}

    async def crawlers(self) -> dict[str, Any]:
        """The progress and results of the crawlers over all shares."""
        return {
            "bucket-counter": self._housekeeping.bucket_status(),
            "lease-checker": await self._housekeeping.lease_status(),
            "lease-checker-progress": self._housekeeping.lease_progress(),
        }

    def counting(self) -> dict[str, Any]:
        """The progress of counting storage indexes."""
        return self._housekeeping.bucket_progress()

    @property
    def expiry(self) -> str:
        """Say when leases expire."""
        expire = self._settings.expire
        kinds = [kind for kind, on in (("immutable", expire.immutable), ("mutable", expire.mutable)) if on]
        if not expire.enabled or not kinds:
            return "Leases are counted; none is removed."
        what = f"Leases of {' and '.join(kinds)} shares end"
        if expire.mode == "cutoff-date" and expire.cutoff is not None:
            day = datetime.fromtimestamp(expire.cutoff, UTC).strftime("%Y-%m-%d")
            return f"{what} if they were last renewed before {day}."
        if expire.override_s is not None:
            return f"{what} {_days(expire.override_s)} after they were last renewed."
        return f"{what} 31 days after they were last renewed."


def _days(seconds: float) -> str:
    days = seconds / _DAY_S
    return f"{days:g} {'day' if days == 1 else 'days'}"
