"""What a failing command says."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from grid.cli.messages import describe
from grid.errors import CancelledError, GridError


def test_error_is_one_line_without_control_characters() -> None:
    assert describe(GridError("a\nb\x1b[31mc\u2028d")) == "a b [31mc d"


def test_local_file_error_names_the_file() -> None:
    assert describe(FileNotFoundError(2, "No such file or directory", "a/b")) == "a/b: No such file or directory"


def test_defect_is_not_shown_but_named() -> None:
    text = describe(KeyError("URI:CHK:secret"))
    assert "KeyError" in text
    assert "secret" not in text


def test_interruption_is_called_that() -> None:
    assert describe(KeyboardInterrupt()) == describe(CancelledError("x")) == "interrupted"


@given(st.text(max_size=30))
def test_any_message_is_one_line(text: str) -> None:
    assert "\n" not in describe(GridError(text))
    assert describe(GridError(text))
