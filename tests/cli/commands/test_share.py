"""`grid share`, `grid shares`, `grid unshare`: links are printed once, listed without their addresses, and taken back."""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from grid.cli.commands.share import _complete_links, share
from grid.cli.main import cli
from grid.gateway.shared.share_links import ShareLink, token_digest
from grid.node.share_file import PUBLIC_URL, READ_ONLY, READ_WRITE, VISITORS, ShareFile
from tests.support.memory_command import MemoryCommand

LINK = re.compile(r"http://127\.0\.0\.1:\d+/s/([A-Za-z0-9_-]{32})")


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> MemoryCommand:
    found = MemoryCommand(tmp_path / "client", monkeypatch, capsys)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_bytes(b"x" * 1000)
    found.succeed("put", "file", "work:a b.txt")
    found.succeed("mkdir", "work:photos")
    return found


@pytest.fixture
def listening(command: MemoryCommand) -> Iterator[str]:
    """The URL of something that listens where the client directory's gateway would."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/"
        (command.path / "node.url").write_text(f"{url}\n")
        yield url


def links(command: MemoryCommand) -> list[ShareLink]:
    return list(ShareFile(command.path / "private").read())


def test_link_is_printed_once_and_only_its_digest_is_kept(command: MemoryCommand, listening: str) -> None:
    ended = command.run("share", "work:photos")
    found = LINK.fullmatch(ended.out.strip())
    assert ended.code == 0 and found is not None and ended.out.startswith(listening)
    (link,) = links(command)
    assert link.digest == token_digest(found[1]) and (link.name, link.is_directory) == ("photos", True)
    assert link.cap.authority == "read" and link.expires is not None and link.expires - link.created == 7 * 86400
    assert "only on this computer" in ended.err and f"grid unshare {link.identifier}" in ended.err
    assert found[1] not in ended.err and "URI:" not in ended.err
    file = command.path / "private" / "share-links.json"
    assert found[1] not in file.read_text() and file.stat().st_mode & 0o777 == 0o600
    for shown in (command.run("shares"), command.run("shares", "--json")):
        assert found[1] not in shown.out and "URI:" not in shown.out and link.identifier in shown.out


def test_link_begins_with_the_public_address_of_the_gateway_or_the_one_given(
    command: MemoryCommand, listening: str
) -> None:
    (command.path / PUBLIC_URL).write_text("https://files.example:8443/\n")
    ended = command.run("share", "work:a b.txt")
    assert ended.out.startswith("https://files.example:8443/s/") and "warning" not in ended.err
    (command.path / PUBLIC_URL).write_text("http://files.example/\n")
    assert "not encrypted" in command.run("share", "work:a b.txt").err
    given = command.run("share", "--address", "https://proxy.example", "work:a b.txt")
    assert given.out.startswith("https://proxy.example/s/")
    for text in ("ftp://x", "https://proxy.example/grid/", "https://user@proxy.example/"):
        assert "--address" in command.fail(2, "share", "--address", text, "work:a b.txt")
    assert {link.name for link in links(command)} == {"a b.txt"}


def test_link_that_others_may_not_be_able_to_open_comes_with_a_warning(
    command: MemoryCommand, listening: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: "Attic")
    public = command.path / PUBLIC_URL
    public.write_text("https://attic:8443/\n")
    said = command.run("share", "work:photos").err
    assert "this computer's own name, attic." in said and "its IP address" in said and "/s/" not in said
    assert "own name" not in command.run("share", "--address", "https://attic:8443", "work:photos").err
    public.write_text("https://192.168.1.7:8443/\n")
    assert "warning" not in command.run("share", "work:photos").err
    public.write_text("https://attic:8443/\n")
    command.succeed("config", "set", "node.web.allowed_hosts", "attic")
    assert "warning" not in command.run("share", "work:photos").err


def test_link_through_a_gateway_that_is_not_read_only_comes_with_a_warning(
    command: MemoryCommand, listening: str
) -> None:
    command.path.joinpath(PUBLIC_URL).write_text("https://files.example:8443/\n")
    rights = command.path / VISITORS
    rights.write_text(f"{READ_WRITE}\n")
    said = command.run("share", "work:photos").err
    assert "everyone who can open the link can also store files" in said
    assert "`grid config set node.web.read_only yes`" in said and "proxy" not in said
    proxied = command.run("share", "--address", "https://proxy.example", "work:photos").err
    assert "unless your proxy prevents it" in proxied
    rights.write_text(f"{READ_ONLY}\n")
    assert "warning" not in command.run("share", "work:photos").err
    rights.write_text(f"{READ_WRITE}\n")
    command.path.joinpath(PUBLIC_URL).unlink()
    assert "store files" not in command.run("share", "work:photos").err, "nobody else reaches it"


def test_gateway_is_needed_before_anything_is_made(command: MemoryCommand) -> None:
    assert "`grid gateway --read-only --listen ENDPOINT`" in command.fail(1, "share", "work:photos")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    (command.path / "node.url").write_text(f"http://127.0.0.1:{port}/\n")
    assert "is `grid gateway` running?" in command.fail(5, "share", "work:photos")
    command.fail(5, "share", "--address", "https://proxy.example", "work:photos")
    ended = command.run("--gateway", "http://127.0.0.1:1/", "shares")
    assert ended.code == 2 and "your own gateway" in ended.err
    assert links(command) == []


def test_gateway_on_a_socket_in_the_file_system_is_shared_through_its_proxy(command: MemoryCommand) -> None:
    assert command.succeed("share", "--address", "https://proxy.example/", "work:photos").startswith(
        "https://proxy.example/s/"
    )
    assert len(links(command)) == 1


def test_path_that_is_not_there_is_not_shared(command: MemoryCommand, listening: str) -> None:
    assert "No such file" in command.fail(4, "share", "work:none")
    command.fail(4, "share", "nothing:x")
    command.fail(2, "share", "URI:CHK:no")
    assert links(command) == []


def test_alias_and_capability_are_shared_without_looking_at_the_grid(command: MemoryCommand, listening: str) -> None:
    command.succeed("share", "work:")
    command.succeed("share", command.root.to_string())
    command.succeed("share", "--name", "x/y", "work:")
    assert {link.name for link in links(command)} == {"work", "directory", "x_y"}


@pytest.mark.parametrize(("text", "seconds"), [("12h", 43200), ("2w", 14 * 86400), ("never", None), ("7d", 7 * 86400)])
def test_link_ends_after_the_given_time(command: MemoryCommand, listening: str, text: str, seconds: int | None) -> None:
    command.succeed("share", "--expires", text, "work:photos")
    (link,) = links(command)
    assert (None if link.expires is None else link.expires - link.created) == seconds


def test_link_ends_with_the_given_day(command: MemoryCommand, listening: str) -> None:
    day = time.strftime("%Y-%m-%d", time.gmtime(time.time() + 86400))
    command.succeed("share", "--expires", day, "work:photos")
    (link,) = links(command)
    assert link.expires is not None and link.expires % 86400 == 0 and 86400 < link.expires - time.time() <= 2 * 86400
    assert (
        f"ends {time.strftime('%Y-%m-%d', time.gmtime(link.expires))} 00:00Z"
        in command.run("share", "--expires", day, "work:").err
    )


@pytest.mark.parametrize("text", ["", "soon", "0d", "1", "2020-01-01", "2030-02-30", "9999-12-31", "-7d", "7 days"])
def test_other_times_are_refused(command: MemoryCommand, listening: str, text: str) -> None:
    assert "--expires" in command.fail(2, "share", f"--expires={text}", "work:photos")
    assert links(command) == []


def test_password_is_read_from_a_file_and_kept_as_a_hash(
    command: MemoryCommand, listening: str, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("correct horse\nmore\n")
    command.succeed("share", "--password-file", secret, "--downloads", "3", "work:a b.txt")
    (link,) = links(command)
    assert link.password is not None and link.password.matches("correct horse") and link.most_downloads == 3
    assert "horse" not in (command.path / "private" / "share-links.json").read_text()
    secret.write_text("short\n")
    assert "at least 8" in command.fail(2, "share", "--password-file", secret, "work:a b.txt")
    command.fail(4, "share", "--password-file", tmp_path / "none", "work:a b.txt")
    assert "no terminal" in command.fail(2, "share", "--password", "work:a b.txt")
    command.fail(2, "share", "--downloads", "0", "work:a b.txt")
    assert len(links(command)) == 1


def test_password_is_asked_for_on_a_terminal(
    command: MemoryCommand, listening: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(click, "prompt", lambda text, **options: "correct horse" * options["confirmation_prompt"])
    command.on_terminal = True
    command.succeed("share", "--password", "work:photos")
    (link,) = links(command)
    assert link.password is not None and link.password.matches("correct horse")


def test_link_is_taken_back_by_a_name_that_is_its_own_or_by_its_id(command: MemoryCommand, listening: str) -> None:
    for path in ("work:photos", "work:photos", "work:a b.txt"):
        command.succeed("share", path)
    assert command.succeed("unshare", "a b.txt") == "taken back: a b.txt"
    first, second = links(command)
    assert first.identifier in command.fail(1, "unshare", "photos")
    said = json.loads(command.succeed("unshare", "--json", first.identifier))
    assert said == {"event": "unshare", "id": first.identifier, "name": "photos"} and links(command) == [second]
    assert "grid shares" in command.fail(4, "unshare", "none")
    command.succeed("unshare", "photos")
    assert command.run("shares").err == "no share links; `grid share PATH` makes one\n"


def test_damaged_file_is_a_clear_error_of_every_command(command: MemoryCommand, listening: str) -> None:
    file = command.path / "private" / "share-links.json"
    file.write_text("{")
    file.chmod(0o600)
    for arguments in (["shares"], ["unshare", "x"], ["share", "work:photos"]):
        assert f"{file}: not a file of share links; restore it, or remove it" in command.fail(1, *arguments)
    assert file.read_text() == "{"


def test_names_and_ids_are_completed(command: MemoryCommand, listening: str) -> None:
    command.succeed("share", "work:photos")
    (link,) = links(command)
    root = click.Context(cli, info_name="grid")
    root.params = {"node_directory": str(command.path)}
    context, parameter = click.Context(share, parent=root), share.params[0]
    assert [item.value for item in _complete_links(context, parameter, "ph")] == ["photos"]
    assert [item.value for item in _complete_links(context, parameter, link.identifier[:3])] == [link.identifier]
    (command.path / "private" / "share-links.json").write_text("{")
    assert _complete_links(context, parameter, "") == []
