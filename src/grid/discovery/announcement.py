"""Signed announcements: packs, parses, verifies them, and decides which of two to keep. Pure.

A message is signed as bytes, and passed on verbatim. Its contents are only the signer's claims:
a signature proves nothing but who signed. [spec wire 7-9]
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

from attrs import evolve

from grid.codec import base32
from grid.codec.key_text import pack_bare_key, pack_signature, parse_bare_key, parse_signature
from grid.crypto.ed25519 import SigningKey, VerifyingKey
from grid.errors import FormatError
from grid.limits import MAX_ANNOUNCEMENT_SIZE, MAX_FURL_LENGTH, MAX_LOCATION_HINTS
from grid.placement.order import permutation_seed
from grid.ports import ServerId, ServerIdentity
from grid.values import frozen
from grid.wire.http.format.announced import NURLS_FIELD, PLAIN_FIELD
from grid.wire.locators import Furl, parse_furl

STORAGE_SERVICE = "storage"
_HTTP_FIELDS = (NURLS_FIELD, PLAIN_FIELD)
KEY_PREFIX = b"v0-"
MAX_NICKNAME = 200
MAX_JSON_DEPTH = 20


Address = tuple[str, str]
"""A TubID, and the secret name of the storage server in that Tub."""


@frozen
class SignedAnnouncement:
    """The three byte strings on the wire: the JSON message, its signature, and the signer's key."""

    message: bytes
    signature: bytes
    key: bytes

    def to_tuple(self) -> tuple[bytes, bytes, bytes]:
        """The form on the wire."""
        return self.message, self.signature, self.key


@frozen(kw_only=True)
class Announcement:
    """A signer's claims about one service. server_id: the key's text; fields: the JSON object with unknown fields included."""

    server_id: ServerId
    service_name: str
    fields: Mapping[str, Any]
    signed: SignedAnnouncement | None = None

    @property
    def seqnum(self) -> int | None:
        """The sequence number, if it is an integer."""
        value = self.fields.get("seqnum")
        return value if type(value) is int else None

    @property
    def nickname(self) -> str:
        """The server's name for itself, shortened and printable."""
        value = self.fields.get("nickname")
        text = value if isinstance(value, str) else ""
        return "".join(character if character.isprintable() else "?" for character in text[:MAX_NICKNAME])


def parse_signed(value: object) -> SignedAnnouncement:
    """Parse a value from the wire; FormatError if it is malformed or too long. Proves nothing."""
    if not isinstance(value, tuple) or len(value) != 3 or not all(isinstance(part, bytes) for part in value):
        raise FormatError("an announcement is three byte strings")
    message, signature, key = value
    if len(message) > MAX_ANNOUNCEMENT_SIZE:
        raise FormatError(f"an announcement of {len(message)} bytes; at most {MAX_ANNOUNCEMENT_SIZE} are accepted")
    if not signature.startswith(KEY_PREFIX) or not key.startswith(KEY_PREFIX):
        raise FormatError("an announcement whose signature or key is not of version 0")
    return SignedAnnouncement(message, signature, key)


def verify(signed: SignedAnnouncement) -> Announcement:
    """Verify and parse; IntegrityError if the signature is wrong, FormatError if the message is not an announcement."""
    key, signature = _ascii(signed.key), _ascii(signed.signature)
    parse_bare_key(key).verify(parse_signature(signature), signed.message)
    return parse_fields(ServerId(key), _parse_json(signed.message), signed)


def parse_fields(server_id: ServerId, fields: object, signed: SignedAnnouncement | None = None) -> Announcement:
    """Make an announcement from a JSON object, signed or from a local file; FormatError if it names no service."""
    if not isinstance(fields, dict) or not all(isinstance(key, str) for key in fields):
        raise FormatError("an announcement is a JSON object")
    service_name = fields.get("service-name", STORAGE_SERVICE if signed is None else None)
    if not isinstance(service_name, str):
        raise FormatError("an announcement without a service name")
    return Announcement(server_id=server_id, service_name=service_name, fields=fields, signed=signed)


def sign(fields: Mapping[str, Any], key: SigningKey) -> SignedAnnouncement:
    """Sign an announcement with these fields."""
    message = json.dumps(fields, sort_keys=True).encode()
    signature, public_key = pack_signature(key.sign(message)), pack_bare_key(key.verifying_key)
    return SignedAnnouncement(message, signature.encode(), public_key.encode())


def server_id_of(key: VerifyingKey) -> ServerId:
    """The id of the server that signs with that key."""
    return ServerId(pack_bare_key(key))


