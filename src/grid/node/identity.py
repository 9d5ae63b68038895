"""A storage node's identity: the key that signs its announcements, and its permutation seed."""

from __future__ import annotations

import os

from grid.codec import base32
from grid.codec.key_text import pack_bare_key, pack_signing_key, pack_verifying_key, parse_signing_key
from grid.crypto.ed25519 import SEED_SIZE, SigningKey, VerifyingKey
from grid.errors import ConfigError, FormatError
from grid.node.directory import NodeDirectory
from grid.node.files import PUBLIC_MODE, make_private_directory, read_or_create, read_text, write_atomically


def signing_key(directory: NodeDirectory) -> SigningKey:
    """The node's signing key, created if missing; also writes node.pubkey. ConfigError if the file holds no key."""
    make_private_directory(directory.private)
    file = directory.private / "node.privkey"
    text = read_or_create(file, lambda: pack_signing_key(SigningKey(os.urandom(SEED_SIZE))) + "\n")
    try:
        key = parse_signing_key(text.strip())
    except FormatError:
        raise ConfigError(f"{file}: does not hold a private key; restore it from a backup") from None
    public = directory.path / "node.pubkey"
    public_text = pack_verifying_key(key.verifying_key) + "\n"
    if read_text(public) != public_text:
        write_atomically(public, public_text.encode(), PUBLIC_MODE)
    return key


def permutation_seed_text(directory: NodeDirectory, key: VerifyingKey, node_id: bytes, *, has_shares: bool) -> str:
    """The announced permutation seed in base32. It is chosen once and kept, since clients find shares by it.

    node_id: 20 bytes, the seed of a node whose shares are older than its seed file. has_shares: whether it has any.
    """
    file = directory.path / "permutation-seed"
    if has_shares:
        chosen = base32.encode(node_id)
    else:
        # 1.20 decodes the text of the key rather than using its bytes.
        chosen = base32.encode(pack_bare_key(key).removeprefix("v0-").encode("ascii"))
    text = read_or_create(file, lambda: chosen + "\n", PUBLIC_MODE).strip()
    try:
        base32.decode_lax(text)
    except FormatError:
        raise ConfigError(f"{file}: not base32; restore it from a backup") from None
    return text


def write_node_id(directory: NodeDirectory, tub_id: str) -> None:
    """Write `my_nodeid`."""
    file = directory.path / "my_nodeid"
    if read_text(file) != f"{tub_id}\n":
        write_atomically(file, f"{tub_id}\n".encode(), PUBLIC_MODE)
