"""The grid-manager certificates that a storage node announces, so that clients may choose it. [spec wire 11]

The node passes them on as they are; whether they are good is for each client to find out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from grid.errors import ConfigError
from grid.node.directory import NodeDirectory
from grid.node.files import expand_home, read_text

_KEYS = {"certificate", "signature"}


def read_certificates(directory: NodeDirectory) -> tuple[Mapping[str, str], ...]:
    """Those in the files that [grid_manager_certificates] names; none unless `[storage] grid_management` is on.

    ConfigError naming the key whose file cannot be used. Paths are relative to the node's directory.
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
