"""Progress of a walk over a tree."""

from __future__ import annotations

import sys

import pytest

from grid.caps import LitCap
from grid.cli.terminal.survey_progress import SurveyDisplay
from grid.directory.pack import Child
from grid.directory.walk import Visited
from tests.support.tree_grid import TreeGrid

FILE = LitCap(data=b"x")


def test_walk_says_what_is_left_only_once_every_directory_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    now = [0.0]
    display = SurveyDisplay("checking", clock=lambda: now[0])
    below = TreeGrid().make().cap
    root = Visited(path=(), target=below, children={"a": Child(target=FILE), "sub": Child(target=below)})
    display.take(root, shares=10)
    now[0] = 30.0
    picture = display._picture(now[0])
    assert (picture.done, picture.total, picture.title) == (1, 3, "checking")
    assert picture.details == "1/3+ objects, 10 shares, 0 B, 0 objects/s" and display.remaining_s is None
    display.take(Visited(path=("a",), target=FILE, size=2_000_000), shares=10)
    display.take(Visited(path=("sub",), target=below, children={"b": Child(target=FILE)}))
    assert display._picture(now[0]).details == "3/4 objects, 20 shares, 2.00 MB, 0 objects/s, 0:10 left"
    display.stop()


def test_lines_when_there_is_a_bar_go_to_stdout_unless_it_is_the_same_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    now = [0.0]
    with SurveyDisplay("checking", clock=lambda: now[0]) as display:
        now[0] = 5.0
        display.take(Visited(path=(), target=FILE))
        display.echo("into the file")
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
        display.echo("above the bar")
    captured = capsys.readouterr()
    assert captured.out == "into the file\n"
    assert captured.err.count("above the bar") == 1 and captured.err.count("objects") >= 1
