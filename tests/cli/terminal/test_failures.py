"""Error messages of failing commands."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from grid.cli.arguments.share_counts import how_to_ask_for_fewer
from grid.cli.terminal.exit_codes import ExitCode, exit_code
from grid.cli.terminal.failures import MAX_REASONS, describe, reasons
from grid.errors import (
    CancelledError,
    GridError,
    NoServersError,
    NoSpaceError,
    NoSuchChildError,
    NotEnoughSharesError,
    NotHappyError,
    PeerGoneError,
    PeerRefusedError,
    PeerTimeoutError,
)


def test_error_is_one_line_without_control_characters() -> None:
    assert describe(GridError("a\nb\x1b[31mc\u2028d")) == "a b [31mc d"


def test_local_file_error_names_the_file() -> None:
    assert describe(FileNotFoundError(2, "No such file or directory", "a/b")) == "a/b: No such file or directory"


def test_full_disk_is_not_taken_for_a_full_server() -> None:
    assert describe(OSError(28, "No space left on device")) == "on this machine: No space left on device"
    assert describe(OSError(28, "No space left on device", "a")) == "a: No space left on device"


def test_unreachable_servers_are_a_reason_to_look_at_the_status() -> None:
    gone = PeerGoneError("the connection was lost")
    for error in (
        gone,
        NoServersError("none of 3 servers could be reached"),
    ):
        assert describe(error).startswith(f"{error}; `grid status` shows which servers answer")
    missing = NotEnoughSharesError("2 shares of 3", found=2, needed=3)
    assert describe(missing) == "2 shares of 3; `grid status` lists servers that are offline"


def test_too_few_servers_are_reported_in_one_short_line_and_one_for_each_reason() -> None:
    causes: list[GridError] = [
        PeerGoneError(f"server s{n} cannot be reached: connection refused", reason="connection refused")
        for n in range(4)
    ]
    causes.append(PeerTimeoutError("server s5 did not answer in time", reason="no answer"))
    error = NotHappyError("1.20's words " * 30, causes=[*causes, causes[0]], reached=1, happy=7)
    assert describe(error) == (
        "only 1 server took shares, and 7 are needed; `grid status` lists servers that are offline: start them again,"
        " or choose smaller numbers: `grid config set client.shares.happy N`, and likewise client.shares.needed and"
        " client.shares.total"
    )
    assert reasons(error) == ["connection refused (4 servers)", "no answer (1 server)"]
    known = [
        PeerGoneError(f"server {n} is gone", reason="connection refused", server=f"server {n}") for n in ("b", "a", "b")
    ]
    assert reasons(NotHappyError("x", causes=known)) == ["connection refused (a, b)"]
    none = NotHappyError("x", causes=causes, reached=0, happy=3)
    assert describe(none).startswith("no server took shares, and 3 are needed; ")
    many = NotHappyError("x", causes=[PeerGoneError(f"{n}" * 500) for n in range(50)], reached=0, happy=3)
    assert len(reasons(many)) == MAX_REASONS and max(map(len, reasons(many))) < 150
    assert reasons(NoServersError("none")) == []


def test_too_few_servers_are_a_reason_to_ask_for_fewer_but_full_ones_are_not() -> None:
    gone, full = PeerGoneError("the connection was lost"), NoSpaceError("the disk is full")
    said = describe(NotHappyError("only 2 servers (the connection was lost)", causes=[gone]))
    assert said.startswith("only 2 servers; `grid status` lists servers that are offline: start them again, or choose")
    few = NotHappyError("only 2 server(s), and 7 are asked for")
    assert "--happy" not in describe(few)
    assert describe(few, has_happy_option=True).endswith(", or ask for fewer with `--happy N`")
    assert describe(NotHappyError("only 2 server(s)", causes=[full])) == "only 2 server(s)"
    assert "--happy" not in describe(NoServersError("none"))


def test_full_servers_are_named_with_what_helps() -> None:
    full = NotHappyError("x", reached=2, happy=3, full=["attic has no space or is read-only"])
    assert exit_code(full) is ExitCode.NO_SPACE
    assert describe(full, has_happy_option=True) == (
        "only 2 servers took shares, and 3 are needed; attic has no space or is read-only: free space there or lower"
        " storage.reserved_space of that node, or ask for fewer with `--happy 2`"
    )
    forbidden = NotHappyError("x", reached=2, happy=3, full=["attic is read-only"])
    assert describe(forbidden, has_happy_option=True) == (
        "only 2 servers took shares, and 3 are needed; attic is read-only: change that there, or ask for fewer with `--happy 2`"
    )
    broken = NotHappyError("x", reached=2, happy=3, full=["attic cannot write, and its log says why"])
    assert "reserved_space" not in describe(broken) and "attic cannot write" in describe(broken)


def test_numbers_that_fit_the_grid_are_offered_where_they_are_known() -> None:
    fewer = how_to_ask_for_fewer(Path("/some where"), 3)
    said = describe(NotHappyError("only 3 servers are known, and 7 are needed", fewer=fewer))
    assert said.startswith("only 3 servers are known, and 7 are needed; `grid status` lists servers that are offline")
    assert said.endswith(
        "or choose numbers for 3 servers: `--needed 1 --happy 2 --total 3` for one file, or `grid -d '/some where' config set"
        " client.shares.needed 1`, `grid -d '/some where' config set client.shares.happy 2`, `grid -d '/some where' config set"
        " client.shares.total 3` for all"
    )


def test_message_when_servers_answered_and_refused_then_sends_nobody_to_see_who_answers() -> None:
    refused = PeerRefusedError("InternalError", kind="InternalError")
    said = describe(NotHappyError("only 2 server(s) (InternalError).", causes=[refused]))
    assert "; servers answered but refused: ask their operators, or choose smaller numbers: `grid config set" in said
    assert "grid status" not in said
    mixed = describe(NotHappyError("only 2 server(s)", causes=[refused, PeerGoneError("lost")]))
    assert "`grid status` lists" in mixed and "refused" not in mixed


def test_hint_follows_a_sentence_without_its_full_stop() -> None:
    assert describe(NoServersError("Only 1 is known.")).startswith("Only 1 is known; `grid status`")


def test_message_that_asks_the_question_itself_is_left_alone() -> None:
    assert describe(NoServersError("no introducer; is it running?")) == "no introducer; is it running?"


def test_defect_is_not_shown_but_named() -> None:
    text = describe(KeyError("URI:CHK:secret"))
    assert "KeyError" in text
    assert "secret" not in text


def test_missing_child_is_not_blamed_on_servers() -> None:
    assert (
        describe(NoSuchChildError("there is no 'x' in the directory", name="x")) == "there is no 'x' in the directory"
    )


def test_lack_of_memory_is_not_reported_as_a_bug() -> None:
    assert describe(MemoryError()) == "not enough memory"


def test_interruption_is_reported_as_such() -> None:
    assert describe(KeyboardInterrupt()) == describe(CancelledError("x")) == "interrupted"


@given(st.text(max_size=30))
def test_any_message_is_one_line(text: str) -> None:
    assert "\n" not in describe(GridError(text))
    assert describe(GridError(text))
