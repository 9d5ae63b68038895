"""Makes chk-shares.json: small immutable files as their complete share sets, sound ones and damaged ones.

Run `python -m tests.vectors.make_chk_shares` from the top of the tree to write the file anew; the result is
always the same bytes. Shares are put together here section by section, from the specification alone
[spec immutable 6-11], so that what is damaged can be damaged consistently with everything around it.

Each vector: `name`; `cap`; `text` (base64, null if no reader may ever deliver it); `shares`, by number, each an
index into `shares_data`, which is in base64;
`faults`: for each unsound share what a full verification finds, `format`, `version` or `integrity`; `get`: what
reading the whole file ends in, `ok`, `too few` (fewer than k sound shares) or `damaged` (its uploader made
it wrong: no other copy of any share would help).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from attrs import evolve, field, frozen

from grid.caps import ChkCap
from grid.codec.erasure import erasure
from grid.codec.merkle import build_tree
from grid.codec.netstring import pack_netstring
from grid.crypto.aes import CtrCipher
from grid.crypto.hashing import tagged_hash
from grid.immutable.share.geometry import Geometry

PATH = Path(__file__).with_name("chk-shares.json")
KEY = bytes(range(16))
TEXT = bytes(range(7, 252))
SEGMENT = 96

Sections = dict[str, bytes]
ORDER = ("data", "plaintext_tree", "crypttext_tree", "block_tree", "chain", "length", "ueb")


@frozen(kw_only=True)
class Parts:
    """What the shares of one file are put together from."""

    geometry: Geometry
    ciphertext: bytes
    data: tuple[bytes, ...] = field(repr=False)
    crypttext_root: bytes | None = None
    share_root: bytes | None = None

    @property
    def crypttext_tree(self) -> bytes:
        """Over the ciphertext's segments."""
        size = self.geometry.segment_size
        starts = range(0, len(self.ciphertext), size)
        return build_tree(
            b"".join(tagged_hash(b"allmydata_crypttext_segment_v1", self.ciphertext[i : i + size]) for i in starts)
        )

    def block_tree(self, share_number: int) -> bytes:
        """Over the share's blocks."""
        size, data = self.geometry.block_size, self.data[share_number]
        blocks = [data[i : i + size] for i in range(0, len(data), size)]
        return build_tree(b"".join(tagged_hash(b"allmydata_encoded_subshare_v1", block) for block in blocks))

    @property
    def share_tree(self) -> bytes:
        """Over the roots of the block trees."""
        return build_tree(b"".join(self.block_tree(number)[:32] for number in range(self.geometry.n)))


def encode_parts(text: bytes, k: int, n: int, segment_size: int = SEGMENT) -> Parts:
    """The sound parts of a text."""
    geometry = Geometry.of_file(len(text), k, n, segment_size)
    ciphertext = CtrCipher(KEY).crypt(text)
    data = [b""] * n
    for index in range(geometry.segment_count):
        start, length = geometry.segment_offset(index), geometry.block_length(index)
        segment = ciphertext[start : start + geometry.segment_length(index)].ljust(k * length, b"\0")
        runs = [segment[j * length : (j + 1) * length] for j in range(k)]
        parity = [bytearray(length) for _ in range(n - k)]
        erasure(k, n).encode_into(runs, [memoryview(block) for block in parity])
        data = [old + new for old, new in zip(data, [*runs, *map(bytes, parity)], strict=True)]
    return Parts(geometry=geometry, ciphertext=ciphertext, data=tuple(data))


def describe(parts: Parts) -> dict[str, bytes]:
    """The fields of the extension block, in written order."""
    g = parts.geometry
    return {
        "codec_name": b"crs",
        "codec_params": b"%d-%d-%d" % (g.segment_size, g.k, g.n),
        "crypttext_hash": tagged_hash(b"allmydata_crypttext_v1", parts.ciphertext),
        "crypttext_root_hash": parts.crypttext_root or parts.crypttext_tree[:32],
        "needed_shares": b"%d" % g.k,
        "num_segments": b"%d" % g.segment_count,
        "segment_size": b"%d" % g.segment_size,
        "share_root_hash": parts.share_root or parts.share_tree[:32],
        "size": b"%d" % g.size,
        "tail_codec_params": b"%d-%d-%d" % (g.padded_tail_size, g.k, g.n),
        "total_shares": b"%d" % g.n,
    }


