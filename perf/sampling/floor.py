"""Measures the primitives under every transfer on this machine now: the floor that no time can fall below.

python -m perf.sampling.floor NEEDED-of-TOTAL...

Each is measured for a moment before the grids start, in a separate process, which keeps the harness small; the output
is JSON. A report shows systems' results beside it.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
import ssl
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from grid.codec.erasure import erasure
from grid.crypto.aes import CtrCipher

MB = 1e6
PIECE = 128 << 10
SEGMENT = 1 << 20
MOMENT_S = 0.2
TRANSFER = 64 << 20


def measure_floor(
    codings: Sequence[tuple[int, int]], moment_s: float = MOMENT_S, transfer: int = TRANSFER
) -> dict[str, float]:
    """MB/s of each primitive on one thread; `tcp` and `tls` between two threads over loopback.

    codings: needed and total of each. moment_s: seconds per computation. transfer: bytes sent by the others.
    """
    data = os.urandom(PIECE)
    target = bytearray(PIECE)
    cipher = CtrCipher(os.urandom(16))
    floor = {
        "sha256": _rate(lambda: hashlib.sha256(data).digest(), PIECE, moment_s),
        "aes128-ctr": _rate(lambda: cipher.crypt_into(data, target), PIECE, moment_s),
    }
    for needed, total in codings:
        floor |= _coding(needed, total, moment_s)
    floor["tcp"] = _transfer(transfer, None)
    with tempfile.TemporaryDirectory(prefix="grid-floor-") as directory:
        floor["tls"] = _transfer(transfer, _contexts(Path(directory)))
    return {name: round(rate, 1) for name, rate in floor.items()}


def _coding(needed: int, total: int, moment_s: float) -> dict[str, float]:
    """MB/s of plaintext, for encoding, and for decoding with as few primary blocks as possible."""
    codec = erasure(needed, total)
    size = -(-SEGMENT // needed)
    blocks = [bytearray(os.urandom(size)) for _ in range(needed)]
    parity = [bytearray(size) for _ in range(total - needed)]
    views = [memoryview(block) for block in parity]
    encode = _rate(lambda: codec.encode_into(blocks, views), SEGMENT, moment_s)
    numbers = range(total - needed, total)
    missing = [memoryview(bytearray(size)) for number in range(needed) if number not in numbers]
    held = [[*blocks, *parity][number] for number in numbers]
    decode = _rate(lambda: codec.decode_into(held, numbers, missing), SEGMENT, moment_s)
    return {f"encode {needed}-of-{total}": encode, f"decode {needed}-of-{total}": decode}


def _rate(once: Callable[[], object], size: int, moment_s: float) -> float:
    once()
    count = 0
    started = time.perf_counter()
    while True:
        once()
        count += 1
        seconds = time.perf_counter() - started
        if seconds >= moment_s:
            return size * count / MB / seconds


def _transfer(size: int, contexts: tuple[ssl.SSLContext, ssl.SSLContext] | None) -> float:
    """MB/s between two threads over loopback."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def send() -> None:
            raw, _ = listener.accept()
            with raw if contexts is None else contexts[0].wrap_socket(raw, server_side=True) as connection:
                connection.recv(1)
                data = bytes(PIECE)
                for _ in range(size // PIECE):
                    connection.sendall(data)
                connection.recv(1)

        sender = threading.Thread(target=send)
        sender.start()
        raw = socket.create_connection(listener.getsockname())
        with raw if contexts is None else contexts[1].wrap_socket(raw) as connection:
            buffer = bytearray(PIECE)
            connection.sendall(b"!")
            started = time.perf_counter()
            missing = size // PIECE * PIECE
            while missing:
                count = connection.recv_into(buffer)
                if not count:
                    raise ConnectionError("the other thread ended too early")
                missing -= count
            seconds = time.perf_counter() - started
            connection.sendall(b"!")
        sender.join()
    return size / MB / seconds


def _contexts(directory: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """TLS contexts of a server with a new certificate, and of a client that accepts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "floor")])
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
    file = directory / "floor.pem"
    file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(file)
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.verify_mode = ssl.CERT_NONE
    return server, client


if __name__ == "__main__":
    pairs = [argument.split("-of-") for argument in sys.argv[1:]]
    print(json.dumps(measure_floor([(int(needed), int(total)) for needed, total in pairs])))
