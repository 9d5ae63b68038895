"""PyYAML, limited to plain values without aliases.

A separate module, so that a command that reads only JSON-like files does not import PyYAML.
"""

from __future__ import annotations

from typing import Any

import yaml

from grid.errors import FormatError


class _PlainLoader(yaml.SafeLoader):
    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("aliases are not accepted")
        return super().compose_node(parent, index)


def load(text: str) -> object:
    """Parse the text into a plain value; FormatError if it has aliases or is not YAML."""
    try:
        return yaml.load(text, Loader=_PlainLoader)  # noqa: S506 - a SafeLoader that refuses more
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError, TypeError) as error:
        raise FormatError("a file that is not YAML, or has aliases in it") from error
