"""The exit code for each error."""

from __future__ import annotations

import errno
import re
from pathlib import Path

import pytest

from grid import errors
from grid.cli.terminal.exit_codes import ExitCode, exit_code
from grid.errors import GridError


def _bad_share(number: int) -> errors.ShareError:
    return errors.ShareError("v0-server", number, errors.IntegrityError("a hash does not fit"))


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.ConfigError("x"), 1),
        (errors.ConflictError("x"), 1),
        (errors.PeerRefusedError("x", kind="KeyError"), 1),
        (GridError("x"), 1),
        (OSError(errno.EACCES, "no"), 1),
        (ZeroDivisionError(), 1),
        (BrokenPipeError(errno.EPIPE, "no"), 1),
        (errors.CapError("x"), 2),
        (OSError(errno.ENOENT, "no"), 4),
        (errors.NoSuchChildError("x", name="x"), 4),
        (errors.NotEnoughSharesError("x", found=0, needed=3), 4),
        (errors.NotEnoughSharesError("x", found=2, needed=3, causes=[errors.PeerGoneError("x")]), 4),
        (errors.NoServersError("x"), 5),
        (errors.PeerGoneError("x"), 5),
        (errors.PeerTimeoutError("x"), 5),
        (errors.IntegrityError("x"), 6),
        (errors.DamagedFileError("x"), 6),
        (errors.FormatError("x"), 6),
        (_bad_share(1), 6),
        (errors.AuthorityError("x"), 7),
        (errors.NoSpaceError("x"), 12),
        (errors.PeerRefusedError("x", kind="NoSpace"), 12),
        (OSError(errno.ENOSPC, "full"), 12),
        (OSError(errno.EDQUOT, "full"), 12),
        (errors.CancelledError("x"), 130),
        (KeyboardInterrupt(), 130),
    ],
)
def test_error_has_its_code(error: BaseException, code: int) -> None:
    assert exit_code(error) == code


def test_damage_is_named_only_where_the_damaged_shares_would_have_sufficed() -> None:
    enough = [_bad_share(1), _bad_share(2), _bad_share(2)]
    assert exit_code(errors.NotEnoughSharesError("x", found=1, needed=3, causes=enough)) == ExitCode.INTEGRITY
    assert exit_code(errors.NotEnoughSharesError("x", found=0, needed=3, causes=enough)) == ExitCode.NOT_FOUND


def test_shares_damaged_in_the_same_place_are_an_integrity_error() -> None:
    assert exit_code(errors.NotEnoughSharesError("x", found=5, needed=3)) == ExitCode.INTEGRITY


def test_full_server_explains_a_failed_put_before_an_unreachable_one() -> None:
    causes = [errors.PeerGoneError("x"), errors.NoSpaceError("x")]
    assert exit_code(errors.NotHappyError("x", causes=causes)) == ExitCode.NO_SPACE
    assert exit_code(errors.NotHappyError("x", causes=causes[:1])) == ExitCode.UNREACHABLE
    assert exit_code(errors.NotHappyError("x")) == ExitCode.UNREACHABLE
    assert exit_code(errors.MayHoldError("x", causes=causes)) == ExitCode.MAY_HOLD


@pytest.mark.parametrize(
    "refusal",
    [
        errors.PeerRefusedError("x", kind="InternalError"),
        errors.BadWriteEnablerError("x"),
        errors.ConflictingWriteError("x"),
    ],
)
def test_exit_code_when_servers_answered_and_refused_then_does_not_call_them_unreachable(
    refusal: GridError,
) -> None:
    assert exit_code(errors.NotHappyError("x", causes=[refusal])) == ExitCode.OTHER
    gone = errors.PeerGoneError("x")
    assert exit_code(errors.NotHappyError("x", causes=[refusal, gone])) == ExitCode.UNREACHABLE


def _all_errors(parent: type[GridError]) -> list[type[GridError]]:
    return [parent, *(error for child in parent.__subclasses__() for error in _all_errors(child))]


def test_every_error_of_the_tree_has_a_documented_code() -> None:
    arguments: dict[type[GridError], tuple[tuple[object, ...], dict[str, object]]] = {
        errors.PeerRefusedError: (("x",), {"kind": "x"}),
        errors.ShareError: (("v0-x", 1, errors.FormatError("x")), {}),
        errors.NotEnoughSharesError: (("x",), {"found": 0, "needed": 1}),
    }
    text = (Path(__file__).parents[3] / "docs" / "exit-codes.md").read_text()
    documented = {int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)}
    assert documented == {int(code) for code in ExitCode}
    for kind in _all_errors(GridError):
        if kind.__module__ != "grid.errors":
            continue
        default: dict[str, object] = {"name": "x"} if issubclass(kind, errors.DirectoryError) else {}
        positional, named = arguments.get(kind, (("x",), default))
        assert exit_code(kind(*positional, **named)) in documented
        assert exit_code(kind(*positional, **named)) != ExitCode.OK