def pack_fields(fields: Mapping[str, bytes]) -> bytes:
    """The extension block of these fields, in their order."""
    return b"".join(name.encode() + b":" + pack_netstring(value) for name, value in fields.items())


def pack_chain(parts: Parts, share_number: int) -> bytes:
    """The share's chain, its entries in ascending order."""
    tree = parts.share_tree
    node = parts.geometry.padded_share_count - 1 + share_number
    nodes = {node}
    while node:
        nodes.add(node + 1 if node % 2 else node - 1)
        node = (node - 1) // 2
    return b"".join(number.to_bytes(2, "big") + tree[32 * number :][:32] for number in sorted(nodes))


def make_sections(parts: Parts, ueb: bytes, version: int = 1) -> list[Sections]:
    """The sections of every share."""
    return [
        {
            "data": parts.data[number],
            "plaintext_tree": bytes(parts.geometry.tree_size),
            "crypttext_tree": parts.crypttext_tree,
            "block_tree": parts.block_tree(number),
            "chain": pack_chain(parts, number),
            "length": len(ueb).to_bytes(4 * version, "big"),
            "ueb": ueb,
        }
        for number in range(parts.geometry.n)
    ]


def join(sections: Sections, block_size: int, version: int = 1, gaps: Mapping[str, bytes] | None = None) -> bytes:
    """One share: its header, and its sections, each behind its gap."""
    width = 4 * version
    offset = 4 + 8 * width
    offsets, body = [], b""
    for name in ORDER:
        body += (gaps or {}).get(name, b"")
        offsets.append(offset + len(body))
        body += sections[name]
    numbers = [block_size, len(sections["data"]), *offsets[:6]]
    return version.to_bytes(4, "big") + b"".join(number.to_bytes(width, "big") for number in numbers) + body


def make_cap(parts: Parts, ueb: bytes) -> str:
    """The cap of the file whose extension block this is."""
    g = parts.geometry
    ueb_hash = tagged_hash(b"allmydata_uri_extension_v1", ueb)
    return ChkCap(key=KEY, ueb_hash=ueb_hash, needed=g.k, total=g.n, size=g.size).to_string()


def flip(data: bytes, index: int) -> bytes:
    """The data with one bit flipped."""
    changed = bytearray(data)
    changed[index] ^= 1
    return bytes(changed)


def make_vector(
    name: str,
    cap: str,
    shares: Mapping[int, bytes],
    *,
    text: bytes | None = TEXT,
    faults: Mapping[int, str] | None = None,
    get: str = "ok",
) -> dict[str, Any]:
    """One entry of the file."""
    return {
        "name": name,
        "cap": cap,
        "text": None if text is None else base64.b64encode(text).decode(),
        "get": get,
        "faults": {str(number): fault for number, fault in (faults or {}).items()},
        "shares": {str(number): share for number, share in shares.items()},
    }


PARTS = encode_parts(TEXT, 2, 4)
UEB = pack_fields(describe(PARTS))
CAP = make_cap(PARTS, UEB)
SECTIONS = make_sections(PARTS, UEB)
BLOCK_SIZE = PARTS.geometry.block_size
SHARES = [join(sections, BLOCK_SIZE) for sections in SECTIONS]


def sound_files() -> list[dict[str, Any]]:
    """As 1.20 would write them, but for the order of some chains."""
    vectors = []
    for name, text, k, n in [
        ("one byte", b"!", 1, 1),
        ("one segment, one byte short", TEXT[: SEGMENT - 1], 3, 5),
        ("one segment", TEXT[:SEGMENT], 3, 5),
        ("one byte in the last segment", TEXT[: SEGMENT + 1], 3, 5),
        ("many segments, padded tail", TEXT, 2, 4),
        ("all shares needed", TEXT, 4, 4),
        ("copies", TEXT, 1, 3),
    ]:
        parts = encode_parts(text, k, n)
        ueb = pack_fields(describe(parts))
        shares = [join(sections, parts.geometry.block_size) for sections in make_sections(parts, ueb)]
        vectors.append(make_vector(name, make_cap(parts, ueb), dict(enumerate(shares)), text=text))
    return vectors


