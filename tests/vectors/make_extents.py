"""Makes extents.json: slices, sequences and tables, right and wrong, and the bytes of a pack. [spec extents]

Shares no code with the sources but AES: it is written from the specification a second time. Run it as
`python -m tests.vectors.make_extents` after a change of the format facts.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR

PATH = Path(__file__).with_name("extents.json")

Row = dict[str, object]

SECRET = b"a" * 16
FILES = (b"Hello, pack! " * 10, b"b" * 56)
MOST = 2**63


def b32(data: bytes) -> str:
    return base64.b32encode(data).decode().lower().rstrip("=")


K, F, K2 = b32(bytes(range(16))), b32(bytes(range(32))), b32(b"\xff" * 16)
INDEX = "hdis5iaveku6lnlaiccydyid7q"
"""The storage index of K: a known answer of [spec caps 4]."""
CHK = f"URI:CHK:{K}:{F}:3:10:1000"
SLICE = f"URI:GRID-SLICE:{K}:{F}:3:10:1000"
LIT = "URI:LIT:nbswy3dp"
SEQUENCE = f"URI:GRID-SEQUENCE:1234:{CHK[4:]}"
MUTABLE = f"URI:SSK-RO:{K}:{F}"


def slice_key(plaintext: bytes) -> bytes:
    tag = b"grid_slice_content_to_key_v1+%d:%b," % (len(SECRET), SECRET)
    framed = b"%d:%b," % (len(tag), tag)
    return hashlib.sha256(hashlib.sha256(framed + plaintext).digest()).digest()[:16]


def crypt(key: bytes, text: bytes) -> bytes:
    return Cipher(AES(key), CTR(bytes(16))).encryptor().update(text)


def pack() -> Row:
    pieces = [crypt(slice_key(text), text) for text in FILES]
    return {
        "secret": SECRET.hex(),
        "files": [{"plaintext": text.hex(), "key": slice_key(text).hex()} for text in FILES],
        "pack": b"".join(pieces).hex(),
        "sha256": hashlib.sha256(b"".join(pieces)).hexdigest(),
    }


def caps() -> Iterator[Row]:
    """Usable capabilities, in their one spelling."""
    verify = f"URI:CHK-Verifier:{INDEX}:{F}:3:10:1000"
    for offset, length in ((0, 1), (0, 1000), (999, 1), (17, 56)):
        yield {
            "cap": f"imm.{SLICE}:{offset}:{length}:{K2}",
            "kind": "SliceCap",
            "size": length,
            "verify_cap": verify,
            "storage_index": INDEX,
        }
    for size in (1, 1234, MOST):
        yield {
            "cap": f"imm.URI:GRID-SEQUENCE:{size}:{CHK[4:]}",
            "kind": "SequenceCap",
            "size": size,
            "verify_cap": verify,
            "storage_index": INDEX,
        }
    yield {
        "cap": "imm.URI:GRID-SEQUENCE:5:LIT:nbswy3dp",
        "kind": "SequenceCap",
        "size": 5,
        "verify_cap": None,
        "storage_index": None,
    }


def malformed() -> Iterator[str]:
    """Texts of these kinds that are no capability."""
    whole = f"{SLICE}:17:56:{K2}"
    yield from (whole[:-1], whole + "a", whole + "\n", whole + ":", whole + ":1", SLICE, SLICE + ":17:56")
    yield from (SLICE + f":17:056:{K2}", SLICE + f":+17:56:{K2}", SLICE + f":-1:56:{K2}", SLICE + f"::56:{K2}")
    yield from (SLICE + f":17:{'9' * 20}:{K2}", SLICE + f": 17:56:{K2}", SLICE + f":17:56:{K2[:-1]}b")
    yield from (whole.replace(":3:10:", ":03:10:"), whole.replace(F, F[:-1] + "b"), whole.replace(K, K.upper()))
    yield from ("URI:GRID-SLICE:", "URI:GRID-SEQUENCE:", "URI:GRID-SEQUENCE:5:", "URI:GRID-SEQUENCE:05:LIT:nbswy3dp")
    yield from (SEQUENCE + "\n", SEQUENCE + ":", SEQUENCE[:-4], "URI:GRID-SEQUENCE:LIT:nbswy3dp")
    yield from (f"URI:GRID-SEQUENCE:5:{MUTABLE[4:]}", f"URI:GRID-SEQUENCE:5:SSK:{K}:{F}", "URI:GRID-SEQUENCE:5:LIT:b")
    yield from (
        f"URI:GRID-SEQUENCE:5:{whole[4:]}",
        f"URI:GRID-SEQUENCE:5:{SEQUENCE[4:]}",
        "URI:GRID-SEQUENCE:5:LIT:nb\n",
    )
    yield f"URI:GRID-SEQUENCE:5:CHK-Verifier:{INDEX}:{F}:3:10:1000"


def unusable() -> Iterator[str]:
    """Capabilities whose numbers cannot be those of a file."""
    for tail in ("0:0", "1000:1", "999:2", "0:1001", f"{MOST}:1", "1001:0"):
        yield f"imm.{SLICE}:{tail}:{K2}"
    for numbers in ("0:10:1000", "4:3:1000", "3:257:1000", "3:10:0", f"3:10:{MOST + 1}"):
        yield f"imm.URI:GRID-SLICE:{K}:{F}:{numbers}:0:1:{K2}"
        yield f"imm.URI:GRID-SEQUENCE:5:CHK:{K}:{F}:{numbers}"
    yield f"imm.URI:GRID-SEQUENCE:0:{CHK[4:]}"
    yield f"imm.URI:GRID-SEQUENCE:{MOST + 1}:{CHK[4:]}"
    yield f"imm.URI:GRID-SEQUENCE:5:CHK:{K}:{F}:3:10:{2**24 + 1}"


HEAD = "grid-sequence-1\n"


def tables() -> Iterator[Row]:
    whole = f"{SLICE}:17:56:{K2}"
    for parts in (
        [(CHK, 0, 1000)],
        [(LIT, 0, 5), (LIT, 4, 1), (LIT, 0, 5)],
        [(CHK, 10, 990), (whole, 0, 56), (whole, 55, 1), (LIT, 1, 2)],
    ):
        text = HEAD + "".join(f"{cap} {offset} {length}\n" for cap, offset, length in parts)
        yield {"table": text, "size": sum(length for _, _, length in parts), "parts": parts}


def wrong_tables() -> Iterator[Row]:
    """Tables that are refused, with the size that the capability says."""
    whole = f"{SLICE}:17:56:{K2}"
    line = f"{LIT} 0 5\n"
    for why, text, size in (
        ("empty", "", 5),
        ("no parts", HEAD, 0),
        ("no head", line, 5),
        ("another version", "grid-sequence-2\n" + line, 5),
        ("cut", HEAD + line[:-1], 5),
        ("empty line", HEAD + line + "\n", 5),
        ("CR", HEAD + line[:-1] + "\r\n", 5),
        ("two blanks", HEAD + line.replace(" ", "  "), 5),
        ("leading zero", HEAD + f"{LIT} 00 5\n", 5),
        ("no length", HEAD + f"{LIT} 0\n", 5),
        ("length 0", HEAD + line + f"{LIT} 0 0\n", 5),
        ("past the end", HEAD + f"{LIT} 1 5\n", 5),
        ("offset past the end", HEAD + f"{LIT} 6 1\n", 1),
        ("sum too small", HEAD + line, 4),
        ("sum too large", HEAD + line, 6),
        ("itself: a sequence", HEAD + f"{SEQUENCE} 0 5\n", 5),
        ("a mutable file", HEAD + f"{MUTABLE} 0 5\n", 5),
        ("a write capability", HEAD + f"URI:SSK:{K}:{F} 0 5\n", 5),
        ("a directory to write", HEAD + f"URI:DIR2:{K}:{F} 0 5\n", 5),
        ("an immutable directory", HEAD + f"URI:DIR2-CHK:{K}:{F}:3:10:1000 0 5\n", 5),
        ("a verify capability", HEAD + f"URI:CHK-Verifier:{INDEX}:{F}:3:10:1000 0 5\n", 5),
        ("unknown", HEAD + "URI:FUTURE:x 0 5\n", 5),
        ("with a prefix", HEAD + f"imm.{LIT} 0 5\n", 5),
        ("a slice past its pack", HEAD + f"{SLICE}:999:2:{K2} 0 2\n", 2),
        ("a slice of 0 bytes", HEAD + f"{SLICE}:9:0:{K2} 0 1\n", 1),
        ("another spelling", HEAD + f"URI:CHK:{K}:{F}:03:10:1000 0 5\n", 5),
        ("a long literal", HEAD + f"URI:LIT:{b32(bytes(56))} 0 5\n", 5),
        ("a long line", HEAD + f"URI:LIT:{'a' * 400} 0 5\n", 5),
        ("longer than any file", HEAD + f"URI:CHK:{K}:{F}:3:10:{MOST} 0 {MOST}\n" + line, MOST + 5),
        ("past the end of a slice", HEAD + f"{whole} 50 7\n", 7),
    ):
        yield {"why": why, "table": text, "size": size}


def make() -> str:
    vectors = {
        "pack": pack(),
        "caps": list(caps()),
        "malformed": list(malformed()),
        "unusable": list(unusable()),
        "tables": list(tables()),
        "wrong_tables": list(wrong_tables()),
    }
    return json.dumps(vectors, indent=1) + "\n"


if __name__ == "__main__":
    PATH.write_text(make(), encoding="ascii")
