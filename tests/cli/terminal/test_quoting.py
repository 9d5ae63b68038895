"""Output quoting, by the table of [spec cli 1.4]."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.cli.terminal.quoting import encodable, plain, quote


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("a b", "'a b'"),
        ("", "''"),
        ("it's", '"it\'s"'),
        ('say "$x" `y` \\ it\'s', '"say \\"\\$x\\" \\`y\\` \\\\ it\'s"'),
        ("a\nb\x07\x85", '"a\\nb\\x07\\x85"'),
        ("\u2028\U000e0001", '"\\u2028\\U000e0001"'),
        ("ü", "'ü'"),
        ("\ud800", '"\\ud800"'),
    ],
)
def test_text_when_quoted_then_is_between_quotes_that_fit(text: str, quoted: str) -> None:
    assert quote(text) == quoted


@given(text=st.text())
def test_name_when_printed_then_is_one_line_without_control_characters(text: str) -> None:
    assert plain(text).isprintable()
    assert quote(text).isprintable()


def test_text_when_the_output_cannot_show_it_then_is_known() -> None:
    assert encodable("ü", "latin-1")
    assert not encodable("ü", "ascii")
    assert not encodable("a", "no such encoding")
