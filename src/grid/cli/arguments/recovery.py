"""The file of `grid alias export`: what leads to a client's directories, encrypted with a passphrase.

The format is age (age-encryption.org), so `age --decrypt` opens the file without Grid. The plaintext is JSON: aliases,
introducers, numbers of shares, and the servers that the introducers announced. Versions that know only the first two
ignore the rest, and files without it are read. A recovery sheet is a printable text that contains the same file. All
input is validated.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from attrs import evolve, field

from grid.caps import DirectoryCap
from grid.cli.arguments.aliases import alias_cap, check_new_name
from grid.discovery.announcement import Announcement
from grid.discovery.server_files import pack_entry, parse_entries
from grid.errors import ConfigError, FormatError, GridError
from grid.limits import MAX_SHARES
from grid.values import frozen
from grid.wire.locators import parse_furl

MAX_FILE = 4 * 2**20
MAX_ALIASES = 10_000
MAX_INTRODUCERS = 100
MAX_SERVERS_SIZE = 2**20
"""Bytes of JSON for the servers: room for more than a thousand."""

_LEFT_OUT = ("app-versions", "my-version", "nonce", "oldest-supported", "version")
"""Fields of announcements that nobody needs to reach a server: each would be typed from a printed page."""

_FORMAT = "grid-recovery"
_BEGIN, _END = "-----BEGIN AGE ENCRYPTED FILE-----", "-----END AGE ENCRYPTED FILE-----"

_SHEET = """\
RECOVERY SHEET OF A GRID CLIENT                                    {date}

With this page and its passphrase, you can reach your directories again from any machine. Without
both of them, nobody can. Keep this page with your documents, and the passphrase somewhere else.

Directories: {names}

To recover:
  1. Install Grid with its extra `recovery`.
  2. Type or scan the lines below, from BEGIN to END, into a file, say sheet.txt.
  3. Run:  grid alias import sheet.txt
     It creates the client directory if there is none, and brings back the names above.
  To see the contents without Grid, give age those lines, and nothing above or below them:
     sed -n '/BEGIN AGE/,/END AGE/p' sheet.txt | age --decrypt

{armored}

Passphrase hint: ______________________________________________________________________
"""


@frozen(kw_only=True)
class Recovery:
    """aliases: capabilities by name. introducers: the FURLs of the grid's introducers. encoding: needed, happy and total;
    None if unknown. servers: what the introducers announced last, by their FURLs.
    """

    aliases: Mapping[str, DirectoryCap] = field(repr=False)
    introducers: Sequence[str] = field(default=(), repr=False)
    encoding: tuple[int, int, int] | None = None
    servers: Mapping[str, Sequence[Announcement]] = field(factory=dict, repr=False)

    @property
    def server_count(self) -> int:
        """The number of servers of all introducers."""
        return sum(map(len, self.servers.values()))


def pack_recovery(recovery: Recovery) -> bytes:
    """Serialize to JSON; of the servers, as many as fit MAX_SERVERS_SIZE."""
    value: dict[str, object] = {
        "format": _FORMAT,
        "version": 1,
        "aliases": {name: cap.to_string() for name, cap in recovery.aliases.items()},
        "introducers": list(recovery.introducers),
    }
    if recovery.encoding is not None:
        value["encoding"] = dict(zip(_NUMBERS, recovery.encoding, strict=True))
    if recovery.servers:
        value["servers"] = _pack_servers(recovery.servers)
    return json.dumps(value, indent=1).encode("ascii")


def parse_recovery(data: bytes) -> Recovery:
    """Parse the JSON; FormatError, which quotes nothing of it."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        raise FormatError("the file was decrypted, but holds no aliases of Grid") from None
    match value:
        case {"format": "grid-recovery", "version": 1, "aliases": dict(aliases), "introducers": list(furls)}:
            if len(aliases) > MAX_ALIASES:
                raise FormatError(f"the file has more than {MAX_ALIASES} aliases")
            if len(furls) > MAX_INTRODUCERS:
                raise FormatError(f"the file has more than {MAX_INTRODUCERS} introducers")
            found = {}
            for name, cap in aliases.items():
                try:
                    found[check_new_name(name, {})] = alias_cap(name, cap if isinstance(cap, str) else "")
                except GridError:
                    raise FormatError("the file contains an invalid alias") from None
            return Recovery(
                aliases=found,
                introducers=[_furl(furl) for furl in furls],
                encoding=_encoding(value.get("encoding")),
                servers=_parse_servers(value.get("servers", [])),
            )
    raise FormatError("the file was decrypted, but holds no aliases of this version of Grid")


