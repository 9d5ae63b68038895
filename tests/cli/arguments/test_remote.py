"""Paths on the command line, by the table of [spec cli 1.5]; any text is a path or a clear error."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.caps import DirectoryCap, LitCap, parse_cap
from grid.cli.arguments.remote import UnknownAliasError, parse_remote
from grid.errors import CapError, ChildOfWrongTypeError, GridError

DIRECTORY = "URI:DIR2-LIT:gmzdumj2mewdcnr2kvjesosmjfkdu33oo53wgm3enuwdaormgi5hw7jmfq"
FILE = "URI:LIT:onwwc3dm"
ALIASES = {"tahoe": DIRECTORY, "work": DIRECTORY, "file": FILE}


@pytest.mark.parametrize(
    ("argument", "names", "inside"),
    [
        ("", (), True),
        ("/", (), True),
        ("a", ("a",), False),
        ("a/b", ("a", "b"), False),
        ("a/b/", ("a", "b"), True),
        ("  a b ", ("a b",), False),
        ("a/b:c", ("a", "b:c"), False),
        ("work:", (), True),
        ("work:/", (), True),
        ("work:x/y", ("x", "y"), False),
        ("work:x:y", ("x:y",), False),
        (DIRECTORY, (), True),
        (f"{DIRECTORY}/x/y", ("x", "y"), False),
        (f"{DIRECTORY}:./x/y/", ("x", "y"), True),
    ],
)
def test_path_when_parsed_then_has_these_names_below_its_root(
    argument: str, names: tuple[str, ...], inside: bool
) -> None:
    path = parse_remote(argument, ALIASES)
    assert (path.names, path.inside) == (names, inside)
    assert isinstance(path.root, DirectoryCap)
    assert "gmzdumj" not in path.shown + repr(path)


@pytest.mark.parametrize("argument", ["/a", "work:/a", "a//b", "work:a//", f"{DIRECTORY}//a"])
def test_path_when_a_name_is_empty_then_is_refused(argument: str) -> None:
    with pytest.raises(GridError, match="empty names"):
        parse_remote(argument, ALIASES)


@pytest.mark.parametrize(("argument", "name"), [("x:a", "x"), (":a", ""), ("tahoe2:", "tahoe2")])
def test_path_when_its_alias_is_unknown_then_says_so(argument: str, name: str) -> None:
    with pytest.raises(UnknownAliasError, match=f"Unknown alias '{name}'"):
        parse_remote(argument, ALIASES)


def test_path_when_there_is_no_default_alias_then_says_how_to_make_one() -> None:
    with pytest.raises(UnknownAliasError, match="create-alias tahoe"):
        parse_remote("a", {"work": DIRECTORY})


def test_path_when_its_alias_is_for_a_file_then_is_refused_without_the_capability() -> None:
    with pytest.raises(CapError, match="'file'") as caught:
        parse_remote("file:a", ALIASES)
    assert "onwwc3dm" not in str(caught.value)


def test_path_when_it_is_a_file_capability_then_is_that_file_and_nothing_below_it() -> None:
    path = parse_remote(FILE, {})
    assert path.root == parse_cap(FILE)
    assert isinstance(path.root, LitCap)
    with pytest.raises(ChildOfWrongTypeError):
        _ = parse_remote(f"{FILE}/below", {}).directory


@given(argument=st.text(), aliases=st.dictionaries(st.text(), st.text()))
def test_path_when_it_is_any_text_then_is_parsed_or_refused_clearly(argument: str, aliases: dict[str, str]) -> None:
    try:
        path = parse_remote(argument, aliases | ALIASES)
    except GridError as error:
        assert str(error)
    else:
        assert all(path.names)