def unusual_files() -> list[dict[str, Any]]:
    """Not as 1.20 writes them, and yet to be read. [spec immutable 9, 10, 16]"""
    fields = describe(PARTS)
    mandatory = {name: fields[name] for name in ("share_root_hash", "segment_size", "crypttext_root_hash")}
    extra = {"plaintext_root_hash": bytes(32), **dict(reversed(fields.items())), "x-future": b"\0"}
    vectors = []
    for name, ueb in [("mandatory fields only", pack_fields(mandatory)), ("other fields", pack_fields(extra))]:
        shares = [join(sections, BLOCK_SIZE) for sections in make_sections(PARTS, ueb)]
        vectors.append(make_vector(name, make_cap(PARTS, ueb), dict(enumerate(shares))))
    second = [join(sections, BLOCK_SIZE, version=2) for sections in make_sections(PARTS, UEB, version=2)]
    gaps = dict.fromkeys(("data", "plaintext_tree", "crypttext_tree", "block_tree", "chain"), b"\xee" * 64)
    alike: list[tuple[str, Callable[[Sections], bytes]]] = [
        ("junk behind the extension block", lambda sections: join(sections, BLOCK_SIZE) + b"junk"),
        ("sections apart", lambda sections: join(sections, BLOCK_SIZE, gaps=gaps)),
        ("chain reversed", lambda sections: join({**sections, "chain": reverse_chain(sections["chain"])}, BLOCK_SIZE)),
        ("sizes in the header wrong", lambda sections: join(sections, 0xFFFFFFFF)),
        (
            "plaintext tree not blank",
            lambda sections: join({**sections, "plaintext_tree": b"\xff" * PARTS.geometry.tree_size}, BLOCK_SIZE),
        ),
    ]
    vectors.append(make_vector("layout of version two", CAP, dict(enumerate(second))))
    for name, change in alike:
        vectors.append(make_vector(name, CAP, {number: change(sections) for number, sections in enumerate(SECTIONS)}))
    return vectors


def reverse_chain(chain: bytes) -> bytes:
    """The same entries, the last first."""
    return b"".join(chain[start : start + 34] for start in range(len(chain) - 34, -1, -34))


def damaged_shares() -> list[dict[str, Any]]:
    """Share 1 of a file of four is unsound, each time in another way; two of the others are enough."""
    share, sections = SHARES[1], SECTIONS[1]
    other = make_sections(PARTS, UEB)[2]

    def with_section(name: str, data: bytes) -> bytes:
        return join({**sections, name: data}, BLOCK_SIZE)

    def with_flip(name: str, index: int) -> bytes:
        return with_section(name, flip(sections[name], index))

    cases: list[tuple[str, str, bytes]] = [
        ("share empty", "format", b""),
        ("header cut short", "format", share[:35]),
        ("blocks cut short", "format", share[:100]),
        ("block tree cut short", "format", share[: -len(UEB) - 4 - 34 * 3 - 1]),
        ("extension block cut short", "format", share[:-1]),
        ("version three", "version", share[:3] + b"\3" + share[4:]),
        ("offset of the blocks zero", "format", share[:12] + bytes(4) + share[16:]),
        ("offset of the chain odd", "format", flip(share, 0x1F)),
        ("offset of the extension block beyond the end", "format", share[:0x20] + b"\x7f" + share[0x21:]),
        ("length of the extension block huge", "format", with_section("length", b"\xff" * 4)),
        ("length of the extension block zero", "format", with_section("length", bytes(4))),
        ("bit of the extension block flipped", "integrity", with_section("ueb", flip(UEB, 60))),
        ("bit of the first block flipped", "integrity", with_flip("data", 0)),
        ("bit of the last block flipped", "integrity", with_flip("data", -1)),
        ("bit of a block hash flipped", "integrity", with_flip("block_tree", -40)),
        ("root of the block tree wrong", "integrity", with_flip("block_tree", 0)),
        ("bit of a ciphertext hash flipped", "integrity", with_flip("crypttext_tree", -40)),
        ("bit of the chain's leaf flipped", "integrity", with_flip("chain", 2 + 2 * 34)),
        ("node of the chain missing", "integrity", with_section("chain", sections["chain"][34:])),
        ("chain of another share", "integrity", with_section("chain", other["chain"])),
        ("chain empty", "integrity", with_section("chain", b"")),
        ("blocks of another share", "integrity", with_section("data", other["data"])),
        ("share stored under another's number", "integrity", SHARES[2]),
    ]
    return [
        make_vector(name, CAP, {**dict(enumerate(SHARES)), 1: damaged}, faults={1: fault})
        for name, fault, damaged in cases
    ]


