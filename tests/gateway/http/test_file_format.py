"""Which format a new file gets."""

from __future__ import annotations

from grid.gateway.http.file_format import choose_format, mutable_format


def test_format_when_named_then_decides_whatever_mutable_says() -> None:
    assert choose_format("chk", True) == "chk"
    assert choose_format("mdmf", False) == "mdmf"


def test_format_when_not_named_then_mutable_means_sdmf() -> None:
    assert choose_format(None, True) == "sdmf"
    assert choose_format(None, False) == choose_format(None, None) == "chk"


def test_format_when_mutable_then_is_one_of_the_engines() -> None:
    assert [mutable_format(format) for format in ("chk", "sdmf", "mdmf")] == [None, "sdmf", "mdmf"]
