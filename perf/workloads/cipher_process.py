"""Measures ciphers, hashes, coding and TLS on one core, and prints JSON.

python -m perf.workloads.cipher_process [SECONDS]

A separate process, whose environment decides which instructions OpenSSL uses.
"""

from __future__ import annotations

import hashlib
import json
import os
import ssl
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305
from cryptography.x509.oid import NameOID

from grid.codec.erasure import erasure

PIECE = 1 << 20
MOMENT_S = 0.3
RECORD = 16384
CODINGS = ((3, 10), (60, 120))
SUITES = (
    "ECDHE-ECDSA-AES128-GCM-SHA256",
    "ECDHE-ECDSA-AES256-GCM-SHA384",
    "ECDHE-ECDSA-CHACHA20-POLY1305",
    "ECDHE-ECDSA-AES128-SHA256",
)


def measure(moment_s: float) -> dict[str, float]:
    """MB/s of plaintext on one core, by name."""
    return {name: round(_rate(once, moment_s), 1) for name, once in _kernels()}


def _kernels() -> Iterator[tuple[str, Callable[[], object]]]:
    data, nonce = os.urandom(PIECE), os.urandom(12)
    for bits in (128, 256):
        sealed = AESGCM(os.urandom(bits // 8))
        yield f"AES-{bits}-GCM", lambda sealed=sealed: sealed.encrypt(nonce, data, None)  # type: ignore[misc]
        stream = Cipher(algorithms.AES(os.urandom(bits // 8)), modes.CTR(os.urandom(16))).encryptor()
        yield f"AES-{bits}-CTR", lambda stream=stream: stream.update(data)  # type: ignore[misc]
    chacha = ChaCha20Poly1305(os.urandom(32))
    yield "ChaCha20-Poly1305", lambda: chacha.encrypt(nonce, data, None)
    yield "SHA-256", lambda: hashlib.sha256(data).digest()
    yield from _pycryptodome(data)
    for needed, total in CODINGS:
        codec, size = erasure(needed, total), PIECE // needed
        blocks = [bytearray(os.urandom(size)) for _ in range(needed)]
        parity = [memoryview(bytearray(size)) for _ in range(total - needed)]
        yield f"coding {needed}-of-{total}", lambda c=codec, b=blocks, p=parity: c.encode_into(b, p)  # type: ignore[misc]
    for suite in SUITES:
        yield f"TLS {suite}", _tls(suite, data)


def _pycryptodome(data: bytes) -> Iterator[tuple[str, Callable[[], object]]]:
    try:
        from Crypto.Cipher import AES
    except ImportError:
        return
    counter = AES.new(os.urandom(16), AES.MODE_CTR, nonce=os.urandom(8))
    yield "AES-128-CTR, PyCryptodome", lambda: counter.encrypt(data)
    yield (
        "AES-128-GCM, PyCryptodome",
        lambda: AES.new(data[:16], AES.MODE_GCM, nonce=data[:12]).encrypt_and_digest(data),
    )


def _tls(suite: str, data: bytes) -> Callable[[], object]:
    """Both ends of a connection in memory: data is encrypted and decrypted, but counts once."""
    with tempfile.TemporaryDirectory(prefix="grid-ciphers-") as folder:
        server, client = _contexts(Path(folder) / "key.pem", suite)
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    near = client.wrap_bio(down, up)
    far = server.wrap_bio(up, down, server_side=True)
    ends, done = [near, far], set[int]()
    while len(done) < 2:
        for number, end in enumerate(ends):
            try:
                end.do_handshake()
                done.add(number)
            except ssl.SSLWantReadError:
                continue

    def once() -> None:
        for offset in range(0, PIECE, RECORD):
            near.write(data[offset : offset + RECORD])
            far.read(RECORD)

    return once


def _contexts(path: Path, suite: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ciphers")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    encoding = serialization.Encoding.PEM
    secret = key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path.touch(mode=0o600)
    path.write_bytes(secret + certificate.public_bytes(encoding))
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    server.load_cert_chain(path)
    client.check_hostname = False
    client.verify_mode = ssl.CERT_NONE
    for context in (server, client):
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers(suite)
    return server, client


def _rate(once: Callable[[], object], moment_s: float) -> float:
    once()
    count, started = 0, time.perf_counter()
    while (seconds := time.perf_counter() - started) < moment_s:
        once()
        count += 1
    return PIECE * count / 1e6 / seconds


if __name__ == "__main__":
    print(json.dumps(measure(float(sys.argv[1]) if len(sys.argv) > 1 else MOMENT_S)))
