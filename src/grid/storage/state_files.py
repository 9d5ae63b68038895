"""Small JSON files in the storage directory, replaced as a whole. Blocking. [spec storage-server 10.4]"""

from __future__ import annotations

import json
from typing import Any

from twisted.logger import Logger

from grid.storage.disk import Disk
from grid.storage.incoming import create_anew

MAX_STATE_SIZE = 16 * 2**20

log = Logger()


def load_state(disk: Disk, path: str) -> dict[str, Any] | None:
    """The file's object; None if there is no file, or none that can be read."""
    try:
        handle = disk.open_file(path)
        try:
            data = disk.read(handle, 0, MAX_STATE_SIZE)
        finally:
            disk.close_file(handle)
        value = json.loads(data)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError):
        log.warn("{path} cannot be read; what it held begins anew", path=path)
        return None
    return value if isinstance(value, dict) else None


def save_state(disk: Disk, path: str, state: dict[str, Any]) -> None:
    """Replace the file; what fails is noted and forgotten, as the file only saves work."""
    temporary = f"{path}.tmp"
    try:
        handle = create_anew(disk, temporary)
        try:
            disk.write(handle, 0, [json.dumps(state).encode()])
        finally:
            disk.close_file(handle)
        disk.rename(temporary, path)
    except OSError as error:
        log.warn("{path} could not be written: {reason}", path=path, reason=error.strerror)
