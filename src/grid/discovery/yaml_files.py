"""YAML files about servers, read so that no content can exhaust us: bounded size, no aliases, plain values only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from grid.errors import FormatError
from grid.limits import MAX_SERVERS_FILE


class _PlainLoader(yaml.SafeLoader):
    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not accepted")
        return super().compose_node(parent, index)


class _PlainDumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def parse_yaml(data: bytes) -> object:
    """The plain value in the YAML text; FormatError if it is too long, has aliases, or is no YAML."""
    if len(data) > MAX_SERVERS_FILE:
        raise FormatError(f"a YAML file of more than {MAX_SERVERS_FILE} octets")
    try:
        return yaml.load(data.decode("utf-8"), Loader=_PlainLoader)  # noqa: S506 - a SafeLoader that refuses more
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError, TypeError) as error:
        raise FormatError("a file that is not YAML, or has aliases in it") from error


def pack_yaml(value: object) -> bytes:
    """The value as YAML that parse_yaml reads."""
    return bytes(yaml.dump(value, Dumper=_PlainDumper, encoding="utf-8"))


def read_limited(path: Path) -> bytes | None:
    """The file's octets, up to one more than parse_yaml accepts; None if there is no such file."""
    try:
        with path.open("rb") as file:
            return file.read(MAX_SERVERS_FILE + 1)
    except FileNotFoundError:
        return None
