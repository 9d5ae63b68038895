"""Quotes names and messages so that nothing in them can be mistaken for something else. Pure. [spec cli 1.4]"""

from __future__ import annotations

_SPECIAL = {'"': '\\"', "\\": "\\\\", "$": "\\$", "`": "\\`", "\n": "\\n"}


def quote(text: str) -> str:
    """Quote the text: with single quotes if possible, else with double quotes and escapes."""
    if text.isprintable() and "'" not in text:
        return f"'{text}'"
    return escaped(text)


def plain(text: str) -> str:
    """The text itself if it is safe on one line of a terminal, else quoted as by `quote`."""
    return text if text.isprintable() else escaped(text)


def encodable(text: str, encoding: str) -> bool:
    """Whether an output of this encoding can show the text."""
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def escaped(text: str) -> str:
    """The text in double quotes, with escapes for unprintable characters and those special to a shell."""
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
