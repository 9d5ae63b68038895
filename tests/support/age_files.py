"""age files with a passphrase that is cheap to try, for tests: pyrage chooses the cost by the machine's current speed.

Written from the specification at age-encryption.org/v1.
"""

from __future__ import annotations

import base64
import hashlib
import hmac

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

LOG_WORK = 10
CHUNK = 64 * 1024


def age_text(data: bytes, passphrase: str, *, armored: bool = True) -> bytes:
    """The data as an age file in text form. Takes the arguments of `pyrage.passphrase.encrypt`, which it replaces in tests."""
    assert armored and len(data) <= CHUNK
    salt, file_key, nonce = bytes(range(16)), bytes(range(16, 32)), bytes(range(32, 48))
    wrapping = hashlib.scrypt(
        passphrase.encode(), salt=b"age-encryption.org/v1/scrypt" + salt, n=2**LOG_WORK, r=8, p=1, dklen=32
    )
    body = ChaCha20Poly1305(wrapping).encrypt(bytes(12), file_key, None)
    header = f"age-encryption.org/v1\n-> scrypt {_base64(salt)} {LOG_WORK}\n{_base64(body)}\n---".encode()
    mac = hmac.new(_derive(file_key, b"", b"header"), header, hashlib.sha256).digest()
    sealed = ChaCha20Poly1305(_derive(file_key, nonce, b"payload")).encrypt(bytes(11) + b"\x01", data, None)
    whole = base64.b64encode(header + b" " + _base64(mac).encode() + b"\n" + nonce + sealed).decode()
    lines = [whole[start : start + 64] for start in range(0, len(whole), 64)]
    return "\n".join(["-----BEGIN AGE ENCRYPTED FILE-----", *lines, "-----END AGE ENCRYPTED FILE-----", ""]).encode()


def _derive(key: bytes, salt: bytes, info: bytes) -> bytes:
    return HKDF(hashes.SHA256(), 32, salt or None, info).derive(key)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode().rstrip("=")
