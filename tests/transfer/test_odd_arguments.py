"""Arguments and answers that are unusual, and those that are none."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from grid.transfer.ends import EndError
from grid.transfer.http_end import HttpEnd
from grid.transfer.object_end import open_object_end
from grid.transfer.opening import require_apart
from grid.transfer.outcome import Plan
from grid.transfer.sftp_end import open_sftp_end
from tests.transfer.conftest import require
from tests.transfer.end_contract import listed
from tests.transfer.scripted_web import WebRequest, scripted_web
from tests.transfer.test_engine import contents, send


@pytest.mark.parametrize(
    ("path", "asked", "name"),
    [
        ("/f\u00fcr.pdf?q=\u00e9", "/f%C3%BCr.pdf?q=%C3%A9", "f\u00fcr.pdf"),
        ("/f%C3%BCr%20x.pdf", "/f%C3%BCr%20x.pdf", "f\u00fcr x.pdf"),
        ("/a b", "/a%20b", "a b"),
        ("/l\udce9", "/l%E9", "l\udce9"),
    ],
)
def test_url_of_any_letters_is_asked_for(tmp_path: Path, path: str, asked: str, name: str) -> None:
    paths: list[str] = []

    def serve(request: WebRequest) -> None:
        paths.append(request.path)
        request.answer(200, b"x", ETag='"one"')

    with scripted_web(serve) as url:
        outcome = send(HttpEnd(url + path), tmp_path / "target", tmp_path)
    assert set(paths) == {asked}
    assert not outcome.failures
    assert contents(tmp_path / "target") == {name: b"x"}


@pytest.mark.parametrize("url", ["https://[::1/f", "https://" + 70 * "\u00fc" + "/f", "https:///f"])
def test_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(EndError):
        HttpEnd(url)


@pytest.mark.parametrize("url", ["https://user:secret@host/f", "http://user@host/f"])
def test_url_with_a_name_or_a_password_is_refused_before_anybody_is_asked(url: str) -> None:
    with pytest.raises(EndError, match=r"^host: names and passwords in URLs are not supported$"):
        HttpEnd(url)


@pytest.mark.parametrize("url", ["sftp://[::1/f", "sftp://host:99999/f", "sftp://host:x/f"])
def test_sftp_url_that_is_none_is_refused(url: str) -> None:
    require("asyncssh")
    with pytest.raises(EndError):
        open_sftp_end(url)


def test_headers_that_say_nothing_possible_are_no_crash() -> None:
    def serve(request: WebRequest) -> None:
        request.send_response(200)
        length = "9" * 5000 if request.path == "/long" else "1"
        request.send_header("Content-Length", length)
        request.send_header("Last-Modified", "Sun, 22 Nov 2026 12:00:00 +99999999999999")
        request.end_headers()
        request.wfile.write(b"x")

    with scripted_web(serve) as url:
        (entry,) = asyncio.run(listed(HttpEnd(f"{url}/file"))).values()
        assert (entry.size, entry.mtime_ns) == (1, None)
        with pytest.raises(EndError, match="how long"):
            asyncio.run(listed(HttpEnd(f"{url}/long")))


def test_scheme_of_an_object_store_may_be_in_capitals(monkeypatch: pytest.MonkeyPatch) -> None:
    require("obstore")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")
    source, target = open_object_end("S3://bucket/a"), open_object_end("s3://bucket/a/b", is_target=True)
    with pytest.raises(EndError, match="lies in"):
        require_apart([source], target, Plan())


@pytest.mark.parametrize("size", [5, 300_000])
def test_single_file_that_is_a_symbolic_link_is_copied_under_the_name_of_the_link(tmp_path: Path, size: int) -> None:
    (tmp_path / "file").write_bytes(b"x" * size)
    (tmp_path / "link").symlink_to("file")
    outcome = send(tmp_path / "link", tmp_path / "target", tmp_path)
    assert not outcome.failures
    assert contents(tmp_path / "target") == {"link": b"x" * size}
