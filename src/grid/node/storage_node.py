"""The storage server of a node directory: its store, its settings and its identity, put together."""

from __future__ import annotations

import os
from pathlib import Path

from attrs import evolve

from grid.codec import base32
from grid.crypto.ed25519 import VerifyingKey
from grid.discovery.announcement import server_id_of
from grid.errors import ConfigError
from grid.node.directory import NodeDirectory
from grid.node.identity import permutation_seed_text
from grid.ports import CpuPool, Runtime, ServerIdentity
from grid.storage.disk import RealDisk
from grid.storage.service import StorageService
from grid.storage.settings import ExpirySettings, StorageSettings


def identify_node(directory: NodeDirectory, key: VerifyingKey, node_id: bytes) -> tuple[str, ServerIdentity]:
    """The permutation seed as it is announced, and who the node is. node_id: the 20 bytes of its certificate."""
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

    io: threads that wait for the disk. open_files: how many share files it may have open at once.
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
    """What the configuration says of the store."""
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
    """Whether a share was ever finished here."""
    try:
        return any(name != "incoming" for name in os.listdir(base / "shares"))
    except FileNotFoundError:
        return False
