"""Compares environments, and computes the keys by which an interrupted campaign knows what is done. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

MACHINE = ("cpu", "cpu_count", "memory_bytes", "system", "filesystem", "nice", "congestion_control")
"""What must be equal for times to be comparable."""

SOFTWARE = ("commit", "modified", "python", "packages", "codec", "hashing", "tahoe", "baselines")
"""What must also be equal for a record to be continued."""

Environment = Mapping[str, Any]


def differences(one: Environment, other: Environment, *, software: bool = False) -> dict[str, tuple[Any, Any]]:
    """The differences between two environments. A value missing from one of them (older records) is ignored.

    software: also compare versions, as for continuing a record.
    """
    names = (*MACHINE, *SOFTWARE) if software else MACHINE
    return {
        name: (one[name], other[name])
        for name in names
        if one.get(name) is not None and other.get(name) is not None and one[name] != other[name]
    }


def key_of(cell: Mapping[str, Any], environment: Environment) -> str:
    """The key of a cell in an environment. cell: values that JSON can hold."""
    known = {name: environment.get(name) for name in (*MACHINE, *SOFTWARE)}
    text = json.dumps([cell, known], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
