"""The introducers of a node: `private/introducers.yaml`, and the legacy key in its configuration. [spec wire 10]"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from shlex import quote

from grid.discovery.yaml_files import parse_yaml, read_limited
from grid.errors import ConfigError, FormatError
from grid.node.directory import NodeDirectory, NodeKind
from grid.node.files import read_text
from grid.wire.locators import Furl, parse_furl

FILE_NAME = "introducers.yaml"
OWN_FILE_NAME = "introducer.furl"
"""Where an introducer keeps its own address."""

STATIC_FILE_NAME = "servers.yaml"
"""Where a client may list servers, so that it needs no introducer for them."""

LEGACY_PETNAME = "default"

_USUAL = re.compile(
    rb"introducers:\n {2,4}(default|introducer):\n {4,8}furl: (pb://[a-z2-7]{32}@[A-Za-z0-9.,:-]+/[a-z2-7]+)\n",
    re.ASCII,
)
"""A file as written by `grid create` and 1.20: parsed without PyYAML, whose import takes longer than everything else
here.
"""


def read_introducers(directory: NodeDirectory) -> dict[str, Furl]:
    """The introducers by the user's names for them; ConfigError, which names the file and the entry."""
    file = directory.private / FILE_NAME
    try:
        data = read_limited(file)
        introducers = {} if data is None else parse_introducers(data)
    except (FormatError, OSError) as problem:
        raise ConfigError(f"{file}: {problem}") from None
    legacy = directory.settings.client.introducer_furl
    if legacy is None:
        return introducers
    where = f"{directory.config_file}: section [client], key introducer.furl"
    if LEGACY_PETNAME in introducers:
        raise ConfigError(f"{where}: {file} has an introducer {LEGACY_PETNAME!r} too; remove one of them")
    try:
        return {LEGACY_PETNAME: parse_furl(legacy), **introducers}
    except FormatError as problem:
        raise ConfigError(f"{where}: {problem}") from None


def cache_file(private: Path, petname: str) -> Path:
    """Where a client keeps the announcements of that introducer."""
    return private / f"introducer_{petname}_cache.yaml"


def missing_introducer(directory: NodeDirectory) -> str | None:
    """What a node without any introducer cannot do, and what helps, for its log; None if it has one or needs none.

    ConfigError as in read_introducers.
    """
    is_storage = directory.settings.storage.enabled
    if directory.kind is NodeKind.INTRODUCER or read_introducers(directory):
        return None
    if not is_storage and (directory.private / STATIC_FILE_NAME).exists():
        return None
    lost = "no client learns of this server" if is_storage else "this client finds no servers"
    where = quote(str(directory.path))
    return (
        f"no introducer is configured, so {lost}: `grid -d {where} config set client.introducer.furl FURL` names one; then "
        f"restart the node (the introducer has its FURL in private/{OWN_FILE_NAME})"
    )


def introducer_of_grid(directory: NodeDirectory) -> Furl:
    """The introducer that other nodes of this node's grid should use: its first one, or its own; ConfigError if it has none.
    [spec cli 4.4]
    """
    for found in read_introducers(directory).values():
        return found
    file = directory.private / OWN_FILE_NAME
    own = (read_text(file) or "").strip()
    if own:
        try:
            return parse_furl(own)
        except FormatError as problem:
            raise ConfigError(f"{file}: {problem}") from None
    if directory.kind is NodeKind.INTRODUCER:
        raise ConfigError(
            f"{directory.path} has no address yet: start this introducer first, with `grid run {directory.path}`"
        )
    raise ConfigError(
        f"{directory.path} knows no introducer, so it can invite nobody: {directory.private / FILE_NAME} names none"
    )


def parse_introducers(data: bytes) -> dict[str, Furl]:
    """Parse an introducers file; FormatError, which names the first invalid entry."""
    usual = _USUAL.fullmatch(data)
    if usual is not None:
        return {usual[1].decode(): parse_furl(usual[2].decode())}
    content = parse_yaml(data)
    if content is None:
        return {}
    entries = content.get("introducers") if isinstance(content, dict) else content
    if entries is None:
        return {}
    if not isinstance(entries, dict):
        raise FormatError("expected one section, `introducers`, of introducers by their names")
    return {str(name): _parse_entry(str(name), entry) for name, entry in entries.items()}


def _parse_entry(name: str, entry: object) -> Furl:
    # The name becomes part of a file name.
    if not name.isprintable() or "/" in name or not name or len(name) > 100:
        raise FormatError(f"introducer {name[:100]!r}: the name cannot be part of a file's name")
    furl = entry.get("furl") if isinstance(entry, Mapping) else None
    if not isinstance(furl, str):
        raise FormatError(f"introducer {name!r} has no furl")
    try:
        return parse_furl(furl.strip())
    except FormatError as problem:
        raise FormatError(f"introducer {name!r}: {problem}") from None
