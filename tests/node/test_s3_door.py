"""The S3 door of a node: TLS as S3 clients speak it."""

from __future__ import annotations

import socket
import ssl
from pathlib import Path

import pytest
from twisted.internet.endpoints import TCP4ServerEndpoint
from twisted.internet.threads import deferToThread
from twisted.protocols.tls import TLSMemoryBIOFactory

from grid.errors import ConfigError
from grid.node.config import parse_config
from grid.node.s3_door import certificate_options, packs_objects
from tests.s3.rig import running_door
from tests.support.certificates import make_certificate


@pytest.mark.parametrize("offered", [["h2", "http/1.1"], ["http/1.1"], []])
async def test_a_client_that_negotiates_its_protocol_over_tls_is_answered(tmp_path: Path, offered: list[str]) -> None:
    from twisted.internet import reactor

    certificate = make_certificate(tmp_path, "s3.grid.test")
    options = certificate_options(certificate, tmp_path / "key.pem")

    def answer(port: int) -> tuple[str | None, bytes]:
        context = ssl.create_default_context(cafile=str(certificate))
        if offered:
            context.set_alpn_protocols(offered)
        with (
            socket.create_connection(("127.0.0.1", port)) as plain,
            context.wrap_socket(plain, server_hostname="bucket.s3.grid.test") as sealed,
        ):
            sealed.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return sealed.selected_alpn_protocol(), sealed.recv(12)

    async with running_door(tmp_path) as rig:
        listening = await TCP4ServerEndpoint(reactor, 0, interface="127.0.0.1").listen(
            TLSMemoryBIOFactory(options, False, rig.factory)
        )
        try:
            spoken = await deferToThread(answer, listening.getHost().port)
            assert spoken == ("http/1.1" if offered else None, b"HTTP/1.1 403")
        finally:
            await listening.stopListening()


def test_a_certificate_without_its_key_is_refused(tmp_path: Path) -> None:
    certificate = make_certificate(tmp_path, "s3.grid.test")
    with pytest.raises(ConfigError, match="not a certificate and its key"):
        certificate_options(certificate, certificate)


@pytest.mark.parametrize(
    ("text", "packs"),
    [
        ("[s3]\n", False),
        ("[client]\npack = yes\n[s3]\n", True),
        ("[client]\npack = yes\n[s3]\npack = no\n", False),
        ("[s3]\npack = yes\n", True),
    ],
)
def test_a_door_packs_objects_if_its_section_says_so_or_else_the_clients(text: str, packs: bool) -> None:
    assert packs_objects(parse_config(text, "F")) is packs
