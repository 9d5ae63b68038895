"""TOML files validated against a table of keys; errors name the file, the line and what is allowed. Pure."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from attrs import frozen

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMG]i?B|B|)")


class CampaignError(ValueError):
    """The file is not a valid campaign; the message says where, and what is allowed."""


@frozen
class Key:
    """A key of a file. parse: returns its value or raises ValueError. allowed: in words.

    many: whether lists are allowed.
    """

    parse: Callable[[Any], Any]
    allowed: str
    many: bool = True


def one_of(*words: str, many: bool = True) -> Key:
    """One of these words."""

    def parse(value: Any) -> str:  # noqa: ANN401 - TOML's
        if value not in words:
            raise ValueError
        return str(value)

    return Key(parse, " or ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0], many)


def number(least: float, most: float, *, whole: bool = True, many: bool = True) -> Key:
    """A number within these bounds."""

    def parse(value: Any) -> float:  # noqa: ANN401 - TOML's
        kinds = (int,) if whole else (int, float)
        if isinstance(value, bool) or not isinstance(value, kinds) or not least <= value <= most:
            raise ValueError
        return value

    return Key(parse, f"a {'whole ' if whole else ''}number from {_digits(least)} to {_digits(most)}", many)


def _digits(bound: float) -> str:
    """A bound as it is typed: `:g` alone makes 1e+09 of large ones."""
    return str(int(bound)) if float(bound).is_integer() else f"{bound:g}"


def parse_size(value: Any) -> int:  # noqa: ANN401 - TOML's
    """Parse a size in bytes: a number, or text with a unit; ValueError."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    found = _SIZE.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        raise ValueError
    return int(float(found[1]) * _UNITS[found[2]])


def parse_positive_size(value: Any) -> int:  # noqa: ANN401 - TOML's
    """The same, but 1 or more."""
    size = parse_size(value)
    if size < 1:
        raise ValueError
    return size


def text(value: Any) -> str:  # noqa: ANN401 - TOML's
    """Parse non-empty text; ValueError."""
    if not isinstance(value, str) or not value:
        raise ValueError
    return value


def flag(value: Any) -> bool:  # noqa: ANN401 - TOML's
    """Parse a boolean; ValueError."""
    if not isinstance(value, bool):
        raise ValueError
    return value


def parse_changes(arguments: Sequence[str]) -> dict[str, Any]:
    """Values for keys of a file from `KEY=VALUE`, each as in TOML; CampaignError."""
    changes: dict[str, Any] = {}
    for argument in arguments:
        try:
            changes |= tomllib.loads(argument)
        except tomllib.TOMLDecodeError as error:
            raise CampaignError(f"{argument!r} is not KEY=VALUE as in TOML, with text in quotes: {error}") from None
    return changes


def parse_chosen(key: str, value: Any, known: Mapping[str, Key]) -> None:  # noqa: ANN401 - an option's
    """Check a value that an option of the command line gives to a key; CampaignError."""
    try:
        known[key].parse(value)
    except ValueError as error:
        detail = f" ({error})" if str(error) else ""
        raise CampaignError(
            f"with these options, {key} cannot be {value!r}; allowed: {known[key].allowed}{detail}"
        ) from None


class TomlFile:
    """One file, with its lines for error messages."""

    def __init__(
        self, content: str, name: str, path: str, top: Mapping[str, Key], changes: Mapping[str, Any] | None = None
    ) -> None:
        """top: the keys allowed at the top of the file, for hints about misplaced ones. changes: values to use there instead."""
        self._lines = content.split("\n")
        self._name, self._path, self._top = name, path, top
        try:
            self._raw = tomllib.loads(content)
        except tomllib.TOMLDecodeError as error:
            line = re.search(r"at line (\d+)", str(error))
            raise CampaignError(f"{path}:{line[1] if line else len(self._lines)}: {error}") from None
        self._raw.update(changes or {})

    def _values(self, key: str, value: Any, known: Mapping[str, Key], table: str = "") -> list[Any]:  # noqa: ANN401
        """A key's values, at least one."""
        where = f"{self._path}:{self._line(key, table)}"
        if key not in known:
            keys = ", ".join(sorted(known))
            raise CampaignError(
                f"{where}: {key} belongs at the top of the file, not into a [[work]]"
                if key in self._top
                else f"{where}: there is no key {key}; there are {keys}"
            )
        several = isinstance(value, list)
        found = []
        for one in cast(Sequence[Any], value) if several else [value]:
            try:
                found.append(known[key].parse(one))
            except ValueError as error:
                detail = f" ({error})" if str(error) else ""
                raise CampaignError(
                    f"{where}: {key} cannot be {one!r}; allowed: {known[key].allowed}{detail}"
                ) from None
        if not found or (several and not known[key].many):
            raise CampaignError(f"{where}: {key} cannot be {value!r}; allowed: one value, {known[key].allowed}")
        return found

    def _line(self, key: str, table: str = "") -> int:
        """The line of a key in a table; if absent, that of the table, or the first."""
        current, works, start = "", -1, 1
        for at, line in enumerate(self._lines, 1):
            if line.startswith("["):
                works += line.startswith("[[work]]")
                current = f"work {works}" if line.startswith("[[work]]") else line.strip("[] ")
                start = at if current == table else start
            elif current == table and re.match(rf"\s*{re.escape(key)}\s*=", line):
                return at
        return start
