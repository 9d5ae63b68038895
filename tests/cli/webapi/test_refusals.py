from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.cli.terminal.exit_codes import ExitCode, exit_code
from grid.cli.webapi.refusals import MAX_SHOWN, readable_text, refusal, stream_error
from grid.errors import ExistingChildError, GridError

CAP = "URI:DIR2:aaaaaaaaaaaaaaaaaaaaaaaaaa:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        (410, b"NotEnoughSharesError: ...", ExitCode.NOT_FOUND),
        (410, b"UnrecoverableFileError: ...", ExitCode.NOT_FOUND),
        (410, b'{"error": "lost"}', ExitCode.NOT_FOUND),
        (404, b"<html><p>No such child: x</p></html>", ExitCode.NOT_FOUND),
        (500, b"allmydata.interfaces.NoServersError: ...", ExitCode.UNREACHABLE),
        (503, b"UploadUnhappinessError: ...", ExitCode.UNREACHABLE),
        (503, b"MayHoldError: only 2 servers took the new version", ExitCode.MAY_HOLD),
        (500, b"Traceback (most recent call last):\n  x\na.b.NotWriteableError: no", ExitCode.NO_AUTHORITY),
        (403, b"NotWriteableError: no", ExitCode.NO_AUTHORITY),
        (400, b"MustBeDeepImmutableError: no", ExitCode.USAGE),
        (507, b"full", ExitCode.NO_SPACE),
        (504, b"", ExitCode.UNREACHABLE),
        (500, b"", ExitCode.OTHER),
        (302, b"", ExitCode.OTHER),
        (418, b"\xff\xfe", ExitCode.OTHER),
    ],
)
def test_refusal_ends_a_command_with_the_status_of_the_direct_one(status: int, body: bytes, code: ExitCode) -> None:
    assert exit_code(refusal(status, body)) is code


def test_refusal_when_something_is_in_the_way_is_what_the_request_takes_it_for() -> None:
    error = refusal(409, b"There was already a child by that name", lambda text: ExistingChildError(text, name="x"))
    assert isinstance(error, ExistingChildError)
    assert error.name == "x"


@pytest.mark.parametrize(
    "body",
    [
        f"cannot read {CAP}",
        f"at http://127.0.0.1:3456/uri/{CAP.replace(':', '%3A')}?t=json",
        f"<html><body><a href='/uri/{CAP}'>x</a> {CAP}</body></html>",
        f'{{"error": "{CAP}"}}',
        f"Traceback (most recent call last):\n  {CAP}\nNotEnoughSharesError: {CAP}",
    ],
)
def test_refusal_when_the_gateway_repeats_a_capability_does_not_show_it(body: str) -> None:
    shown = str(refusal(410, body.encode()))
    assert "aaaaaaaa" not in shown
    assert "bbbbbbbb" not in shown


@given(st.binary(max_size=2000))
def test_text_of_any_body_is_one_short_printable_line(body: bytes) -> None:
    text = readable_text(body)
    assert len(text) <= MAX_SHOWN + 1
    assert "\n" not in text
    assert "\x1b" not in text


def test_stream_error_is_of_the_kind_that_its_line_names() -> None:
    error = stream_error(b"ERROR: UnrecoverableFileError(no recoverable versions)")
    assert isinstance(error, GridError)
    assert exit_code(error) is ExitCode.NOT_FOUND
