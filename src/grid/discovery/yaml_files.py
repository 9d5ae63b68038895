"""YAML files about servers, read so that no content can exhaust memory or time: limited size, no aliases, plain values.

JSON, which is also YAML, is read and written without PyYAML, in a hundredth of the time.
"""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

from grid.errors import FormatError
from grid.limits import MAX_SERVERS_FILE


def parse_yaml(data: bytes) -> object:
    """Parse YAML into a plain value; FormatError if it is too long, has aliases, or is not YAML."""
    if len(data) > MAX_SERVERS_FILE:
        raise FormatError(f"a YAML file of more than {MAX_SERVERS_FILE} bytes")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FormatError("a file that is not UTF-8") from error
    if text.startswith(("[", "{")):
        try:
            value: object = json.loads(text)
        except (ValueError, RecursionError):
            pass  # Then it is YAML in another form, or invalid.
        else:
            return value
    from grid.discovery.plain_yaml import load

    return load(text)


def as_json(value: object) -> str:
    """The value as JSON that is also YAML. Whatever a peer puts into it, writing it does not need PyYAML, which is slow."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    if text.isprintable():
        return text
    # Escapes of larger characters differ: YAML takes those characters unescaped.
    return "".join(each if each.isprintable() or each > "\uffff" else f"\\u{ord(each):04x}" for each in text)


def read_limited(path: Path) -> bytes | None:
    """The file's bytes, up to one more than parse_yaml accepts; None if it does not exist. OSError; FormatError if it is not a file."""
    try:
        # Opening a pipe without a writer would block forever.
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise FormatError("not a regular file")
            return file.read(MAX_SERVERS_FILE + 1)
    except FileNotFoundError:
        return None
