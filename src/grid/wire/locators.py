"""FURLs and NURLs: where an object is, which key its server must have, and the secret that grants access. Pure.

The swissnum is a capability: no repr and no error message contains it. [spec wire 1, 12]
"""

from __future__ import annotations

import ipaddress
import re

from grid.codec import base32
from grid.errors import FormatError
from grid.limits import MAX_FURL_LENGTH, MAX_LOCATION_HINTS
from grid.values import field, frozen

TUB_ID_LENGTH = 32

_FURL = re.compile(r"pb://([^@]+)@([^/]*)/(.+)", re.DOTALL)
_NURL = re.compile(r"(pb|pb\+tor)://([^@/#]+)@([^/#]+)/([^#]+)#(.*)", re.DOTALL)
_SPKI = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
_HINT_PART = re.compile(r"[\x21-\x2b\x2d\x2e\x30-\x7e]+", re.ASCII)
_NAME = re.compile(r"[\x21-\x7e]+", re.ASCII)
_PORT = re.compile(r"[0-9]{1,5}", re.ASCII)
_TCP_HINT = re.compile(r"(?:tcp:)?([^:]*|\[[^\]]*\]):[0-9]+", re.ASCII)

MAX_HOST_LENGTH = 253
MAX_LABEL_LENGTH = 63
"""Most characters of a host name's label, as in the DNS; no resolver accepts more."""


@frozen(kw_only=True)
class Furl:
    """A Foolscap address: the TubID (32 base32 characters), location hints, and the object's secret name."""

    tub_id: str
    hints: tuple[str, ...] = ()
    swissnum: str = field(repr=False)

    def to_string(self) -> str:
        """The text form; parse_furl is its inverse."""
        return f"pb://{self.tub_id}@{','.join(self.hints)}/{self.swissnum}"

    @property
    def node_id(self) -> bytes:
        """The 20 bytes that the TubID encodes, for which lease secrets are derived. [spec storage-server 5]"""
        return base32.decode(self.tub_id)


@frozen(kw_only=True)
class Nurl:
    """An HTTPS storage address: hash of the server's key (43 characters), host, port, secret name."""

    spki_hash: str
    host: str
    port: int
    swissnum: str = field(repr=False)
    over_tor: bool = False

    def to_string(self) -> str:
        """The text form; parse_nurl is its inverse."""
        scheme = "pb+tor" if self.over_tor else "pb"
        return f"{scheme}://{self.spki_hash}@{self.host}:{self.port}/{self.swissnum}#v=1"


def parse_furl(text: str) -> Furl:
    """Parse a FURL; FormatError. Anything after the TubID's 32nd character is ignored. [spec wire 1]"""
    _require_short(text, "FURL")
    match = _FURL.fullmatch(text)
    if match is None:
        raise FormatError("not a FURL: expected pb: and two slashes, then TUBID@HINTS/NAME")
    tub_id = match[1][:TUB_ID_LENGTH].lower()
    if len(tub_id) != TUB_ID_LENGTH:
        raise FormatError("not a FURL: the TubID must have 32 base32 characters")
    base32.decode(tub_id)
    hints = tuple(match[2].split(",")) if match[2] else ()
    if len(hints) > MAX_LOCATION_HINTS:
        raise FormatError(f"a FURL with {len(hints)} location hints; at most {MAX_LOCATION_HINTS} are accepted")
    if not all(_HINT_PART.fullmatch(hint) for hint in hints):
        raise FormatError("not a FURL: a location hint is empty or has characters that no hint may have")
    if not all(_may_be_host(tcp[1]) for tcp in map(_TCP_HINT.fullmatch, hints) if tcp is not None):
        raise FormatError("not a FURL: a location hint has an impossible host name")
    if _NAME.fullmatch(match[3]) is None:
        raise FormatError("not a FURL: the name has characters that no name may have")
    return Furl(tub_id=tub_id, hints=hints, swissnum=match[3])


def parse_nurl(text: str) -> Nurl:
    """Parse a NURL of version 1; FormatError. [spec wire 12]"""
    _require_short(text, "NURL")
    match = _NURL.fullmatch(text)
    if match is None:
        raise FormatError("not a NURL: expected pb: and two slashes, then HASH@HOST:PORT/NAME#v=1")
    if match[5] != "v=1":
        raise FormatError("a NURL of a version other than 1")
    if _SPKI.fullmatch(match[2]) is None:
        raise FormatError("not a NURL: the key hash must have 43 base64url characters")
    host, separator, port = match[3].rpartition(":")
    if not separator or _HINT_PART.fullmatch(host) is None or _PORT.fullmatch(port) is None:
        raise FormatError("not a NURL: expected HOST:PORT after the @")
    if not _may_be_host(host):
        raise FormatError("not a NURL: no host can have that name")
    if not 0 < int(port) < 65536 or port != str(int(port)):
        raise FormatError("not a NURL: the port must be 1 to 65535")
    if _NAME.fullmatch(match[4]) is None:
        raise FormatError("not a NURL: the name has characters that no name may have")
    return Nurl(spki_hash=match[2], host=host, port=int(port), swissnum=match[4], over_tor=match[1] == "pb+tor")


def _may_be_host(host: str) -> bool:
    """Whether it is an address, or a name that a resolver would look up. `::1` without brackets is accepted, too."""
    if ":" in host:
        try:
            ipaddress.IPv6Address(host.removeprefix("[").removesuffix("]"))
        except ValueError:
            return False
        return True
    name = host.removesuffix(".")
    return len(name) <= MAX_HOST_LENGTH and all(0 < len(label) <= MAX_LABEL_LENGTH for label in name.split("."))


def _require_short(text: str, kind: str) -> None:
    if len(text) > MAX_FURL_LENGTH:
        raise FormatError(f"a {kind} of {len(text)} characters; at most {MAX_FURL_LENGTH} are accepted")
