"""Both layouts: the known shares byte for byte, and hostile headers."""

from __future__ import annotations

import hashlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.errors import FormatError, GridError, UnknownVersionError
from grid.mutable.share import mdmf, sdmf
from grid.mutable.share.blocks import SourceRun, VersionHashes, encode_run
from grid.mutable.share.geometry import Geometry
from grid.mutable.share.keys import FileKeys, encrypt_private_key, write_cap
from grid.mutable.share.layout import VersionFields, pack_header, parse_header, plan_table
from grid.mutable.share.offset_table import pack_chain, parse_chain
from grid.mutable.share.prefix import Prefix, checkstring_size, parse_identity, parse_prefix
from grid.ports import ShareNumber
from tests.mutable import known_answers as known
from tests.support.mutable_key import known_key

SHARES = [known.SDMF, known.MDMF]


def make_share(answer: known.KnownShare) -> bytes:
    """The share that the published plaintext, key and salt make, with the published signature."""
    key = known_key()
    keys = FileKeys.of_cap(write_cap(key, answer.version))
    geometry = Geometry.of_file(answer.version, len(known.PLAINTEXT), 1, 3)
    number = ShareNumber(known.SHARE_NUMBER)
    run = encode_run(
        SourceRun(
            geometry=geometry,
            first_segment=0,
            segment_count=1,
            text=known.PLAINTEXT,
            salts=[known.SALT],
            read_key=keys.require_read_key(),
            wanted=frozenset([number]),
        )
    )
    hashes = VersionHashes(geometry)
    hashes.absorb(run)
    prefix = Prefix.of_version(
        geometry, seqnum=known.SEQNUM, root_hash=hashes.finish(), iv=b"" if answer.version else known.SALT
    )
    public_key = key.public_key.der
    fields = VersionFields(
        prefix=prefix,
        table=plan_table(geometry, len(public_key), len(key.der)),
        public_key=public_key,
        signature=bytes.fromhex(answer.signature),
        private_key=encrypt_private_key(key),
    )
    share = bytearray(fields.table.eof)
    writes = [(fields.table.data[0], run.data[number])]
    for offset, data in [*writes, *fields.front_writes(hashes.chain(number), hashes.block_tree(number))]:
        share[offset : offset + len(data)] = data
    return bytes(share)


@pytest.mark.parametrize("answer", SHARES)
def test_share_when_made_of_the_known_file_then_is_the_published_one(answer: known.KnownShare) -> None:
    share = make_share(answer)
    assert len(share) == answer.size
    prefix, table = parse_header(share)
    assert prefix.pack().hex() == answer.prefix
    for (offset, size), data in [
        (table.chain, answer.chain),
        (table.block_tree, answer.tree),
        (table.data, answer.data),
    ]:
        assert share[offset : offset + size].hex() == data
    assert hashlib.sha256(share).hexdigest() == answer.sha256


@pytest.mark.parametrize("answer", SHARES)
def test_signature_when_of_the_known_share_then_is_the_keys(answer: known.KnownShare) -> None:
    public_key = known_key().public_key
    public_key.verify(bytes.fromhex(answer.signature), bytes.fromhex(answer.prefix))


@pytest.mark.parametrize("answer", SHARES)
def test_header_when_parsed_then_packs_to_the_same_bytes(answer: known.KnownShare) -> None:
    share = make_share(answer)
    prefix, table = parse_header(share)
    header = pack_header(prefix, table)
    assert share.startswith(header)
    assert prefix.checkstring == share[: checkstring_size(answer.version)]
    assert parse_identity(share) == prefix.order == (3, prefix.root_hash)
    packed = struct.unpack(">LLLLQQ", share[75:107]) if not answer.version else struct.unpack(">8Q", share[59:123])
    assert packed == answer.offsets


@pytest.mark.parametrize("answer", SHARES)
def test_header_when_cut_anywhere_then_is_refused(answer: known.KnownShare) -> None:
    header_size = mdmf.HEADER_SIZE if answer.version else sdmf.HEADER_SIZE
    share = make_share(answer)
    for length in range(header_size):
        with pytest.raises(FormatError):
            parse_header(share[:length])
    parse_header(share[:header_size] + b"junk")


@given(answer=st.sampled_from(SHARES), place=st.integers(0, 7), value=st.integers(0, 2**64 - 1))
def test_header_when_an_offset_lies_then_is_refused_or_keeps_every_size(
    answer: known.KnownShare, place: int, value: int
) -> None:
    share = bytearray(make_share(answer)[:123])
    if answer.version:
        struct.pack_into(">Q", share, 59 + 8 * place, value)
    elif place < 4:
        struct.pack_into(">L", share, 75 + 4 * place, value % 2**32)
    else:
        struct.pack_into(">Q", share, 91 + 8 * (place % 2), value)
    try:
        prefix, table = parse_header(share)
    except FormatError:
        return
    geometry = prefix.geometry
    assert table.block_tree[1] == geometry.tree_size and table.data[1] >= geometry.data_size
    assert max(table.public_key[1], table.private_key[1]) <= 8192 and table.signature[1] == 256
    assert max(sum(wanted) for wanted in (table.chain, table.data, table.signature)) <= table.eof


@given(st.binary(max_size=200))
def test_header_when_it_is_noise_then_is_refused_as_such(noise: bytes) -> None:
    for data in (noise, b"\0" + noise, b"\1" + noise):
        try:
            parse_header(data)
        except GridError as error:
            assert isinstance(error, FormatError)


def test_prefix_when_of_another_version_then_says_so() -> None:
    for version in (2, 3, 255):
        with pytest.raises(UnknownVersionError):
            parse_prefix(bytes([version]) + bytes(100))
        assert parse_identity(bytes([version]) + bytes(100)) is None


def test_prefix_when_the_sequence_numbers_are_used_up_then_refuses() -> None:
    geometry = Geometry.of_file(0, 1, 1, 1)
    last = Prefix.of_version(geometry, seqnum=2**64 - 1, root_hash=bytes(32), iv=bytes(16))
    assert parse_prefix(last.pack()).seqnum == 2**64 - 1
    for seqnum in (0, 2**64):
        with pytest.raises(FormatError):
            Prefix.of_version(geometry, seqnum=seqnum, root_hash=bytes(32), iv=bytes(16))


def test_chain_when_packed_then_ascends_and_parses_in_any_order() -> None:
    nodes = {9: b"9" * 32, 1: b"1" * 32, 500: b"5" * 32}
    packed = pack_chain(nodes)
    assert [int.from_bytes(packed[i : i + 2]) for i in (0, 34, 68)] == [1, 9, 500]
    assert parse_chain(packed) == parse_chain(packed[68:] + packed[:68]) == nodes
    for bad in (packed[:-1], packed + b"x", bytes(34 * 513)):
        with pytest.raises(FormatError):
            parse_chain(bad)


def test_mdmf_table_when_the_keys_are_too_long_then_refuses() -> None:
    geometry = Geometry.of_file(1, 5, 1, 255)
    assert mdmf.plan_table(geometry, 294, 1220).data[0] == 2167
    with pytest.raises(FormatError):
        mdmf.plan_table(geometry, 294, 1300)
