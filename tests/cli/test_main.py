"""The command as a whole: usage, errors, secrets, and everything that needs no server."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from grid.cli.main import main
from tests.cli.command import grid

CHK = "URI:CHK:ubyhxs6zs4tpkuvc2lu5s2zw5q:xltrzdg7dmk4boidlqgeh2rfmnwb4b2d3fmxmqbwiy3fsbuc6nfq:3:10:1000"
VERIFY = "URI:CHK-Verifier:2nyw2iddkpzuyzypqrnnpnmjmq:xltrzdg7dmk4boidlqgeh2rfmnwb4b2d3fmxmqbwiy3fsbuc6nfq:3:10:1000"
FURL = "pb://l2rdxsw4e5nqqud4h4cj7uuaz2s6is2e@tcp:127.0.0.1:9/ln3ddyjdlt3cxe5uujeubs3ho2cl4jht"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A client whose introducer nobody runs."""
    path = tmp_path_factory.mktemp("client")
    assert main(["create", "client", "--introducer", FURL, str(path)]) == 0
    return path


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    for name in ("up", "down", "create", "run", "put", "get", "check", "repair", "status"):
        assert f"\n  {name} " in text


def test_help_imports_nothing_heavy() -> None:
    import subprocess

    code = (
        "import sys; from grid.cli.main import main; main(['--help']); "
        "heavy = {'twisted', 'foolscap', 'rich', 'yaml', 'cryptography', 'psutil', 'cffi'} & set(sys.modules); "
        "sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_program_ends_without_freeing_objects_but_with_all_that_atexit_ends() -> None:
    import subprocess

    code = """
import atexit, sys
from grid.cli import main

class Kept:
    def __del__(self):
        print("freed")

def command():
    main.kept = Kept()
    atexit.register(print, "ended")
    print("shown")
    return 3

main.main = command
sys.exit(main.run())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (3, "shown\nended\n", "")


def test_version_says_which_erasure_codec_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert "erasure codec: " in capsys.readouterr().out
    assert main(["--version", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["erasure_codec"] in {"isal", "zfec"}
    assert found["hashing"] in {"lanes", "hashlib"}


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["frobnicate"],
        ["put", "--needed", "0", "file"],
        ["get"],
        ["get", "URI:CHK:short"],
        ["put", "a", "b", "c"],
        ["repair", CHK, CHK],
        ["mkdir", "--format", "CHK"],
        ["get", CHK, "a", "b"],
        ["get", "--range", "5", CHK],
        ["get", "--range", "-", CHK],
        ["get", "--range", "7-5", CHK],
        ["get", "--range", "1000-", CHK],
        ["--gateway", "foo", "ls"],
        ["--json", "create", "client", "d"],
        ["create", "client", "--hostname", "x", "d"],
        ["create", "introducer", "--port", "tcp:1", "d"],
        ["create", "introducer", "--port", "tcp:1", "--location", "tcp:h:1", "--hostname", "h", "d"],
        ["up", "--nodes", "0"],
    ],
)
def test_wrong_usage_ends_with_2_and_shows_no_capability(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err
    assert "ubyhxs6z" not in captured.err
    assert "Traceback" not in captured.err


def test_empty_capability_is_reported_as_such(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "cap").write_text("\n")
    for arguments in (["get", ""], ["check", "--cap-file", str(tmp_path / "cap")]):
        assert main(arguments) == 2
        assert "the capability is empty" in capsys.readouterr().err


@pytest.mark.parametrize("content", ["ubyhxs6z:sekrit", "sekrit", "CHK:sekrit", "\x1b[2Jsekrit"])
def test_file_without_a_capability_is_refused_and_not_shown(
    content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cap").write_text(content)
    for command in ("get", "check", "repair"):
        assert main(["-d", str(tmp_path), command, "--cap-file", str(tmp_path / "cap")]) == 2
        said = capsys.readouterr().err
        assert f"{tmp_path / 'cap'} does not hold a capability" in said
        assert "sekrit" not in said and "ubyhxs6z" not in said


def test_verify_capability_does_not_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["get", VERIFY]) == 7
    assert capsys.readouterr().err.startswith("grid: a verify capability")


def test_missing_client_directory_says_how_to_get_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-d", str(tmp_path / "none"), "check", CHK]) == 1
    assert "grid up" in capsys.readouterr().err


def test_home_of_somebody_unknown_is_an_error_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (
        ["-d", "~nobody-of-this-name/x", "check", CHK],
        ["create", "client", "--introducer", FURL, "~nobody-of-this-name/x"],
    ):
        assert main(arguments) == 1
        assert "there is no such user" in capsys.readouterr().err


def test_introducer_directory_is_refused_as_a_client(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["create", "introducer", "--port", "tcp:1", "--location", "tcp:h:1", str(tmp_path / "i")]) == 0
    assert main(["-d", str(tmp_path / "i"), "check", CHK]) == 1
    assert "introducer" in capsys.readouterr().err


def test_directory_comes_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRID_NODE_DIR", str(tmp_path / "from-environment"))
    assert "from-environment" in grid("check", CHK, GRID_NODE_DIR=str(tmp_path / "from-environment")).err


def test_furl_may_be_named_by_its_file(tmp_path: Path) -> None:
    (tmp_path / "introducer.furl").write_text(FURL + "\n")
    assert main(["create", "client", "--introducer", str(tmp_path / "introducer.furl"), str(tmp_path / "c")]) == 0
    assert FURL in (tmp_path / "c" / "private" / "introducers.yaml").read_text()


@pytest.mark.parametrize("introducer", ["x", "pb://short@tcp:h:1/sekrit", "empty"])
def test_invalid_introducer_is_refused_with_where_to_find_it(
    introducer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").touch()
    assert main(["create", "client", "--introducer", introducer, "c"]) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said.endswith("a running introducer has its own in private/introducer.furl\n")
    assert "sekrit" not in said
    assert not (tmp_path / "c").exists()


def test_directory_that_is_taken_is_an_error_on_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x").touch()
    assert main(["create", "client", "--introducer", FURL, str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert error.startswith("grid: ")
    assert error.count("\n") == 1


def test_small_file_goes_into_its_capability_and_comes_back_without_a_server(client: Path, tmp_path: Path) -> None:
    put = grid("-d", client, "put", "-", stdin=b"hello, world")
    assert (put.code, put.line, put.err) == (0, "URI:LIT:nbswy3dpfqqho33snrsa", "")
    assert grid("get", put.line, GRID_NODE_DIR=str(client)).out == b"hello, world"
    (tmp_path / "cap").write_text(put.line + "\n")
    part = grid("-d", client, "get", "--cap-file", tmp_path / "cap", "--range", "7-8", tmp_path / "part")
    assert (part.code, part.out, (tmp_path / "part").read_bytes()) == (0, b"", b"wo")
    assert grid("-d", client, "get", "-", "--range", "-5", stdin=put.line.encode()).out == b"world"
    health = grid("-d", client, "check", put.line)
    assert (health.code, health.line.splitlines()[0]) == (0, "Summary: Healthy (LIT)")


def test_empty_file_goes_into_its_capability(client: Path, tmp_path: Path) -> None:
    put = grid("-d", client, "put", "--json", "/dev/null")
    assert json.loads(put.out)["cap"] == "URI:LIT:"
    assert grid("-d", client, "get", "URI:LIT:", tmp_path / "empty").code == 0
    assert (tmp_path / "empty").read_bytes() == b""


def test_introducer_that_nobody_runs_ends_with_5_and_leaves_no_target(client: Path, tmp_path: Path) -> None:
    got = grid("-d", client, "get", CHK, tmp_path / "target")
    assert got.code == 5
    assert got.err.startswith("grid: no introducer could be reached")
    assert got.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
    assert grid("-d", client, "status").code == 5


def test_client_without_an_introducer_says_where_to_name_one(tmp_path: Path) -> None:
    (tmp_path / "grid.cfg").write_text("[node]\nnickname = x\n")
    got = grid("-d", tmp_path, "check", CHK)
    assert got.code == 1
    assert "introducers.yaml" in got.err


def test_misspelt_key_stops_the_command_and_is_named(tmp_path: Path) -> None:
    (tmp_path / "grid.cfg").write_text("[node]\nnicname = x\n")
    for arguments in (("check", CHK), ("run",)):
        got = grid("-d", tmp_path, *arguments)
        assert got.code == 1
        assert "section [node], key nicname: there is no such key" in got.err


def test_node_whose_port_is_impossible_says_so(tmp_path: Path) -> None:
    (tmp_path / "grid.cfg").write_text("[node]\ntub.port = tcp:99999999\ntub.location = tcp:127.0.0.1:99999999\n")
    outcome = grid("run", tmp_path)
    assert outcome.code == 1
    assert "section [node], key tub.port: expected tcp:PORT" in outcome.err


def test_missing_file_is_an_error_on_one_line(client: Path) -> None:
    put = grid("-d", client, "put", "/nowhere/file")
    assert (put.code, put.err) == (4, "grid: /nowhere/file: No such file or directory\n")


def test_debug_shows_where_but_no_capability(client: Path) -> None:
    got = grid("-d", client, "get", CHK, GRID_DEBUG="1")
    assert "Traceback" in got.err
    assert "ubyhxs6z" not in got.err


def test_reader_that_stops_reading_ends_it_without_a_word(client: Path) -> None:
    import subprocess

    command = [sys.executable, "-m", "grid.cli", "-d", str(client), "get", "URI:LIT:nbswy3dpfqqho33snrsa"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        error = process.stderr.read().decode()
    assert process.returncode == 1
    assert error == ""


def test_client_in_the_default_directory_needs_no_d(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("GRID_NODE_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in (".grid", "other"):
        assert main(["create", "client", "--introducer", FURL, str(tmp_path / name)]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.endswith("/.grid; use it as `grid put FILE`.")
    assert second.endswith(f"use it as `grid -d {tmp_path}/other put FILE`.")
    monkeypatch.setenv("GRID_NODE_DIR", str(tmp_path / "third"))
    assert main(["create", "client", "--introducer", FURL, str(tmp_path / "third")]) == 0
    assert capsys.readouterr().out.endswith("use it as `grid put FILE`.\n")


def test_introducer_that_is_empty_is_called_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["create", "client", "--introducer", "", str(tmp_path / "c")]) == 1
    assert capsys.readouterr().err.startswith("grid: the introducer's FURL is empty")
    assert not (tmp_path / "c").exists()
