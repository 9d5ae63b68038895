"""Invitations: the two messages with which one node gives another what it needs to join a grid, and their code. Pure.

Each side introduces itself by what it can do; then the inviter sends the settings. Whatever arrives is from a stranger until
it is parsed: a code may have been guessed. The FURL is a secret: no repr and no error message contains it. [spec cli 4.4]
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from grid.errors import FormatError
from grid.limits import MAX_INVITATION_SIZE, MAX_NICKNAME_LENGTH, MAX_SHARES
from grid.values import field, frozen
from grid.wire.locators import Furl, parse_furl

APPLICATION = "tahoe-lafs.org/invite"
"""What separates these meetings from those of other programs at the same server."""

INVITER = "server-v1"
JOINER = "client-v1"
"""What each side says that it can do."""

DEFAULT_SERVER = "ws://wormhole.tahoe-lafs.org:4000/v1"

MAX_CODE_LENGTH = 100
MAX_SERVER_LENGTH = 1000

_CODE = re.compile(r"[0-9]{1,9}(?:-[!-,.-~]+)+", re.ASCII)
_PRINTABLE = re.compile(r"[!-~]+", re.ASCII)
_WHOLE = re.compile(r"[0-9]{1,3}", re.ASCII)


@frozen(kw_only=True)
class Invitation:
    """What a new node gets: its nickname, the introducer, how many shares a file has, how many restore it, and how many servers
    must take some.
    """

    nickname: str
    introducer: Furl = field(repr=False)
    needed: int
    happy: int
    total: int


def parse_code(text: str) -> str:
    """The code as the other side shows it; FormatError. Capitals, and spaces in place of hyphens, are corrected."""
    code = "-".join(text.split()).lower()
    if len(code) > MAX_CODE_LENGTH or _CODE.fullmatch(code) is None:
        raise FormatError("not an invitation code: expected a number and words with hyphens, as in 7-guitarist-revenge")
    return code


def parse_server(text: str) -> str:
    """The address of a server of magic-wormhole; FormatError."""
    problem = FormatError("not the address of a wormhole server: expected ws://HOST:PORT/v1, or wss:// for TLS")
    if len(text) > MAX_SERVER_LENGTH or _PRINTABLE.fullmatch(text) is None:
        raise problem
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise problem from None
    if parts.scheme not in ("ws", "wss") or not parts.hostname or port == 0 or "@" in parts.netloc or parts.fragment:
        raise problem
    if parts.scheme == "wss" and ":" in parts.hostname:
        raise FormatError("a wormhole server with TLS is named by its host name, since its certificate is")
    return text


def pack_introduction(ability: str) -> bytes:
    """The first message of a side. ability: INVITER or JOINER."""
    return json.dumps({"abilities": {ability: {}}}).encode("ascii")


def require_ability(message: bytes, ability: str) -> None:
    """Raise FormatError unless this is the first message of a side with that ability."""
    abilities = _parse_object(message).get("abilities")
    if not isinstance(abilities, Mapping) or ability not in abilities:
        other = "does not invite" if ability == INVITER else "does not join"
        raise FormatError(f"the other side {other}: it lacks the ability {ability}")


def pack_invitation(invitation: Invitation) -> bytes:
    """The inviter's second message. 1.20 sends the numbers as texts, which its own joiner then writes as `b'3'`; from
    numbers it makes a configuration that it can read.
    """
    content = {
        "shares-needed": invitation.needed,
        "shares-total": invitation.total,
        "shares-happy": invitation.happy,
        "nickname": invitation.nickname,
        "introducer": invitation.introducer.to_string(),
    }
    return json.dumps(content).encode("ascii")


def parse_invitation(message: bytes) -> Invitation:
    """Parse the inviter's second message; FormatError. Unknown keys are ignored, as in 1.20."""
    content = _parse_object(message)
    nickname = content.get("nickname")
    if not isinstance(nickname, str):
        raise FormatError("an invitation without a nickname")
    furl = content.get("introducer")
    if not isinstance(furl, str):
        raise FormatError("an invitation without an introducer: the inviter's node has none")
    needed, happy, total = (_share_count(content, which) for which in ("needed", "happy", "total"))
    if needed > total or happy > total or total > MAX_SHARES:
        raise FormatError(f"an invitation to store {needed}-of-{total} on {happy} servers, which is impossible")
    return Invitation(
        nickname=parse_nickname(nickname), introducer=parse_furl(furl), needed=needed, happy=happy, total=total
    )


def parse_nickname(text: str) -> str:
    """Check a nickname; FormatError if it is too long, or a terminal would not show it as it is."""
    if len(text) > MAX_NICKNAME_LENGTH:
        raise FormatError(f"a nickname of {len(text)} characters: at most {MAX_NICKNAME_LENGTH} are accepted")
    if not text.isprintable():
        raise FormatError("a nickname with a line break or another character that is not printable")
    return text


def _share_count(content: Mapping[str, object], which: str) -> int:
    value = content.get(f"shares-{which}")
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1000:
        return value
    raise FormatError(f"an invitation in which shares-{which} is missing, or not a number of shares")


def _parse_object(message: bytes) -> Mapping[str, object]:
    if len(message) > MAX_INVITATION_SIZE:
        raise FormatError(f"a message of {len(message)} bytes: at most {MAX_INVITATION_SIZE} are accepted")
    try:
        value = json.loads(message.decode("utf-8"))
    except (ValueError, RecursionError):
        raise FormatError("a message that is not JSON in UTF-8") from None
    if not isinstance(value, dict):
        raise FormatError("a message that is not a JSON object")
    return value
