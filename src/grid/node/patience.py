"""How long a node may take to end once it is asked to."""

from __future__ import annotations

from pathlib import Path

from grid.errors import ConfigError
from grid.node.directory import open_directory

STOP_S = 25.0
"""To end connections and close files. The process gives itself less than that, and then ends as it is."""


def patience_s(directory: Path) -> float:
    """Seconds after which the process of the node there can be taken to hang: what its web gateway lets requests take, and more."""
    try:
        return STOP_S + open_directory(directory).settings.web_drain_s
    except (ConfigError, OSError):
        # Its configuration was changed, or its directory removed, since it started.
        return STOP_S
