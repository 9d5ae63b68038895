"""`grid snapshots`, `diff`, `forget` and `restore --snapshot`, on a grid in memory and in virtual time."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from grid.directory.snapshots import NAME_FORMAT, parse_name
from tests.support.memory_command import MemoryCommand

HOUR_S = 3600


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> MemoryCommand:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs" / "letters").mkdir(parents=True)
    (tmp_path / "docs" / "list.txt").write_bytes(b"l" * 100)
    (tmp_path / "docs" / "letters" / "1.txt").write_bytes(b"1" * 200)
    return MemoryCommand(tmp_path / "client", monkeypatch, capsys)


def back_up(command: MemoryCommand, *options: str) -> str:
    """The name of a new snapshot; the next one is an hour later."""
    made = json.loads(command.succeed("backup", "--json", *options, "docs", "work:b"))
    command.wait(HOUR_S)
    name: str = made["name"]
    return name


def listed(command: MemoryCommand, *options: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(command.succeed("snapshots", "--json", *options, "work:b"))["snapshots"]
    return found


def names(command: MemoryCommand, *options: str) -> list[str]:
    return [each["name"] for each in listed(command, *options)]


def test_snapshots_when_listed_show_time_source_and_size(command: MemoryCommand, tmp_path: Path) -> None:
    first = back_up(command, "--host", "attic", "--tag", "monthly", "--tag", "keep")
    second = back_up(command, "--host", "attic")
    about = listed(command)
    assert [each.pop("name") for each in about] == [first, second]
    moment = parse_name(first)
    assert moment is not None and about[0].pop("time") == moment.strftime(NAME_FORMAT).replace("_", "T")
    assert about[0] == {
        "host": "attic", "directory": str(tmp_path / "docs"), "tags": ["monthly", "keep"], "files": 2, "bytes": 300,
        "complete": True, "latest": True,
    }  # fmt: skip
    assert about[1]["latest"], "an unchanged tree is the same snapshot"
    heading, *lines = command.succeed("snapshots", "work:b").splitlines()
    assert heading.split() == ["SNAPSHOT", "FILES", "SIZE", "HOST", "TAGS", "DIRECTORY"]
    assert lines[0].split()[:6] == [first, "2", "300", "B", "attic", "monthly"] and len(lines) == 2
    assert [line.endswith("(latest)") for line in lines] == [False, True], "only one is the latest"
    assert names(command, "--tag", "keep") == [first] and names(command, "--host", "cellar") == []


def test_snapshots_of_other_programs_are_listed_without_what_they_lack(command: MemoryCommand) -> None:
    name = back_up(command)
    command.succeed("mkdir", "work:b/Archives/2020-01-01_00:00:00Z")
    command.succeed("mkdir", "work:b/Archives/mine")
    old, new = listed(command)
    assert (old["name"], old["files"], old["host"], old["latest"]) == ("2020-01-01_00:00:00Z", None, None, False)
    assert new["name"] == name
    assert "mine" in command.succeed("ls", "work:b/Archives")


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("work:none", "No such file"),
        ("work:plain", "is not a backup"),
        ("work:b/Archives", "name the backup itself, work:b"),
        ("work:b/Latest", "name the backup itself, work:b"),
    ],
)
def test_directory_that_is_not_a_backup_is_named_with_a_remedy(command: MemoryCommand, path: str, words: str) -> None:
    back_up(command)
    command.succeed("mkdir", "work:plain")
    assert words in command.fail(4, "snapshots", path)
    assert words in command.fail(4, "forget", "--keep-last", "1", path)
    assert words in command.fail(4, "restore", "--snapshot", "latest", path, "out")
    assert words in command.fail(4, "diff", "--in", path, "latest", "latest")


def test_forget_when_dry_says_what_it_would_do_and_does_nothing(command: MemoryCommand) -> None:
    made = [back_up(command) for _ in range(4)]
    shown = command.succeed("forget", "--keep-last", "1", "--keep-within", "1h", "--dry-run", "work:b").splitlines()
    assert shown[0] == f"remove  {made[0]}" and shown[2] == f"keep    {made[2]}  (within 1h)"
    assert shown[-1] == "2 snapshots would be removed, 2 kept"
    assert names(command) == made


def test_forget_keeps_what_the_policy_says_and_other_entries(command: MemoryCommand) -> None:
    made = [back_up(command) for _ in range(4)]
    command.succeed("mkdir", "work:b/Archives/mine")
    done = json.loads(command.succeed("forget", "--json", "--keep-last", "2", "work:b"))
    assert [each["name"] for each in done["kept"]] == made[2:] and not done["dry_run"]
    assert [each["name"] for each in done["removed"]] == made[:2]
    assert done["kept"][0]["reasons"] == ["last snapshot"]
    assert names(command) == made[2:] and "mine" in command.names("work:b/Archives")
    again = json.loads(command.succeed("forget", "--json", "--keep-last", "2", "work:b"))
    assert again["removed"] == []


def test_forget_of_the_newest_moves_latest_to_the_newest_that_remains(command: MemoryCommand) -> None:
    first = back_up(command)
    Path("docs/list.txt").write_bytes(b"new" * 100)
    second = back_up(command)
    command.succeed("forget", "work:b", second)
    (left,) = listed(command)
    assert (left["name"], left["latest"]) == (first, True)
    command.succeed("restore", "work:b/Latest", "out")
    assert Path("out/list.txt").read_bytes() == b"l" * 100
    command.succeed("forget", "work:b", first)
    assert command.names("work:b") == ["Archives"] and listed(command) == []
    assert "there are no snapshots" in command.fail(4, "restore", "--snapshot", "latest", "work:b", "out")


def test_forget_never_removes_all_by_a_policy(command: MemoryCommand) -> None:
    back_up(command)
    assert "would stay" in command.fail(1, "forget", "--keep-tag", "monthly", "work:b")
    assert len(listed(command)) == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["work:b"], "say what to keep"),
        (["--keep-last", "0", "work:b"], "--keep-last takes a number from 1"),
        (["--keep-daily", "-1", "work:b"], "--keep-daily takes a number from 1"),
        (["--keep-daily", "9" * 400, "work:b"], "--keep-daily takes a number from 1"),
        (["--keep-within", "soon", "work:b"], "is not a duration"),
        (["--keep-last", "1", "work:b", "2020-01-01_00:00:00Z"], "not both"),
    ],
)
def test_forget_without_a_policy_that_makes_sense_is_wrong_usage(
    command: MemoryCommand, options: list[str], words: str
) -> None:
    back_up(command)
    assert words in command.fail(2, "forget", *options)
    assert len(listed(command)) == 1


def test_forget_of_a_name_that_is_not_there_removes_nothing(command: MemoryCommand) -> None:
    made = back_up(command)
    assert "there is no snapshot '2020'" in command.fail(4, "forget", "work:b", made, "2020")
    assert "there is no snapshot 'latest'" in command.fail(4, "forget", "work:b", "latest")
    assert f"write the whole name: {made}" in command.fail(4, "forget", "work:b", made[:10])
    assert names(command) == [made]


def test_differences_of_two_snapshots_are_listed_and_counted(command: MemoryCommand) -> None:
    first = back_up(command)
    Path("docs/list.txt").write_bytes(b"n" * 150)
    Path("docs/letters/1.txt").unlink()
    Path("docs/more/deep").mkdir(parents=True)
    Path("docs/more/deep/2.txt").write_bytes(b"2" * 70)
    Path("docs/letters/1.txt").mkdir()
    second = back_up(command)
    *lines, totals = command.succeed("diff", "--in", "work:b", first, second).splitlines()
    assert lines == ["T  letters/1.txt/", "M  list.txt", "+  more/", "+  more/deep/", "+  more/deep/2.txt"]
    assert totals.startswith("1 file added, 0 removed, 1 modified; 2 directories added, 0 removed; 1 changed between")
    *events, counts = map(
        json.loads, command.succeed("diff", "--json", "work:b/Latest", f"work:b/Archives/{first}").splitlines()
    )
    assert [(each["change"], each["path"]) for each in events][-1] == ("removed", "more/deep/2.txt")
    assert (counts["event"], counts["files_removed"], counts["removed_bytes"]) == ("diff", 1, 220)
    assert (counts["added_bytes"], counts["files_modified"], counts["retyped"]) == (300, 1, 1)
    assert command.succeed("diff", "work:b/Latest", "work:b/Latest").startswith("0 files added")


def test_directory_that_contains_itself_is_compared_once(command: MemoryCommand) -> None:
    command.succeed("mkdir", "work:a/sub")
    command.succeed("mkdir", "work:z")
    command.succeed("ln", "work:a", "work:a/sub/again")
    lines = command.succeed("diff", "work:z", "work:a").splitlines()
    assert lines[:2] == ["+  sub/", "+  sub/again/"] and len(lines) < 8


def test_restore_of_a_snapshot_by_its_hour_brings_back_what_is_selected(command: MemoryCommand) -> None:
    first = back_up(command)
    Path("docs/list.txt").write_bytes(b"new" * 100)
    back_up(command)
    command.succeed("restore", "--snapshot", first[:13], "--include", "list.txt", "--target", "out", "work:b")
    assert Path("out/list.txt").read_bytes() == b"l" * 100 and not Path("out/letters").exists()
    command.succeed("restore", "--snapshot", "latest", "--exclude", "/letters", "work:b", "newest")
    assert [path.name for path in Path("newest").iterdir()] == ["list.txt"]
    assert Path("newest/list.txt").read_bytes() == b"new" * 100
    said = command.fail(4, "restore", "--include", "/home/me/list.txt", "work:b/Latest", "none")
    assert "matches --include; paths in patterns begin there, as in /letters/1.txt" in said
    assert not Path("none").exists()


def test_restore_by_a_time_says_which_snapshot_it_is_from(command: MemoryCommand) -> None:
    first = back_up(command)
    back_up(command)
    for text in (first[:13].replace("_", " "), first[:16].replace("_", "T")):
        said = command.succeed("restore", "--snapshot", text, "work:b", f"out-{text}")
        assert said == f"2 files restored (0 already there), 2 directories, from work:b/Archives/{first}"


def test_restore_from_a_path_that_moves_the_cursor_shows_it_with_escapes(command: MemoryCommand) -> None:
    command.succeed("backup", "docs", "work:x\x1b[2Jy")
    said = command.succeed("restore", "--snapshot", "latest", "work:x\x1b[2Jy", "out")
    assert ', from "work:x\\x1b[2Jy/Archives/' in said and "\x1b" not in said


def test_restore_of_a_day_without_a_snapshot_names_its_neighbors(command: MemoryCommand) -> None:
    first, second = back_up(command), back_up(command)
    command.succeed("mv", f"work:b/Archives/{first}", "work:b/Archives/2020-05-01_00:00:00Z")
    said = command.fail(4, "restore", "--snapshot", "2020-06-01", "work:b", "out")
    assert f"the last one before is 2020-05-01_00:00:00Z, the next is {second}; `grid snapshots work:b`" in said
    assert "in work:b: the next is 2020-05-01" in command.fail(4, "restore", "--snapshot", "2019-01", "work:b", "out")
    assert "in work:b; `grid" in command.fail(4, "restore", "--snapshot", "tuesday", "work:b", "out")


def test_restore_of_a_backup_without_a_snapshot_asks_for_one(command: MemoryCommand) -> None:
    back_up(command)
    said = command.fail(2, "restore", "work:b", "out")
    assert "choose one, as in `--snapshot latest work:b`" in said and not Path("out").exists()
    assert "is on the grid" in command.fail(2, "restore", "work:b/Latest", "work:out")
    assert not Path("work:out").exists()


@pytest.mark.parametrize(
    "arguments", [["work:b/Latest"], ["work:b/Latest", "out", "--target", "other"], ["--include", "/", "work:b", "out"]]
)
def test_restore_without_one_directory_or_with_an_empty_pattern_is_wrong_usage(
    command: MemoryCommand, arguments: list[str]
) -> None:
    command.fail(2, "restore", *arguments)


@pytest.mark.parametrize("tag", ["", "two words", "a,b", "x" * 101, "\x1b[0m"])
def test_tag_that_would_be_ambiguous_is_wrong_usage(command: MemoryCommand, tag: str) -> None:
    command.fail(2, "backup", "--tag", tag, "docs", "work:b")


def test_snapshots_of_one_second_are_both_kept(command: MemoryCommand) -> None:
    made = [json.loads(command.succeed("backup", "--json", "--host", host, "docs", "work:b")) for host in "abc"]
    first, second, third = [each["name"] for each in made]
    assert names(command) == [first, second, third] == sorted({first, second, third})
    assert [each["host"] for each in listed(command)] == ["a", "b", "c"]
    moments = [parse_name(name) for name in (first, third)]
    assert moments[0] is not None and moments[1] is not None
    assert (moments[1] - moments[0]).total_seconds() <= 2


def test_snapshot_of_a_clock_that_was_ahead_pushes_no_other_out(command: MemoryCommand) -> None:
    first, second, third, ahead = [back_up(command) for _ in range(4)]
    command.succeed("mv", f"work:b/Archives/{ahead}", "work:b/Archives/2199-01-01_00:00:00Z")
    command.succeed("forget", "--keep-last", "2", "work:b")
    assert names(command) == [second, third, "2199-01-01_00:00:00Z"] and first < second


def test_backup_that_is_older_than_max_age_gives_one_and_says_so(command: MemoryCommand) -> None:
    name = back_up(command)
    assert command.succeed("snapshots", "--max-age", "2h", "work:b")
    fresh = json.loads(command.succeed("snapshots", "--json", "--max-age", "2h", "work:b"))
    assert fresh["problems"] == [] and json.loads(command.succeed("snapshots", "--json", "work:b"))["problems"] is None
    command.wait(2 * HOUR_S)
    ended = command.run("snapshots", "--quiet", "--max-age", "2h", "work:b")
    words = f"the newest complete snapshot, {name}, is older than 2h"
    assert (ended.code, ended.err) == (1, f"WARNING: {words}\n") and name in ended.out
    ended = command.run("snapshots", "--json", "--max-age", "2h", "work:b")
    assert (ended.code, ended.err, json.loads(ended.out)["problems"]) == (1, "", [words])
    assert "there is no snapshot" in command.run("snapshots", "--max-age", "2h", "--host", "none", "work:b").err
    assert "is not a duration" in command.fail(2, "snapshots", "--max-age", "soon", "work:b")


def test_backup_that_was_incomplete_or_failed_gives_one_with_max_age(command: MemoryCommand) -> None:
    back_up(command)
    lost, command.grid.servers[:] = command.grid.servers[6:], command.grid.servers[:6]
    Path("docs/list.txt").write_bytes(b"n" * 100)
    assert command.run("backup", "docs", "work:b").code == 5
    command.grid.servers[:] = [*command.grid.servers, *lost]
    ended = command.run("snapshots", "--max-age", "26h", "work:b")
    assert ended.code == 1 and ended.err.count("stored no snapshot") == 1
    ended = command.run("snapshots", "--json", "--max-age", "26h", "work:b")
    (problem,) = json.loads(ended.out)["problems"]
    assert ended.code == 1 and "stored no snapshot" in problem
    os.mkfifo("docs/pipe")
    assert command.run("backup", "docs", "work:b").code == 2
    ended = command.run("snapshots", "--max-age", "26h", "work:b")
    assert ended.code == 1 and "is incomplete" in ended.err and "stored no snapshot" not in ended.err


def test_include_that_a_later_snapshot_lacks_names_the_nearest_earlier_one_that_has_it(command: MemoryCommand) -> None:
    first, second = back_up(command), back_up(command)
    Path("docs/letters/1.txt").unlink()
    back_up(command)
    Path("docs/list.txt").write_bytes(b"n" * 100)
    for pattern in ("/letters/1.txt", "letters/1.txt"):
        arguments = ["restore", "--snapshot", "latest", "--include", pattern, "work:b", "out"]
        back_up(command)
        assert f"the nearest earlier snapshot that has {pattern} is {second}" in command.fail(4, *arguments)
    for pattern in ("/letters/2.txt", "/letters/1*", "1.txt"):
        said = command.fail(4, "restore", "--snapshot", "latest", "--include", pattern, "work:b", "out")
        assert "matches --include" in said and "nearest" not in said
    assert "nearest" not in command.fail(
        4, "restore", "--snapshot", first, "--include", "/letters/2.txt", "work:b", "out"
    )


def test_path_of_a_file_with_an_option_for_snapshots_leads_to_the_backup(command: MemoryCommand) -> None:
    name = back_up(command)
    for path in ("work:b/letters/1.txt", "work:b/letters"):
        said = command.fail(4, "restore", "--snapshot", name, path, "out")
        below = path.removeprefix("work:b")
        assert f"the backup is work:b: `grid restore --snapshot {name} --include '{below}' 'work:b' DIR`" in said
    assert "the backup is" not in command.fail(4, "restore", "--snapshot", name, "work:c/letters/1.txt", "out")
    said = command.fail(4, "restore", "--snapshot", name, "work:b/Archives/none/1.txt", "out")
    assert "the backup is" not in said, "a path in the backup's own directories is none in a snapshot"


def test_snapshot_without_changes_takes_nothing_and_is_listed(command: MemoryCommand) -> None:
    first, second = back_up(command), back_up(command)
    lines = [line.split() for line in command.succeed("du", "--bytes", "work:b/Archives").splitlines()[1:]]
    assert lines == [["300", "2", "."], ["300", "2", first], ["0", "0", second]]