def lost_files() -> list[dict[str, Any]]:
    """Fewer than k sound shares are left, or the uploader made shares that no reader may believe."""
    cut = {0: SHARES[0], 1: SHARES[1][:100], 2: flip(SHARES[2], 40), 3: SHARES[3][:3] + b"\7" + SHARES[3][4:]}
    faults = {1: "format", 2: "integrity", 3: "version"}
    swapped = {0: SHARES[1], 1: SHARES[0], 2: SHARES[3], 3: SHARES[2]}
    vectors = [
        make_vector("one share left of two", CAP, {3: SHARES[3]}, get="too few"),
        make_vector("one sound share of four", CAP, cut, faults=faults, get="too few"),
        make_vector("all shares swapped", CAP, swapped, faults=dict.fromkeys(range(4), "integrity"), get="too few"),
        make_vector("no share", CAP, {}, get="too few"),
    ]
    vectors += [make_damaged_file(name, fields, PARTS) for name, fields in contradicting_fields()]
    # Each share is sound by itself, but they are those of two texts.
    two = encode_parts(TEXT[::-1], 2, 4)
    mixed = evolve(PARTS, data=(PARTS.data[0], two.data[1], PARTS.data[2], two.data[3]))
    ueb = pack_fields(describe(mixed))
    shares = dict(enumerate(join(sections, BLOCK_SIZE) for sections in make_sections(mixed, ueb)))
    vectors.append(make_vector("shares of two texts, of either too few", make_cap(mixed, ueb), {
        0: shares[0], 1: shares[1]}, text=None, get="damaged"))  # fmt: skip
    return vectors


def contradicting_fields() -> list[tuple[str, dict[str, bytes]]]:
    """Extension blocks which the cap vouches for and which cannot be."""
    fields = describe(PARTS)
    without_root = {name: value for name, value in fields.items() if name != "share_root_hash"}
    return [
        ("segment size zero", {**fields, "segment_size": b"0"}),
        ("segment size no multiple of k", {**fields, "segment_size": b"97"}),
        ("segment size no number", {**fields, "segment_size": b"many"}),
        ("segment size with 30 digits", {**fields, "segment_size": b"9" * 30}),
        ("size not the cap's", {**fields, "size": b"1"}),
        ("needed shares not the cap's", {**fields, "needed_shares": b"3"}),
        ("share root missing", without_root),
        ("share root cut short", {**fields, "share_root_hash": bytes(31)}),
    ]


def make_damaged_file(name: str, fields: Mapping[str, bytes], parts: Parts) -> dict[str, Any]:
    """A file whose shares all hold this extension block, as its cap says."""
    ueb = pack_fields(fields)
    shares = [join(sections, BLOCK_SIZE) for sections in make_sections(parts, ueb)]
    faults = dict.fromkeys(range(parts.geometry.n), "format")
    return make_vector(name, make_cap(parts, ueb), dict(enumerate(shares)), text=None, faults=faults, get="damaged")


def make_file() -> str:
    """The whole of chk-shares.json."""
    vectors = [*sound_files(), *unusual_files(), *damaged_shares(), *lost_files()]
    data: dict[bytes, int] = {}
    for vector in vectors:
        vector["shares"] = {number: data.setdefault(share, len(data)) for number, share in vector["shares"].items()}
    about = (__doc__ or "").splitlines()[0]
    coded = [base64.b64encode(share).decode() for share in data]
    return json.dumps({"about": about, "vectors": vectors, "shares_data": coded}, indent=1) + "\n"


if __name__ == "__main__":
    PATH.write_text(make_file())
