"""Which environments are alike, and the keys by which an interrupted campaign knows what it has done. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

MACHINE = ("cpu", "cpu_count", "memory_bytes", "system", "filesystem", "nice", "congestion_control", "freezer")
"""What has to be equal for times to be compared."""

SOFTWARE = ("commit", "modified", "python", "packages", "codec", "hashing", "tahoe", "baselines")
"""What has to be equal besides for a record to be continued."""

Environment = Mapping[str, Any]


def differences(one: Environment, other: Environment, *, software: bool = False) -> dict[str, tuple[Any, Any]]:
    """What differs between two environments. A value that one of them does not have (older records) says nothing.

    software: look at versions as well, as for a record that is to be continued.
    """
    names = (*MACHINE, *SOFTWARE) if software else MACHINE
    return {
        name: (one[name], other[name])
        for name in names
        if one.get(name) is not None and other.get(name) is not None and one[name] != other[name]
    }


def key_of(cell: Mapping[str, Any], environment: Environment) -> str:
    """The key of a cell that is done in an environment. cell: values that JSON can hold."""
    known = {name: environment.get(name) for name in (*MACHINE, *SOFTWARE)}
    text = json.dumps([cell, known], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
