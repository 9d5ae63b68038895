"""A gateway's URL, and the certificates to trust for it."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from twisted.internet import ssl
from twisted.internet.endpoints import SSL4ServerEndpoint

from grid.cli.webapi.address import parse_address
from grid.cli.webapi.http import GatewayClient
from grid.errors import ConfigError, PeerGoneError
from tests.cli.webapi.scripted import ScriptedGateway, ScriptFactory, reactor, reply, scripted


@pytest.mark.parametrize(
    ("text", "base"),
    [
        ("http://127.0.0.1:3456/\n", "http://127.0.0.1:3456/"),
        ("http://127.0.0.1:3456", "http://127.0.0.1:3456/"),
        ("https://grid.example", "https://grid.example/"),
        ("https://grid.example:8443/below/", "https://grid.example:8443/below/"),
        ("http://[::1]:3456", "http://[::1]:3456/"),
    ],
)
def test_address_when_a_url_is_one_has_a_base_that_ends_with_a_slash(text: str, base: str) -> None:
    assert parse_address(text, "here").base == base


@pytest.mark.parametrize(
    "text",
    [
        "", "127.0.0.1:3456", "ftp://127.0.0.1/", "http://", "http://h:0/", "http://h:99999/", "http://h:x/",
        "http://u:secret@h/", "http://secret@h/", "http://h/?a=secret", "http://h/#secret", "http://h/?", "http://h /",
        "http://h/uri/URI:CHK:secret", "http://h\\@secret/", "http://[::1/", "http://h\u00e9/", "http://" + "h" * 3000,
    ],
)  # fmt: skip
def test_address_when_not_a_url_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^here: ") as caught:
        parse_address(text, "here")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.3.2.1", True),
        ("localhost", True),
        ("[::1]", True),
        ("10.0.0.1", False),
        ("a.b", False),
    ],
)
def test_address_knows_what_stays_on_this_machine(host: str, expected: bool) -> None:
    assert parse_address(f"http://{host}/", "here").is_loopback is expected


def test_address_when_certificates_come_with_plain_http_is_refused() -> None:
    with pytest.raises(ConfigError, match="only with https"):
        parse_address("http://h/", "here", "file.pem")


def _certificate(folder: Path, address: str) -> Path:
    """A key with its own certificate for an address, in PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a gateway")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, SHA256())
    )
    path = folder / f"{address}.pem"
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.write_bytes(pem + certificate.public_bytes(Encoding.PEM))
    return path


@pytest.mark.parametrize(
    ("address", "is_named", "is_believed"),
    [("127.0.0.1", True, True), ("127.0.0.1", False, False), ("10.0.0.1", True, False)],
)
async def test_gateway_is_asked_only_if_its_certificate_is_trusted_and_names_it(
    tmp_path: Path, address: str, is_named: bool, is_believed: bool
) -> None:
    pem = _certificate(tmp_path, address)
    gateway = ScriptedGateway(lambda asked: reply("hello"))
    context = ssl.PrivateCertificate.loadPEM(pem.read_bytes()).options()
    endpoint = SSL4ServerEndpoint(reactor, 0, context, interface="127.0.0.1")
    listening: Any = await endpoint.listen(ScriptFactory(gateway))
    async with scripted([]) as (_, store):
        where = parse_address(
            f"https://127.0.0.1:{listening.getHost().port}/", "a test", str(pem) if is_named else None
        )
        client = GatewayClient(where, store.runtime, reactor)
        try:
            if is_believed:
                assert await client.text("GET", ["uri", "secret"]) == "hello"
            else:
                with pytest.raises(PeerGoneError, match="did not prove") as caught:
                    await client.text("GET", ["uri", "secret"])
                assert "secret" not in str(caught.value)
        finally:
            await client.close()
            for connection in list(gateway.open):
                connection.transport.abortConnection()
            await listening.stopListening()
    assert len(gateway.asked) == is_believed
