"""The committed vectors are those that their scripts make."""

from __future__ import annotations

from types import ModuleType

import pytest

from tests.vectors import make_caps, make_codec, make_extents


@pytest.mark.parametrize("script", [make_caps, make_codec, make_extents], ids=lambda script: script.__name__)
def test_vectors_when_made_again_are_those_committed(script: ModuleType) -> None:
    assert script.PATH.read_text(encoding="ascii") == script.make()