def replaces(new: Announcement, kept: Announcement | None) -> bool:
    """Whether the new announcement replaces the kept one for the same service and key. [spec wire 9]"""
    if kept is None:
        return True
    if new.fields == kept.fields:
        return False
    if kept.seqnum is None:
        return True
    return new.seqnum is not None and new.seqnum > kept.seqnum


def storage_fields(
    *,
    nickname: str,
    version: str,
    seqnum: int,
    nonce: bytes,
    furl: str | None,
    nurls: tuple[str, ...] = (),
    plaintext_reads: tuple[str, ...] = (),
    permutation_seed_base32: str | None = None,
    certificates: tuple[Mapping[str, str], ...] = (),
) -> dict[str, Any]:
    """The fields of a storage server's announcement. [spec wire 8.1]

    nonce: 32 unpredictable bytes, new each time. plaintext_reads: hints for unencrypted reads of shares.
    """
    fields: dict[str, Any] = {
        "version": 0,
        "service-name": STORAGE_SERVICE,
        "nickname": nickname,
        "app-versions": [],
        "my-version": version,
        "oldest-supported": "1.0.0",
        "seqnum": seqnum,
        "nonce": base32.encode(nonce),
    }
    if furl is not None:
        fields["anonymous-storage-FURL"] = furl
    if nurls:
        fields[NURLS_FIELD] = list(nurls)
    if plaintext_reads:
        fields[PLAIN_FIELD] = list(plaintext_reads)
    if permutation_seed_base32 is not None:
        fields["permutation-seed-base32"] = permutation_seed_base32
    if certificates:
        fields["grid-manager-certificates"] = [dict(certificate) for certificate in certificates]
    return fields


def storage_furl(announcement: Announcement) -> Furl:
    """The storage server's FURL; FormatError if the announcement has none. [spec wire 8.1]"""
    text = announcement.fields.get("anonymous-storage-FURL")
    if not isinstance(text, str):
        raise FormatError("an announcement without a storage FURL")
    return parse_furl(text)


def address_of(announcement: Announcement) -> Address:
    """Identifies the storage server, whatever keys announce it; FormatError as in storage_furl."""
    furl = storage_furl(announcement)
    return furl.tub_id, furl.swissnum


def merge_addresses(announcements: Sequence[Announcement]) -> Announcement:
    """Merge announcements of one server: the first one, with the location hints of all of them.

    If their HTTP addresses differ, the result has none: only those of the FURL prove that they lead to this server.
    """
    first, *others = announcements
    if not others:
        return first
    furl = storage_furl(first)
    rows = zip_longest(*(storage_furl(each).hints for each in announcements))
    hints: dict[str, None] = {}
    for hint in (hint for row in rows for hint in row if hint is not None):
        longer = evolve(furl, hints=(*hints, hint))
        if len(hints) < MAX_LOCATION_HINTS and len(longer.to_string()) <= MAX_FURL_LENGTH:
            hints[hint] = None
    differing = [
        name for name in _HTTP_FIELDS if any(each.fields.get(name) != first.fields.get(name) for each in others)
    ]
    fields = {name: value for name, value in first.fields.items() if name not in differing}
    fields["anonymous-storage-FURL"] = evolve(furl, hints=tuple(hints)).to_string()
    return evolve(first, fields=fields)


def identify(announcement: Announcement, upload_permit_expires: float) -> ServerIdentity:
    """The identity of the storage server; FormatError if its FURL or permutation seed is malformed."""
    seed = announcement.fields.get("permutation-seed-base32")
    if seed is not None and not isinstance(seed, str):
        raise FormatError("an announcement whose permutation seed is not text")
    return ServerIdentity(
        server_id=announcement.server_id,
        nickname=announcement.nickname,
        permutation_seed=permutation_seed(announcement.server_id, seed),
        lease_seed=storage_furl(announcement).node_id,
        upload_permit_expires=upload_permit_expires,
    )


def parse_announcement(value: object) -> Announcement:
    """Call parse_signed and verify; FormatError or IntegrityError."""
    return verify(parse_signed(value))


def _ascii(text: bytes) -> str:
    try:
        return text.decode("ascii")
    except UnicodeDecodeError:
        raise FormatError("an announcement whose signature or key is not ASCII") from None


def _parse_json(message: bytes) -> object:
    try:
        value: object = json.loads(message.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise FormatError("an announcement that is not JSON in UTF-8") from error
    if not _is_shallow(value, MAX_JSON_DEPTH):
        raise FormatError(f"an announcement nested deeper than {MAX_JSON_DEPTH} levels")
    return value


def _is_shallow(value: object, levels: int) -> bool:
    if isinstance(value, dict):
        return levels > 0 and all(_is_shallow(item, levels - 1) for item in value.values())
    if isinstance(value, list):
        return levels > 0 and all(_is_shallow(item, levels - 1) for item in value)
    return True
