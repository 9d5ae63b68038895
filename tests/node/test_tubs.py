"""Connections that must not be made."""

from __future__ import annotations

import pytest

from grid.errors import ConfigError
from grid.node.config import parse_config
from grid.node.tubs import client_tub


@pytest.mark.parametrize("text", ["[connections]\ntcp = tor\n", "[node]\nreveal-IP-address = false\n"])
def test_node_that_hides_its_address_does_not_connect_directly(text: str) -> None:
    with pytest.raises(ConfigError, match=r"nothing is sent|cannot be false"):
        client_tub(parse_config(text, "grid.cfg"))
