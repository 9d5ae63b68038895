"""Foolscap's broker, but each token goes to the transport in one piece.

Foolscap writes each digit of a token's number, its type, and its body by themselves: about ninety writes for a small read,
all of which the transport then joins again. The bytes are the same. [spec wire 2]
"""

from __future__ import annotations

from typing import Any

from foolscap.broker import Broker
from foolscap.tokens import CLOSE, INT, OPEN, STRING, VOCAB

_LONG_STRING = 4096
"""Longer strings follow their head without being copied."""

_MAX_INT = 2**31
"""Larger numbers, and negative ones, have tokens of other types."""

_DIGITS = tuple(bytes([digit]) for digit in range(128))


def pack_head(number: int, kind: bytes) -> bytes:
    """A number of at least 0 in base 128, the lowest digit first, and the type of the token that it begins."""
    if number < 128:
        return _DIGITS[number] + kind
    digits = bytearray()
    while number:
        digits.append(number & 127)
        number >>= 7
    return bytes(digits) + kind


class TokenBroker(Broker):
    """A broker that writes whole tokens."""

    openCount: int  # noqa: N815 - the name is Foolscap's

    def sendOpen(self) -> int:
        """Begin a sequence and return its number."""
        number = self.openCount
        self.openCount = number + 1
        self.transport.write(pack_head(number, OPEN))
        return number

    def sendClose(self, openID: int) -> None:  # noqa: N803 - the name is Foolscap's
        """End the sequence of that number."""
        self.transport.write(pack_head(openID, CLOSE))

    def sendToken(self, token: Any) -> None:
        """Send a number or a string."""
        if type(token) is bytes:
            size = len(token)
            if size > _LONG_STRING:
                # Foolscap would look up the whole string in its table of abbreviations.
                self.transport.write(pack_head(size, STRING))
                self.transport.write(token)
            elif token in self.outgoingVocabulary:
                self.transport.write(pack_head(self.outgoingVocabulary[token], VOCAB))
            else:
                self.transport.write(pack_head(size, STRING) + token)
        elif type(token) is int and 0 <= token < _MAX_INT:
            self.transport.write(pack_head(token, INT))
        else:
            super().sendToken(token)
