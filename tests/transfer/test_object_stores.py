"""Object stores where no server answers, settings that obstore refuses, notes that a store cannot hold, and quick changes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import pytest

from grid.errors import ConfigError, GridError
from grid.transfer.ends import Entry, NoBucketError, PassingError
from grid.transfer.object_end import open_object_end
from grid.transfer.object_errors import of_generic
from perf.peers.servers import free_port
from tests.transfer.conftest import require
from tests.transfer.end_contract import BytesBody
from tests.transfer.scripted_s3 import BUCKET, TIME, ScriptedS3, scripted_s3
from tests.transfer.test_engine import send

SECRET = "c2VjcmV0LXNlY3JldC1zZWNyZXQ="


@pytest.fixture(autouse=True)
def own_account(monkeypatch: pytest.MonkeyPatch) -> None:
    """No account of the user's."""
    require("obstore")
    for name in list(os.environ):
        if name.startswith(("AWS_", "AZURE_", "GOOGLE_", "CLOUDSDK_", "STORAGE_EMULATOR_")):
            monkeypatch.delenv(name)


def set_all(monkeypatch: pytest.MonkeyPatch, environment: Mapping[str, str]) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)


def test_listing_when_no_server_answers_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": SECRET}
    set_all(monkeypatch, {**keys, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{free_port()}"})
    monkeypatch.setattr("grid.transfer.object_accounts.RETRIES", 0)
    with pytest.raises(PassingError, match=r"^s3://box/in: the server cannot be reached, or the connection was lost$"):
        send(open_object_end("s3://box/in"), tmp_path / "target", tmp_path)


@pytest.mark.parametrize("scheme", ["az", "gs"])
def test_large_upload_when_no_server_answers_may_be_tried_again(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    address = f"http://127.0.0.1:{free_port()}"
    account = {"AZURE_STORAGE_ACCOUNT": "lab", "AZURE_STORAGE_KEY": SECRET, "AZURE_STORAGE_ENDPOINT": f"{address}/lab"}
    set_all(monkeypatch, {**account, "STORAGE_EMULATOR_HOST": address})
    monkeypatch.setattr("grid.transfer.object_accounts.RETRIES", 0)
    end = open_object_end(f"{scheme}://bucket/in", is_target=True)
    with pytest.raises(PassingError) as caught:
        asyncio.run(end.store(Entry(name="large", size=9_000_000), BytesBody(bytes(9_000_000))))
    assert str(caught.value).startswith(f"{scheme}://bucket/in/large: ")


def test_upload_when_its_source_fails_reports_that(monkeypatch: pytest.MonkeyPatch) -> None:
    set_all(monkeypatch, {"STORAGE_EMULATOR_HOST": f"127.0.0.1:{free_port()}"})
    monkeypatch.setattr("grid.transfer.object_accounts.RETRIES", 0)
    end = open_object_end("gs://bucket/in", is_target=True)
    with pytest.raises(GridError, match="the source is shorter than it said"):
        asyncio.run(end.store(Entry(name="large", size=9_000_000), BytesBody(bytes(5), 9_000_000)))


@pytest.mark.parametrize(
    ("url", "environment", "words"),
    [
        ("az://box/in", {}, "set AZURE_STORAGE_ACCOUNT or AZURE_STORAGE_CONNECTION_STRING"),
        (
            "az://box/in",
            {"AZURE_STORAGE_ACCOUNT": "lab", "AZURE_STORAGE_KEY": "no-key!"},
            "its account cannot be used: Inv",
        ),
        (
            "az://box/in",
            {"AZURE_STORAGE_ACCOUNT": "lab", "AZURE_STORAGE_SAS_TOKEN": "no-token"},
            "cannot be used: Missing",
        ),
        ("gs://box/in", {"GOOGLE_APPLICATION_CREDENTIALS": "/nowhere/key.json"}, "/nowhere/key.json: No such file"),
        ("gs://box/in", {"GOOGLE_SERVICE_ACCOUNT_KEY": "no-key!"}, "Unable to decode service account file"),
    ],
    ids=["none", "key", "token", "file", "json"],
)
def test_settings_that_make_no_account_are_an_error_of_configuration(
    url: str, environment: dict[str, str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_all(monkeypatch, environment)
    with pytest.raises(ConfigError) as caught:
        open_object_end(url)
    said = str(caught.value)
    assert said.startswith(f"{url}: ") and words in said and "Debug source" not in said
    assert not any(secret in said for secret in ("no-key!", "no-token"))


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("AuthenticationFailed", "the server does not accept these credentials (AuthenticationFailed)"),
        ("AuthorizationPermissionMismatch", "these credentials do not permit it"),
        ("ContainerNotFound", "there is no such container"),
        ("InvalidResourceName", "the server refused: InvalidResourceName: What it is."),
    ],
)
def test_answers_in_xml_are_told_in_a_few_words(code: str, words: str) -> None:
    status = {"ContainerNotFound": 404, "InvalidResourceName": 400}.get(code, 403)
    body = f"<?xml version='1.0'?>\n<Error>\n  <Code>{code}</Code>\n  <Message>What it is.\nRequestId:7</Message>\n</Error>"
    text = f"Error performing GET http://x/y in 2ms - Server returned non-2xx status code: {status} Nope: {body}"
    error = of_generic("az://box/in", text)
    assert str(error) == f"az://box/in: {words}"
    assert isinstance(error, NoBucketError) == (code == "ContainerNotFound")


NOTES = {
    "lens": "50mm",
    "camera-model": "X",
    "a b": "x",
    "broken": "two\nlines",
    "padded": " x ",
    "Content-Type": "\u00fcml",
}


def test_object_arrives_without_notes_that_http_cannot_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    state = ScriptedS3()
    with scripted_s3(state) as environment:
        set_all(monkeypatch, {**environment, "AWS_SKIP_SIGNATURE": "true"})  # Then obstore uploads.
        for size in (3, 9_000_000):
            entry = Entry(name="photo", size=size, attributes=NOTES)
            asyncio.run(open_object_end(f"s3://{BUCKET}/in", is_target=True).store(entry, BytesBody(bytes(size))))
            assert state.objects.pop("in/photo") == bytes(size)


def test_change_right_after_an_upload_is_sent_though_the_object_is_as_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uploaded = int(datetime.fromisoformat(TIME).timestamp() * 1e9)
    file, state = tmp_path / "source" / "file", ScriptedS3()
    file.parent.mkdir()
    with scripted_s3(state) as environment:
        set_all(monkeypatch, environment)

        def upload(content: bytes, moment_ns: int) -> tuple[int, int]:
            file.write_bytes(content)
            os.utime(file, ns=(moment_ns, moment_ns))
            outcome = send(file.parent, open_object_end(f"s3://{BUCKET}/out", is_target=True), tmp_path)
            assert not outcome.failures
            return outcome.copied, outcome.unchanged

        assert upload(b"first", uploaded - 10**8) == (1, 0)
        assert upload(b"first", uploaded - 10**8) == (0, 1)
        assert upload(b"other", uploaded + 10**8) == (1, 0)
        assert upload(b"other", uploaded + 10**8) == (0, 1)
    assert state.objects["out/file"] == b"other"
