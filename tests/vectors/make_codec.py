"""Makes codec.json: known answers of hashes, base32, netstrings, AES, Merkle trees and the erasure code.

Shares no code with the sources: every algorithm is written here a second time from the specification, as
plainly as can be. Run it as `python -m tests.vectors.make_codec`. [spec caps 1, 2; spec immutable 4, 6, 7]
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import ECB

PATH = Path(__file__).with_name("codec.json")

ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"

Row = dict[str, object]


def stream(name: str, size: int) -> bytes:
    """Bytes that look random and are the same everywhere."""
    return b"".join(hashlib.sha256(f"{name} {i}".encode()).digest() for i in range(size // 32 + 1))[:size]


def frame(value: bytes) -> bytes:
    return str(len(value)).encode() + b":" + value + b","


def double_hash(data: bytes) -> bytes:
    return hashlib.sha256(hashlib.sha256(data).digest()).digest()


def hashes() -> Iterator[Row]:
    for tag, data in ((b"tag", b"value"), (b"", b""), (stream("tag", 200), stream("data", 5000)), (b"t", bytes(1))):
        whole = double_hash(frame(tag) + data).hex()
        pair = double_hash(frame(tag) + frame(data) + frame(tag)).hex()
        yield {"tag": tag.hex(), "data": data.hex(), "hash": whole, "pair_hash_with_tag": pair}


def b32(data: bytes) -> str:
    bits = "".join(f"{byte:08b}" for byte in data)
    bits += "0" * (-len(bits) % 5)
    return "".join(ALPHABET[int(bits[i : i + 5], 2)] for i in range(0, len(bits), 5))


def base32_rows() -> Iterator[Row]:
    for size in (*range(12), 16, 20, 32, 55):
        data = stream("base32", size)
        yield {"data": data.hex(), "text": b32(data)}
    yield {"data": "ff" * 16, "text": b32(b"\xff" * 16)}


def base32_refused() -> Iterator[Row]:
    """lax: what the lax decoder makes of it, or null if it refuses too."""
    for text in (
        "a",
        "aaa",
        "aaaaaa",
        "A",
        "AA",
        "aA",
        "a0",
        "a1",
        "a8",
        "a9",
        "a ",
        " aa",
        "aa\n",
        "aa======",
        "a=",
        "é!",
    ):
        yield {"text": text, "lax": None}
    for size, free, lax_free in ((1, 2, 1), (2, 4, 3), (3, 1, 0), (4, 3, 2)):
        text = b32(stream("tail", size))
        value = ALPHABET.index(text[-1])
        for bits in range(1, 1 << free):
            lax = stream("tail", size).hex() if bits % (1 << lax_free) == 0 else None
            yield {"text": text[:-1] + ALPHABET[value | bits], "lax": lax}


def netstrings_refused() -> list[str]:
    return ["", ":", ",", "0:", "0:;", "0", "00:,", "01:a,", "1:a", "1:,", "2:a,", "-1:a,", "+1:a,", " 1:a,", "1 :a,", "1_0:aaaaaaaaaa,",
            "1:ab,", "a:a,", "999999999999999999999:a,", "101:" + "a" * 101 + ","]  # fmt: skip


def keystream(key: bytes, offset: int, size: int) -> bytes:
    cells = range(offset // 16, (offset + size) // 16 + 1)
    encryptor = Cipher(AES(key), ECB()).encryptor()
    stream_bytes = b"".join(encryptor.update((cell % 2**128).to_bytes(16, "big")) for cell in cells)
    return stream_bytes[offset % 16 :][:size]


def aes_rows() -> Iterator[Row]:
    for offset in (0, 1, 15, 16, 17, 4095, 2**32 * 16 - 5, 2**64 * 16 - 3, 2**128 * 16 - 9):
        for key in (bytes(range(16)), stream("key", 16)):
            yield {"key": key.hex(), "offset": offset, "keystream": keystream(key, offset, 40).hex()}


def empty_leaf(index: int) -> bytes:
    return double_hash(frame(b"Merkle tree empty leaf") + str(index).encode())


def node_hash(left: bytes, right: bytes) -> bytes:
    return double_hash(frame(b"Merkle tree internal node") + frame(left) + frame(right))


def merkle_rows() -> Iterator[Row]:
    for count in (0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 33):
        leaves = [stream(f"leaf {index}", 32) for index in range(count)]
        padded = 1
        while padded < count:
            padded *= 2
        nodes = [b""] * (padded - 1) + leaves + [empty_leaf(index) for index in range(count, padded)]
        for number in range(padded - 2, -1, -1):
            nodes[number] = node_hash(nodes[2 * number + 1], nodes[2 * number + 2])
        digest = hashlib.sha256(b"".join(nodes)).hexdigest()
        yield {"leaves": [leaf.hex() for leaf in leaves], "root": nodes[0].hex(), "tree_sha256": digest}


def multiply(left: int, right: int) -> int:
    product = 0
    while right:
        if right & 1:
            product ^= left
        left <<= 1
        if left & 0x100:
            left ^= 0x11D
        right >>= 1
    return product


def invert(value: int) -> int:
    result = 1
    for _ in range(254):
        result = multiply(result, value)
    return result


def points() -> list[int]:
    values = [0, 1]
    while len(values) < 256:
        values.append(multiply(values[-1], 2))
    return values


def erasure_rows() -> Iterator[Row]:
    """The parity rows' factors, and blocks made with them byte by byte."""
    p = points()
    for k, n, size in ((1, 1, 3), (1, 4, 5), (2, 4, 1), (3, 10, 7), (4, 5, 33), (7, 20, 2), (16, 19, 65)):
        rows = []
        for i in range(k, n):
            row = []
            for j in range(k):
                factor = 1
                for m in range(k):
                    if m != j:
                        factor = multiply(factor, multiply(p[i] ^ p[m], invert(p[j] ^ p[m])))
                row.append(factor)
            rows.append(row)
        runs = [stream(f"run {k} {j}", size) for j in range(k)]
        parity = []
        for row in rows:
            block = bytearray(size)
            for factor, run in zip(row, runs, strict=True):
                for position, byte in enumerate(run):
                    block[position] ^= multiply(factor, byte)
            parity.append(block.hex())
        yield {"k": k, "n": n, "rows": rows, "runs": [run.hex() for run in runs], "parity": parity}


def make() -> str:
    """The whole file."""
    content = {
        "about": "Known answers; made by make_codec.py, which see.",
        "hashes": list(hashes()),
        "base32": list(base32_rows()),
        "base32_refused": list(base32_refused()),
        "netstrings_refused": netstrings_refused(),
        "aes": list(aes_rows()),
        "merkle": list(merkle_rows()),
        "erasure": list(erasure_rows()),
    }
    return json.dumps(content, indent=1, ensure_ascii=True) + "\n"


if __name__ == "__main__":
    PATH.write_text(make(), encoding="ascii")
