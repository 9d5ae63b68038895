"""Passwords of share links: their hashes, the passes of visitors who knew one, and limits on guessing. (decision 460)

Owns the bounds: the memory and time of one hash, and the number of guesses remembered.
"""

from __future__ import annotations

import hmac
import unicodedata
from collections import OrderedDict
from hashlib import scrypt, sha256

from grid.ports import Clock
from grid.values import field, frozen

SALT_SIZE = 16

SHORTEST_PASSWORD = 8
LONGEST_PASSWORD = 1000
"""Characters."""

PASS_S = 12 * 3600
"""Seconds for which a visitor need not enter the password again."""

COST = 2**15
"""Scrypt's N. With r=8, one hash takes 32 MiB and about a tenth of a second."""

_MOST_COST = 2**17
_BLOCK = 8
_KEY_SIZE = 32

PEER_TRIES = 10
PEER_EACH_S = 10.0
"""One address may try that often at once, and then once in that many seconds."""

LINK_TRIES = 50
LINK_EACH_S = 30.0
"""The same for all addresses together, for each link."""

MAX_REMEMBERED = 4096
"""Addresses, and links, whose attempts are remembered; the oldest are forgotten first."""


@frozen(kw_only=True)
class PasswordHash:
    """What is kept of a password. ValueError if it would take too much memory to check."""

    salt: bytes = field(repr=False)
    key: bytes = field(repr=False)
    cost: int = field(default=COST)

    @cost.validator
    def _check_cost(self, attribute: object, value: int) -> None:
        if not 2 <= value <= _MOST_COST or value & (value - 1) or len(self.key) != _KEY_SIZE:
            raise ValueError("not the hash of a password")

    def matches(self, password: str) -> bool:
        """Whether this is the password. Blocks for about a tenth of a second."""
        if len(password) > LONGEST_PASSWORD:
            return False
        return hmac.compare_digest(_derive(password, self.salt, self.cost), self.key)


def hash_password(password: str, salt: bytes) -> PasswordHash:
    """Hash a new password. salt: SALT_SIZE random bytes. Blocks for about a tenth of a second."""
    return PasswordHash(salt=salt, key=_derive(password, salt, COST))


def _derive(password: str, salt: bytes, cost: int) -> bytes:
    # People type the same character in different ways.
    text = unicodedata.normalize("NFC", password).encode("utf-8", "surrogatepass")
    memory = 128 * _BLOCK * (cost + 64)
    return scrypt(text, salt=salt, n=cost, r=_BLOCK, p=1, maxmem=2 * memory, dklen=_KEY_SIZE)


class Passes:
    """Passes of visitors who knew a password. Nothing is remembered of them: a pass proves itself."""

    def __init__(self, clock: Clock, secret: bytes) -> None:
        """secret: 32 random bytes, new for each start of the gateway, which ends all passes."""
        self._clock = clock
        self._secret = secret

    def issue(self, digest: bytes, password: PasswordHash) -> str:
        """A pass for the link with this digest."""
        ends_at = int(self._clock.now()) + PASS_S
        return f"{ends_at}-{self._sign(digest, password, ends_at)}"

    def is_valid(self, text: str, digest: bytes, password: PasswordHash) -> bool:
        """Whether this is a pass for the link, and has not ended."""
        number, _, signature = text.partition("-")
        if not (number.isascii() and number.isdigit() and len(number) < 16):
            return False
        expected = self._sign(digest, password, int(number))
        is_right = hmac.compare_digest(signature.encode("utf-8", "replace"), expected.encode("ascii"))
        return is_right and 0 < int(number) - self._clock.now() <= PASS_S + 1

    def _sign(self, digest: bytes, password: PasswordHash, ends_at: int) -> str:
        return hmac.new(self._secret, b"%d %b %b" % (ends_at, digest, password.key), sha256).hexdigest()


class Attempts:
    """Limits how often passwords are tried, by address and by link."""

    def __init__(self, clock: Clock) -> None:
        self._peers = _Buckets(clock, PEER_TRIES, PEER_EACH_S)
        self._links = _Buckets(clock, LINK_TRIES, LINK_EACH_S)

    def wait_s(self, digest: bytes, peer: str) -> float:
        """Count an attempt, and return 0; or the seconds to wait before the next one is allowed."""
        wait_s = max(self._peers.wait_s((digest, peer)), self._links.wait_s((digest, "")))
        if wait_s <= 0:
            self._peers.take((digest, peer))
            self._links.take((digest, ""))
        return max(0.0, wait_s)

    @property
    def remembered(self) -> int:
        """Entries kept in memory."""
        return len(self._peers) + len(self._links)


class _Buckets:
    """Tries by key: `most` at once, and one more every `each_s` seconds."""

    def __init__(self, clock: Clock, most: int, each_s: float) -> None:
        self._clock, self._most, self._each_s = clock, most, each_s
        self._free_at: OrderedDict[tuple[bytes, str], float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._free_at)

    def wait_s(self, key: tuple[bytes, str]) -> float:
        """Seconds until the next try; 0 or less if it is allowed now."""
        full_s = (self._most - 1) * self._each_s
        return self._free_at.get(key, float("-inf")) - full_s - self._clock.now()

    def take(self, key: tuple[bytes, str]) -> None:
        """Count one try. Kept is the time at which all tries would be available again."""
        now = self._clock.now()
        self._free_at[key] = max(now, self._free_at.pop(key, now)) + self._each_s
        if len(self._free_at) > MAX_REMEMBERED:
            self._free_at.popitem(last=False)
