"""`grid web`: the page's address appears in no process list."""

from __future__ import annotations

import html
import json
import re
import socket
import stat
import time
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import parse_qs, unquote

import pytest

from grid.node.own_files import HANDED_OVER, ClientFiles
from tests.support.memory_command import MemoryCommand


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> MemoryCommand:
    return MemoryCommand(tmp_path / "client", monkeypatch, capsys)


class Pages(BaseHTTPRequestHandler):
    """The one page of a gateway that the command itself asks for."""

    def do_HEAD(self) -> None:
        self.send_response(200 if self.path == "/home?t=enter" else 404)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


class PagesOfTahoe(Pages):
    """None of ours."""

    def do_HEAD(self) -> None:
        self.send_error(404)


@contextmanager
def pages_of(command: MemoryCommand, handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """The URL of a gateway that runs in the client directory."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/"
        (command.path / "node.url").write_text(url + "\n")
        yield url
        server.shutdown()


@pytest.fixture
def listening(command: MemoryCommand) -> Iterator[str]:
    with pages_of(command, Pages) as url:
        yield url


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a browser was asked to open."""
    found: list[str] = []

    def open_url(url: str) -> bool:
        found.append(url)
        return True

    monkeypatch.setattr(webbrowser, "open", open_url)
    return found


def targets(page: Path) -> list[str]:
    """The addresses to which the file redirects."""
    return [html.unescape(each) for each in re.findall(r'url=([^"]*)"', page.read_text())]


def test_first_page_is_opened_by_its_address_where_it_is_not_ones_own(
    command: MemoryCommand, listening: str, opened: list[str]
) -> None:
    assert command.succeed("web", "--guest") == ""
    assert command.succeed("--gateway", listening, "web") == ""
    assert opened == [listening] * 2
    assert not (command.path / "private" / HANDED_OVER).exists()


def test_first_page_of_ones_own_gateway_gets_a_token_in_a_file_that_only_its_owner_reads(
    command: MemoryCommand, listening: str, opened: list[str]
) -> None:
    assert command.succeed("web") == ""
    (url,) = opened
    page = Path(unquote(url.removeprefix("file://")))
    (target,) = targets(page)
    address, token = target.split("#own=")
    kept = command.path / "private" / HANDED_OVER
    assert address == listening and len(token) > 40 and token not in kept.read_text()
    assert [stat.S_IMODE(each.stat().st_mode) for each in (page, kept)] == [0o600, 0o600]
    assert ClientFiles(command.path / "private").handed_over(time.time()) == sha256(token.encode()).digest()
    command.succeed("web")
    assert ClientFiles(command.path / "private").handed_over(time.time()) != sha256(token.encode()).digest()


def test_path_is_opened_by_a_file_that_only_its_owner_reads(
    command: MemoryCommand, listening: str, opened: list[str]
) -> None:
    path = f"/uri/{command.root.to_string().replace(':', '%3A')}/a%20b/c"
    command.succeed("web", "--visitor", "work:a b/c")
    page = Path(unquote(opened[0].removeprefix("file://")))
    assert "URI" not in opened[0] and stat.S_IMODE(page.stat().st_mode) == 0o600
    assert targets(page) == [f"{listening}{path[1:]}"] and not (command.path / "private" / HANDED_OVER).exists()

    command.succeed("web", "work:a b/c")
    plain, own = targets(page)
    assert plain == f"{listening}{path[1:]}", "browsers without scripts come first, and go there without the token"
    address, fields = own.split("#")
    (token,), (then,) = parse_qs(fields, strict_parsing=True).values()
    assert address == f"{listening}home?t=enter" and then == path
    assert ClientFiles(command.path / "private").handed_over(time.time()) == sha256(token.encode()).digest()


def test_path_at_a_gateway_of_tahoe_is_opened_without_a_token(command: MemoryCommand, opened: list[str]) -> None:
    with pages_of(command, PagesOfTahoe) as url:
        command.succeed("web", "work:a")
    (target,) = targets(Path(unquote(opened[0].removeprefix("file://"))))
    assert target.startswith(f"{url}uri/URI%3ADIR2%3A") and not (command.path / "private" / HANDED_OVER).exists()


def test_address_is_printed_where_it_is_asked_for(command: MemoryCommand, listening: str, opened: list[str]) -> None:
    assert command.succeed("web", "--print") == listening
    found = json.loads(command.succeed("web", "--json", "work:"))
    assert found["event"] == "web" and found["url"][-1] == "/"
    assert found["url"].startswith(f"{listening}uri/URI%3ADIR2%3A")
    assert opened == []


def test_gateway_that_does_not_run_is_reported(command: MemoryCommand, opened: list[str]) -> None:
    assert "`grid gateway` starts one" in command.fail(1, "web")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        (command.path / "node.url").write_text(f"http://127.0.0.1:{free.getsockname()[1]}/")
        assert command.fail(5, "web").endswith("is `grid gateway` running?")
    assert opened == []


def test_machine_without_a_browser_suggests_printing_the_address(
    command: MemoryCommand, listening: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda url: False)
    assert "`grid web --print`" in command.fail(1, "web")
