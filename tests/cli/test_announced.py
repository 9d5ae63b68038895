"""Certificates and plaintext endpoints that storage nodes announce, and how clients use them, with real processes."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from grid.codec import base32
from grid.codec.key_text import pack_verifying_key
from grid.crypto.ed25519 import SigningKey
from grid.node.addresses import LOOPBACK, free_port
from grid.node.local_grid import LocalGrid
from tests.cli.command import grid

MANAGER = SigningKey(bytes(32))
DATA = bytes(range(256)) * 40


def certificate(node: Path) -> dict[str, str]:
    """One for a node that has started once, good until long after this test."""
    content = {
        "expires": "2100-01-01T00:00:00+00:00",
        "public_key": (node / "node.pubkey").read_text().strip(),
        "version": 1,
    }
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return {"certificate": text, "signature": base32.encode(MANAGER.sign(text.encode()))}


def add_to_config(node: Path, text: str) -> None:
    with (node / "grid.cfg").open("a") as file:
        file.write(text)


@pytest.fixture(scope="module")
def managed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalGrid]:
    """Three nodes; one has a certificate of the client's grid manager, another serves readers in the clear."""
    local = LocalGrid(tmp_path_factory.mktemp("managed") / "grid")
    try:
        assert grid("up", "--nodes", "3", "--dir", local.path, "--detach").code == 0
        assert grid("down", "--dir", local.path).code == 0
        certified, plain, _ = local.storages
        (certified / "mine.cert").write_text(json.dumps(certificate(certified)))
        add_to_config(certified, "[storage]\ngrid_management = true\n[grid_manager_certificates]\nmine = mine.cert\n")
        add_to_config(plain, f"[storage]\nplaintext_reads = tcp:{free_port(LOOPBACK)}:interface=127.0.0.1\n")
        outcome = grid("up", "--dir", local.path, "--detach")
        assert outcome.code == 0, outcome.err
        yield local
    finally:
        grid("down", "--dir", local.path)


def announced(local: LocalGrid) -> dict[str, Any]:
    """The announcements the client got, by nickname."""
    assert grid("-d", local.client, "status").code == 0
    content = json.loads((local.client / "private" / "introducer_default_cache.yaml").read_text())
    return {entry["ann"]["nickname"]: entry["ann"] for entry in content}


def test_nodes_announce_certificates_and_plain_reads_if_configured(managed: LocalGrid) -> None:
    fields = announced(managed)
    certified, plain, other = (fields[node.name] for node in managed.storages)
    assert certified["grid-manager-certificates"] == [certificate(managed.storages[0])]
    assert "grid-manager-certificates" not in plain
    assert "grid-plaintext-reads" not in certified
    assert len(plain["grid-plaintext-reads"]) == 1
    assert other.keys() == plain.keys() - {"grid-plaintext-reads"}
    assert all(len(one["anonymous-storage-NURLs"]) == 1 for one in fields.values())


def test_files_are_put_only_where_the_managers_certificates_permit(managed: LocalGrid, tmp_path: Path) -> None:
    client = tmp_path / "client"
    client.mkdir()
    (client / "grid.cfg").write_text(
        (managed.client / "grid.cfg").read_text()
        + f"[grid_managers]\nours = {pack_verifying_key(MANAGER.verifying_key)}\n"
    )
    (client / "private").mkdir()
    introducers = managed.client / "private" / "introducers.yaml"
    (client / "private" / "introducers.yaml").write_text(introducers.read_text())
    options = ("--needed", "1", "--happy", "1", "--total", "3")
    before = [shares(node) for node in managed.storages]
    put = grid("-d", client, "put", *options, "-", stdin=DATA)
    assert put.code == 0, put.err
    added = [len(shares(node) - old) for node, old in zip(managed.storages, before, strict=True)]
    assert added == [3, 0, 0]
    assert grid("-d", managed.client, "get", put.line).out == DATA
    refused = grid("-d", client, "put", "--needed", "1", "--happy", "2", "--total", "3", "-", stdin=DATA + b"x")
    assert refused.code != 0


def shares(node: Path) -> set[Path]:
    """The finished share files of a node."""
    return set((node / "storage" / "shares").glob("??/*/*"))


def test_plain_port_serves_http_to_those_who_have_its_token(managed: LocalGrid, tmp_path: Path) -> None:
    plain = announced(managed)[managed.storages[1].name]
    _, host, port = plain["grid-plaintext-reads"][0].split(":")
    with closing(http.client.HTTPConnection(host, int(port), timeout=120)) as connection:
        connection.request("GET", f"/storage/v1/immutable/{'a' * 26}/0")
        with connection.getresponse() as answer:
            assert answer.status == 401
    put = grid("-d", managed.client, "put", "--needed", "3", "--happy", "3", "--total", "3", "-", stdin=DATA)
    assert put.code == 0, put.err
    with (managed.client / "grid.cfg").open("a") as file:
        file.write("[client]\nplaintext_reads = true\n")
    got = grid("-d", managed.client, "get", put.line)
    assert (got.code, got.out) == (0, DATA)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("plaintext_reads = nonsense:1\n", "plaintext_reads"),
        ("plaintext_reads = 99999999\n", "plaintext_reads"),
        ("plaintext_reads = 4000\nforce_foolscap = true\n", "plaintext_reads"),
        ("plaintext_reads = 4000\nanonymous = false\n", "plaintext_reads"),
        ("grid_management = true\n[grid_manager_certificates]\nmine = missing.cert\n", "mine"),
    ],
)
def test_node_that_cannot_announce_what_is_configured_does_not_start(tmp_path: Path, text: str, key: str) -> None:
    port = free_port(LOOPBACK)
    (tmp_path / "grid.cfg").write_text(
        f"[node]\ntub.port = tcp:{port}:interface=127.0.0.1\ntub.location = tcp:127.0.0.1:{port}\n[storage]\n{text}"
    )
    outcome = grid("run", tmp_path)
    assert outcome.code == 1
    assert f"key {key}: " in outcome.err
