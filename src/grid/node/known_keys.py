"""The sections and keys that configuration files may contain: 1.20's, and Grid's own. Pure. [spec cli 6]"""

from __future__ import annotations

from collections.abc import Collection, Mapping

_TABLE = """
node: nickname reveal-ip-address web.port web.static tub.port tub.location tempdir timeout.keepalive
node: web.allowed_hosts web.drain_timeout web.read_only web.trusted_proxies log_format timeout.disconnect log_gatherer.furl ssh.port ssh.authorized_keys_file
client: helper.furl introducer.furl key_generator.furl mutable.format peers.preferred force_foolscap shares.needed
client: transport plaintext_reads pack convergence
client: shares.happy shares.total shares._max_immutable_segment_size_for_testing storage.plugins stats_gatherer.furl
storage: enabled anonymous readonly reserved_space storage_dir durability force_foolscap grid_management debug_discard
storage: plugins expire.enabled expire.mode expire.override_lease_duration expire.cutoff_date expire.immutable
storage: expire.mutable plaintext_reads
connections: tcp
helper: enabled
tor: enabled socks.port control.port launch tor.executable onion onion.local_port onion.external_port
tor: onion.private_key_file
i2p: enabled sam.port launch i2p.configdir i2p.executable dest dest.port dest.private_key_file
s3: port domain certificate private_key pack
sftpd: enabled port host_pubkey_file host_privkey_file accounts.file
"""
_OWN_KEYS = {
    "node": frozenset({"web.allowed_hosts", "web.drain_timeout", "web.read_only", "web.trusted_proxies", "log_format"}),
    "client": frozenset({"transport", "plaintext_reads", "pack", "convergence"}),
    "storage": frozenset({"durability", "plaintext_reads"}),
    "s3": frozenset({"port", "domain", "certificate", "private_key", "pack"}),
}
_FREE_SECTIONS = ("grid_managers", "grid_manager_certificates")
_FREE_PREFIXES = ("storageclient.plugins.", "storageserver.plugins.")


def _read_table() -> dict[str, frozenset[str]]:
    table: dict[str, frozenset[str]] = {}
    for line in _TABLE.split("\n"):
        name, _, keys = line.partition(":")
        table[name] = table.get(name, frozenset()) | set(keys.split())
    del table[""]
    return table


_KNOWN = _read_table()


def without_own_keys(sections: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, str]]:
    """The sections without Grid's own keys, with which no node of 1.20 would start."""
    return {
        name: {key: value for key, value in values.items() if key not in _OWN_KEYS.get(name, ())}
        for name, values in sections.items()
    }


def unknown_keys(section: str, keys: Collection[str]) -> list[str] | None:
    """The lower-case keys that are unknown in the section; None if the section itself is unknown."""
    known = _KNOWN.get(section)
    if known is not None:
        return [key for key in keys if key not in known]
    if section in _FREE_SECTIONS or section.startswith(_FREE_PREFIXES):
        return []
    return None


def sections_with(key: str) -> list[str]:
    """The sections that have this key, sorted."""
    return sorted(section for section, keys in _KNOWN.items() if key in keys)


def known_names() -> list[str]:
    """Every known key as `section.key`, sorted, except those that users name freely."""
    return sorted(f"{section}.{key}" for section, keys in _KNOWN.items() for key in keys)
