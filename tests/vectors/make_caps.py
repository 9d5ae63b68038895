"""Makes caps.json: capability strings, what they mean, and strings that mean nothing. [spec caps]

Shares no code with the sources: it is written from the specification a second time. Run it as
`python -m tests.vectors.make_caps` after a change of the format facts.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

PATH = Path(__file__).with_name("caps.json")

KEYS = (bytes(range(16)), bytes(16), b"\xff" * 16, hashlib.md5(b"key").digest())
HASHES = (bytes(range(32)), bytes(32), b"\xff" * 32, hashlib.sha256(b"hash").digest())
NUMBERS = ((3, 10, 1234), (1, 1, 56), (256, 256, 2**63), (7, 200, 1))
DIRECTORY_PREFIXES = {
    "URI:LIT:": "URI:DIR2-LIT:",
    "URI:CHK:": "URI:DIR2-CHK:",
    "URI:CHK-Verifier:": "URI:DIR2-CHK-Verifier:",
    "URI:SSK:": "URI:DIR2:",
    "URI:SSK-RO:": "URI:DIR2-RO:",
    "URI:SSK-Verifier:": "URI:DIR2-Verifier:",
    "URI:MDMF:": "URI:DIR2-MDMF:",
    "URI:MDMF-RO:": "URI:DIR2-MDMF-RO:",
    "URI:MDMF-Verifier:": "URI:DIR2-MDMF-Verifier:",
}

Row = dict[str, object]


def b32(data: bytes) -> str:
    return base64.b32encode(data).decode().lower().rstrip("=")


def derive(tag: str, value: bytes) -> bytes:
    framed = f"{len(tag)}:{tag},".encode()
    return hashlib.sha256(hashlib.sha256(framed + value).digest()).digest()[:16]


def file_caps() -> Iterator[Row]:
    """One row per cap of a file: kind, cap, its read cap, verify cap and storage index, authority, mutable."""
    for data in (b"", b"a", b"hello", bytes(range(55)), b"\xff" * 4):
        cap = "URI:LIT:" + b32(data)
        yield row("LitCap", cap, cap, None, None, "read", False, data=data.hex())
    for key, digest, (k, n, size) in zip(KEYS, HASHES, NUMBERS, strict=True):
        index = derive("allmydata_immutable_key_to_storage_index_v1", key)
        tail = f":{b32(digest)}:{k}:{n}:{size}"
        fields = {"ueb_hash": digest.hex(), "needed": k, "total": n, "size": size}
        cap, verify = "URI:CHK:" + b32(key) + tail, "URI:CHK-Verifier:" + b32(index) + tail
        yield row("ChkCap", cap, cap, verify, index, "read", False, key=key.hex(), **fields)
        yield row("ChkVerifyCap", verify, verify, verify, index, "verify", False, **fields)
        for name, word in (("Sdmf", "SSK"), ("Mdmf", "MDMF")):
            read_key = derive("allmydata_mutable_writekey_to_readkey_v1", key)
            index = derive("allmydata_mutable_readkey_to_storage_index_v1", read_key)
            end = ":" + b32(digest)
            write = f"URI:{word}:{b32(key)}{end}"
            read = f"URI:{word}-RO:{b32(read_key)}{end}"
            verify = f"URI:{word}-Verifier:{b32(index)}{end}"
            fingerprint = digest.hex()
            yield row(
                f"{name}WriteCap",
                write,
                read,
                verify,
                index,
                "write",
                True,
                write_key=key.hex(),
                fingerprint=fingerprint,
            )
            yield row(
                f"{name}ReadCap",
                read,
                read,
                verify,
                index,
                "read",
                True,
                read_key=read_key.hex(),
                fingerprint=fingerprint,
            )
            yield row(f"{name}VerifyCap", verify, verify, verify, index, "verify", False, fingerprint=fingerprint)


def row(
    kind: str,
    cap: str,
    read: str,
    verify: str | None,
    index: bytes | None,
    authority: str,
    mutable: bool,
    **fields: object,
) -> Row:
    return {
        "kind": kind,
        "cap": cap,
        "read_cap": read,
        "verify_cap": verify,
        "storage_index": None if index is None else index.hex(),
        "authority": authority,
        "mutable": mutable,
        "fields": fields,
    }


def directory_caps(rows: list[Row]) -> Iterator[Row]:
    """The same caps as directories: the prefixes differ, and nothing else."""
    for file_row in rows:
        renamed = {name: to_directory(file_row[name]) for name in ("cap", "read_cap", "verify_cap")}
        yield {**file_row, **renamed, "directory": True}


def to_directory(cap: object) -> str | None:
    if cap is None:
        return None
    prefix, colon, fields = str(cap)[4:].partition(":")
    return DIRECTORY_PREFIXES[f"URI:{prefix}{colon}"] + fields


def other_spellings() -> Iterator[Row]:
    """Text that parses as another text: accidents of 1.20, prefixes, and fields of older writers."""
    key, digest, other = b32(KEYS[0]), b32(HASHES[0]), b32(HASHES[3])
    chk = f"URI:CHK:{key}:{digest}:3:10:56"
    verifier = f"URI:CHK-Verifier:{key}:{digest}:3:10:56"
    mdmf, read = f"URI:MDMF:{key}:{digest}", f"URI:MDMF-RO:{key}:{digest}"
    for text, cap in (
        (f"URI:CHK:{key}:{digest}:003:010:0056", chk),
        (chk + "\n", chk),
        ("URI:LIT:nbswy3dp\n", "URI:LIT:nbswy3dp"),
        (verifier + "junk:\n\x00é", verifier),
        (verifier + ":7", verifier),
        (mdmf + ":3:131073", mdmf),
        (mdmf + ":", mdmf),
        (mdmf + "\n", mdmf),
        (f"{read}:{other}\nanything", read),
        (f"URI:DIR2-MDMF-Verifier:{key}:{digest}:3:131073", f"URI:DIR2-MDMF-Verifier:{key}:{digest}"),
        ("ro." + read, read),
        (f"ro.URI:SSK-Verifier:{key}:{digest}", f"URI:SSK-Verifier:{key}:{digest}"),
        ("ro." + chk, chk),
        ("imm." + chk, chk),
        ("imm.URI:LIT:", "URI:LIT:"),
        (f"imm.URI:DIR2-CHK:{key}:{digest}:3:10:56", f"URI:DIR2-CHK:{key}:{digest}:3:10:56"),
        (f"URI:CHK:{key}:{digest}:0:300:0", f"URI:CHK:{key}:{digest}:0:300:0"),
    ):
        yield {"text": text, "cap": cap}


def refused() -> Iterator[Row]:
    """Text that is not a known cap, with its error; null for caps that a newer version may know."""
    key, digest = b32(KEYS[0]), b32(HASHES[0])
    chk = f"URI:CHK:{key}:{digest}:3:10:56"
    ssk, mdmf = f"URI:SSK:{key}:{digest}", f"URI:MDMF:{key}:{digest}"
    bad = "CapError"
    for text in (
        "URI:LIT:b", "URI:LIT:nbswy3dq3", "URI:LIT:NBSWY3DP", "URI:LIT:nbswy3dp=", "URI:LIT:nb swy3dp", "URI:LIT:nb",
        "URI:LIT:nbswy3dp\n\n", "URI:LIT:nbswy3dp\r", "URI:LIT:nbswy3d0", "URI:CHK:", chk[:-3], chk[:-1] + "x",
        chk + ":", chk + ":1", chk + " ", chk + "\n\n", chk.replace(":3:", ":-3:"), chk.replace(":3:", ":+3:"),
        chk.replace(":3:", "::"), chk.replace(":3:", ":٣:"), chk.replace(":3:", ": 3:"), chk + "0" * 40,
        chk.replace(key, key[:-1] + "b"), chk.replace(key, key + "a"), chk.replace(key, key[:-1]),
        chk.replace(digest, digest[:-1] + "b"), chk.replace(digest, digest[:-1]), chk.upper().replace("URI:CHK", "URI:CHK"),
        f"URI:CHK-Verifier:{key}:{digest}:3:10:", f"URI:CHK-Verifier:{key}:{digest}:3:10:" + "1" * 40,
        ssk[:-1], ssk + "a", ssk + ":3:131073", ssk + "\n\n", f"URI:SSK-RO:{key}", f"URI:SSK-Verifier:{key}:{digest}:",
        mdmf + "a", mdmf + "\n\n", mdmf + "\n:3", mdmf[:-2] + ":3:4", f"URI:DIR2:{key}:{digest}:1",
        f"URI:DIR2-CHK:{key}:{digest}:3:10", "URI:DIR2-LIT:b",
    ):  # fmt: skip
        yield refusal(text, False, bad)
    for text in (
        "", "x", "URI:", "URI:LIT", "uri:LIT:", "URI:lit:nbswy3dp", " URI:LIT:nbswy3dp", f"URI:DIR:{key}:{digest}",
        f"URI:DIR2-SSK:{key}:{digest}", f"URI:CHK-RO:{key}:{digest}:3:10:56", "ro.imm." + chk, "imm.ro." + chk,
        "ro.ro." + chk, "RO." + chk, "lafs://from_the_future", "ro.lafs://from_the_future",
        "imm.lafs://from_the_future", "x-tahoe-future-test-writeable:x", "x-tahoe-future-test-mutable:x",
        "ro.x-tahoe-future-test-mutable:x", "\x00", "URI:" + "A" * 100 + ":", "URI::", "é",
    ):  # fmt: skip
        yield refusal(text, False, None)
    for text in ("ro." + ssk, f"ro.URI:DIR2:{key}:{digest}", "ro." + mdmf, "ro.x-tahoe-future-test-writeable:x"):
        yield refusal(text, False, "MustBeReadOnlyError")
    # The constraint is looked at before the body.
    yield refusal("ro.URI:SSK:nonsense", False, "MustBeReadOnlyError")
    mutable = [ssk, f"URI:SSK-RO:{key}:{digest}", mdmf, f"URI:DIR2-MDMF-RO:{key}:{digest}", "URI:DIR2:nonsense"]
    mutable += ["x-tahoe-future-test-writeable:x", "x-tahoe-future-test-mutable:x"]
    for text in mutable:
        yield refusal("imm." + text, False, "MustBeDeepImmutableError")
        yield refusal(text, True, "MustBeDeepImmutableError")
        yield refusal("ro." + text, True, "MustBeDeepImmutableError")
    yield refusal("lafs://from_the_future", True, None)


def refusal(text: str, deep_immutable: bool, error: str | None) -> Row:
    return {"text": text, "deep_immutable": deep_immutable, "error": error}


def unknown_children() -> Iterator[Row]:
    """The table of section 9, and children that are opaque."""
    unknown, immutable_only = "UnknownWriteCapError", "MustBeDeepImmutableError"
    table = (
        ("X", None, unknown, unknown),
        ("ro.X", None, (None, "ro.X"), unknown),
        ("imm.X", None, (None, "imm.X"), (None, "imm.X")),
        ("X", "Y", ("X", "ro.Y"), immutable_only),
        ("X", "ro.Y", ("X", "ro.Y"), immutable_only),
        ("X", "imm.Y", immutable_only, immutable_only),
        (None, "Y", (None, "ro.Y"), (None, "imm.Y")),
        (None, "ro.Y", (None, "ro.Y"), (None, "imm.Y")),
        (None, "imm.Y", (None, "imm.Y"), (None, "imm.Y")),
        (None, "URI:LIT:b", "CapError", "CapError"),
        (None, "x-tahoe-future-test-writeable:Y", "MustBeReadOnlyError", immutable_only),
        ("X", "x-tahoe-future-test-writeable:Y", "MustBeReadOnlyError", immutable_only),
        (None, None, (None, None), (None, None)),
    )
    for write, read, in_mutable, in_immutable in table:
        for deep_immutable, result in ((False, in_mutable), (True, in_immutable)):
            settled = {"error": result} if isinstance(result, str) else {"error": None, "slots": list(result)}
            yield {"write": write, "read": read, "deep_immutable": deep_immutable, **settled}


def make() -> str:
    """The whole file."""
    rows = list(file_caps())
    content = {
        "about": "Capability strings and their meaning; made by make_caps.py, which see.",
        "caps": rows + list(directory_caps(rows)),
        "other_spellings": list(other_spellings()),
        "refused": list(refused()),
        "unknown_children": list(unknown_children()),
    }
    return json.dumps(content, indent=1, ensure_ascii=True) + "\n"


if __name__ == "__main__":
    PATH.write_text(make(), encoding="ascii")
