"""How names and messages are printed, so that nothing in them can be taken for something else. Pure. [spec cli 1.4]"""

from __future__ import annotations

_SPECIAL = {'"': '\\"', "\\": "\\\\", "$": "\\$", "`": "\\`", "\n": "\\n"}


def quote(text: str) -> str:
    """The text between quotes: single ones if that is enough, else double ones with escapes."""
    if text.isprintable() and "'" not in text:
        return f"'{text}'"
    return escaped(text)


def plain(text: str) -> str:
    """The text itself if a terminal shows it as one line of what it is, else as `quote` has it."""
    return text if text.isprintable() else escaped(text)


def encodable(text: str, encoding: str) -> bool:
    """Whether an output of that encoding can show the text."""
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def escaped(text: str) -> str:
    """The text between double quotes; what is not printable, or means something to a shell, as an escape."""
    return '"' + "".join(_escape(character) for character in text) + '"'


def _escape(character: str) -> str:
    if character in _SPECIAL:
        return _SPECIAL[character]
    if character.isprintable() and not 0xD800 <= ord(character) <= 0xDFFF:
        return character
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
