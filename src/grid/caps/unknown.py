"""A directory's child of an unknown kind: the texts of its two slots for capabilities. [spec caps 9]

Owns the rule for keeping future caps without granting more than the user who stored them intended.
"""

from __future__ import annotations

from grid.caps.parsing import IMMUTABLE_PREFIX, READ_PREFIX, parse_cap
from grid.caps.values import UnknownCap
from grid.errors import CapError, MustBeDeepImmutableError, UnknownWriteCapError
from grid.values import field, frozen


@frozen(kw_only=True)
class UnknownChild:
    """A child of an unknown kind.

    write, read: the contents of its slots, with the prefixes `ro.` and `imm.` that say what is known of them; None
    if empty. error: why it can be neither used nor stored again; both slots are empty then.
    """

    write: bytes | None = field(default=None, repr=False)
    read: bytes | None = field(default=None, repr=False)
    error: CapError | None = field(default=None, eq=False)

    def stored_read(self, *, deep_immutable: bool) -> bytes:
        """The contents of the read slot as a directory stores them: without the prefix that the slot implies."""
        read = (self.read or b"").removeprefix(READ_PREFIX)
        return read.removeprefix(IMMUTABLE_PREFIX) if deep_immutable else read


def settle_unknown_child(write: bytes | None, read: bytes | None, *, deep_immutable: bool = False) -> UnknownChild:
    """What to keep of a child with these slots, if they do not hold a known cap.

    deep_immutable: whether the directory is immutable. Raises nothing: errors are in the value.
    """
    slots = _settle(write or None, read or None, deep_immutable)
    if slots.read is not None:
        parsed = parse_cap(slots.read, deep_immutable=deep_immutable)
        if isinstance(parsed, UnknownCap) and parsed.error is not None:
            return UnknownChild(error=parsed.error)
    return slots


def _settle(write: bytes | None, read: bytes | None, deep_immutable: bool) -> UnknownChild:
    if write is not None and read is not None:
        if deep_immutable or read.startswith(IMMUTABLE_PREFIX):
            return UnknownChild(
                error=MustBeDeepImmutableError(
                    "an immutable child of an unknown kind cannot come with a write capability"
                )
            )
        return UnknownChild(write=write, read=_with_prefix(read, READ_PREFIX))
    if write is not None:
        if write.startswith(IMMUTABLE_PREFIX) or (write.startswith(READ_PREFIX) and not deep_immutable):
            return UnknownChild(read=write)
        return UnknownChild(
            error=UnknownWriteCapError(
                "a write capability of an unknown kind needs its read capability, or a prefix ro. or imm."
            )
        )
    if read is None or read.startswith(IMMUTABLE_PREFIX):
        return UnknownChild(read=read)
    if deep_immutable:
        return UnknownChild(read=_with_prefix(read.removeprefix(READ_PREFIX), IMMUTABLE_PREFIX))
    return UnknownChild(read=_with_prefix(read, READ_PREFIX))


def _with_prefix(text: bytes, prefix: bytes) -> bytes:
    return text if text.startswith(prefix) else prefix + text