def encrypt(data: bytes, passphrase: str) -> str:
    """Encrypt to an armored age file; takes about a second."""
    text: bytes = _age().passphrase.encrypt(data, passphrase, armored=True)
    return text.decode("ascii")


def decrypt(data: bytes, passphrase: str) -> bytes:
    """Decrypt an age file, or a text that contains one; GridError if there is none or the passphrase is wrong."""
    age = _age()
    text = data.decode("utf-8", "replace")
    if _BEGIN in text and _END in text:
        # Lines typed from a printed sheet may be indented.
        lines = text[text.index(_BEGIN) : text.index(_END) + len(_END)].splitlines()
        data = "\n".join(line.strip() for line in lines).encode("ascii", "replace") + b"\n"
    elif not data.startswith(b"age-encryption.org/"):
        raise FormatError("this file was not written by `grid alias export`")
    try:
        found: bytes = age.passphrase.decrypt(data, passphrase)
    except age.DecryptError as error:
        if "work" in str(error):
            raise GridError("this machine is too slow, or too busy, to try the passphrase: try again later") from None
        raise GridError("the passphrase is wrong, or the file is damaged") from None
    return found


def make_sheet(armored: str, names: Sequence[str], date: str) -> str:
    """A printable page with the encrypted file. The names of the aliases appear on it in clear."""
    shown = ", ".join(f"{name}:" for name in names) or "none"
    return _SHEET.format(date=date, names=shown, armored=armored.strip())


_NUMBERS = ("needed", "happy", "total")


def _encoding(value: object) -> tuple[int, int, int] | None:
    if value is None:
        return None
    if isinstance(value, dict):
        numbers = [number for number in map(value.get, _NUMBERS) if type(number) is int]
        match numbers:
            case [needed, happy, total] if 1 <= needed <= total <= MAX_SHARES and 1 <= happy <= total:
                return needed, happy, total
    raise FormatError("the file contains invalid numbers of shares")


def _pack_servers(servers: Mapping[str, Sequence[Announcement]]) -> list[dict[str, object]]:
    packed: list[dict[str, object]] = []
    left = MAX_SERVERS_SIZE
    for furl, announcements in servers.items():
        entries = []
        for each in announcements:
            fields = {name: value for name, value in each.fields.items() if name not in _LEFT_OUT}
            entry = pack_entry(evolve(each, fields=fields))
            # As deep as it is in the file, where the lines of some entries take nine times their JSON.
            size = len(json.dumps([[[[entry]]]], indent=1))
            if size <= left:
                entries.append(entry)
                left -= size
        packed.append({"introducer": furl, "announcements": entries})
    return packed


def _parse_servers(value: object) -> dict[str, list[Announcement]]:
    """The servers by introducer. Those that this version cannot use are skipped, as in a cache."""
    found = {}
    if not isinstance(value, list) or len(value) > MAX_ALIASES:
        raise FormatError("the file contains an invalid list of servers")
    for each in value:
        match each:
            case {"introducer": furl, "announcements": list(entries)}:
                found[_furl(furl)] = parse_entries(entries)
            case _:
                raise FormatError("the file contains an invalid list of servers")
    return found


def _furl(value: object) -> str:
    try:
        if isinstance(value, str):
            parse_furl(value)
            return value
    except FormatError:
        pass
    raise FormatError("the file contains an invalid introducer FURL")


def _age() -> Any:  # noqa: ANN401
    try:
        return import_module("pyrage")
    except ImportError:
        words = "install Grid again with its extra: pipx install --force '.[recovery]'"
        raise ConfigError(f"encryption needs the package pyrage: {words}") from None
