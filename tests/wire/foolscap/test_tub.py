"""Certificates, listening, and the names that survive a restart. [spec wire 1]"""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from foolscap.api import Referenceable
from foolscap.crypto import createCertificate
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import TCP4ServerEndpoint

from grid.errors import ConfigError
from grid.ports import Timer
from grid.runtime import ReactorClock
from grid.wire.foolscap.tub import (
    CLOSE_S,
    listen,
    node_certificate,
    register,
    set_location,
    start_tub,
    stop_tub,
    throwaway_certificate,
    write_private,
)
from tests.wire.foolscap.loopback import offering


def test_node_certificate_when_missing_then_is_made_as_1_20_has_it_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "node.pem"
    pem = node_certificate(path)
    assert path.read_bytes() == pem
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert node_certificate(path) == pem
    assert [line.split()[-1] for line in pem.splitlines() if b"BEGIN" in line] == [b"CERTIFICATE-----", b"KEY-----"]
    certificate = x509.load_pem_x509_certificate(pem)
    key = certificate.public_key()
    assert isinstance(key, RSAPublicKey)
    assert key.key_size == 2048
    assert certificate.subject.rfc4514_string() == "CN=newpb_thingy"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_node_certificate_when_made_by_foolscap_then_is_read(tmp_path: Path) -> None:
    path = tmp_path / "node.pem"
    path.write_bytes(createCertificate().dumpPEM())
    assert node_certificate(path) == path.read_bytes()


@pytest.mark.parametrize("content", [b"", b"nonsense", b"-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----"])
def test_node_certificate_when_damaged_then_says_so_and_leaves_it(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "node.pem"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"node\.pem"):
        node_certificate(path)
    assert path.read_bytes() == content


async def test_tub_when_started_with_a_kept_certificate_then_has_the_same_id(tmp_path: Path) -> None:
    pem = node_certificate(tmp_path / "node.pem")
    first, second = start_tub(pem), start_tub(pem)
    assert first.tubID == second.tubID
    await stop_tub(first)
    await stop_tub(second)


async def test_tubs_when_throwaway_then_differ() -> None:
    first, second = start_tub(), start_tub()
    assert first.tubID != second.tubID
    assert throwaway_certificate() != throwaway_certificate()
    await stop_tub(first)
    await stop_tub(second)


async def test_register_when_restarted_then_keeps_the_name_and_takes_new_hints(tmp_path: Path) -> None:
    file = tmp_path / "storage.furl"
    pem = throwaway_certificate()
    furls = []
    for hint in ("tcp:127.0.0.1:1", "tcp:127.0.0.1:2"):
        tub = start_tub(pem)
        set_location(tub, (hint,))
        furls.append(register(tub, Referenceable(), file))
        await stop_tub(tub)
    assert furls[0].swissnum == furls[1].swissnum
    assert len(furls[0].swissnum) == 32
    assert furls[1].hints == ("tcp:127.0.0.1:2",)
    assert file.read_text() == furls[1].to_string() + "\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize("content", [f"pb://{'a' * 32}@tcp:x:1/name\n", "nonsense\n"])
async def test_register_when_the_file_is_not_ours_then_refuses(tmp_path: Path, content: str) -> None:
    file = tmp_path / "storage.furl"
    file.write_text(content)
    tub = start_tub()
    set_location(tub, ("tcp:127.0.0.1:1",))
    with pytest.raises(ConfigError, match=r"storage\.furl"):
        register(tub, Referenceable(), file)
    assert file.read_text() == content
    await stop_tub(tub)


async def test_listen_when_the_port_is_taken_then_says_so() -> None:
    from twisted.internet import reactor

    first, second = start_tub(), start_tub()
    port = await listen(first, TCP4ServerEndpoint(reactor, 0, interface="127.0.0.1"))
    with pytest.raises(ConfigError, match="cannot listen"):
        await listen(second, TCP4ServerEndpoint(reactor, port, interface="127.0.0.1"))
    await stop_tub(second)
    await stop_tub(first)


def test_write_private_when_the_directory_is_missing_then_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="missing"):
        write_private(tmp_path / "missing" / "file", b"x")
    assert list(tmp_path.iterdir()) == []


async def test_stop_when_a_peer_does_not_confirm_the_end_then_cuts_its_connection() -> None:
    from twisted.internet import reactor

    calls: list[tuple[float, Callable[[], None]]] = []
    clock = ReactorClock(reactor)

    class Noting(ReactorClock):
        def call_later(self, delay_s: float, function: Callable[[], None]) -> Timer:
            calls.append((delay_s, function))
            return clock.call_later(0.0, lambda: None)

    client = start_tub()
    async with offering(Referenceable()) as offered:
        await client.getReference(offered.furl.to_string())
        (ours,), (peer,) = client.brokers.values(), offered.tub.brokers.values()
        peer.transport.stopReading()  # As if its process were suspended: it never sees the end.
        stopping = Deferred.fromCoroutine(stop_tub(client, Noting(reactor)))
        await clock.sleep(0.0)
        assert not stopping.called and ours.transport.connected
        ((delay_s, cut),) = calls
        assert delay_s == CLOSE_S
        cut()
        await stopping
        assert not ours.transport.connected
        peer.transport.startReading()
