"""The file of `grid alias export`: a client directory's aliases and introducers, encrypted with a passphrase.

The format is age (age-encryption.org), so `age --decrypt` opens the file without Grid. The plaintext is JSON. A
recovery sheet is a printable text that contains the same file. All input is validated.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from attrs import field, frozen

from grid.caps import DirectoryCap
from grid.cli.arguments.aliases import alias_cap, check_new_name
from grid.errors import ConfigError, FormatError, GridError
from grid.wire.locators import parse_furl

MAX_FILE = 4 * 2**20
MAX_ALIASES = 10_000
_FORMAT = "grid-recovery"
_BEGIN, _END = "-----BEGIN AGE ENCRYPTED FILE-----", "-----END AGE ENCRYPTED FILE-----"

_SHEET = """\
RECOVERY SHEET OF A GRID CLIENT                                    {date}

With this page and its passphrase, you can reach your directories again from any machine. Without
both of them, nobody can. Keep this page with your documents, and the passphrase somewhere else.

Directories: {names}

To recover:
  1. Install Grid, and type or scan the lines below, from BEGIN to END, into a file, say sheet.txt.
  2. Create a client directory:  grid create client --introducer FURL ~/.grid
     The FURL of your grid is in the file:  age --decrypt sheet.txt
  3. Bring back the names:  grid alias import sheet.txt

{armored}

Passphrase hint: ______________________________________________________________________
"""


@frozen(kw_only=True)
class Recovery:
    """aliases: capabilities by name. introducers: the FURLs of the grid's introducers."""

    aliases: Mapping[str, DirectoryCap] = field(repr=False)
    introducers: Sequence[str] = field(default=(), repr=False)


def pack_recovery(recovery: Recovery) -> bytes:
    """Serialize to JSON."""
    value = {
        "format": _FORMAT,
        "version": 1,
        "aliases": {name: cap.to_string() for name, cap in recovery.aliases.items()},
        "introducers": list(recovery.introducers),
    }
    return json.dumps(value, indent=1).encode("ascii")


def parse_recovery(data: bytes) -> Recovery:
    """Parse the JSON; FormatError, which quotes nothing of it."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        raise FormatError("the file was decrypted, but holds no aliases of Grid") from None
    match value:
        case {"format": "grid-recovery", "version": 1, "aliases": dict(aliases), "introducers": list(furls)}:
            if len(aliases) > MAX_ALIASES or len(furls) > MAX_ALIASES:
                raise FormatError(f"the file has more than {MAX_ALIASES} aliases")
            found = {}
            for name, cap in aliases.items():
                try:
                    found[check_new_name(name, {})] = alias_cap(name, cap if isinstance(cap, str) else "")
                except GridError:
                    raise FormatError("the file contains an invalid alias") from None
            return Recovery(aliases=found, introducers=[_furl(furl) for furl in furls])
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
