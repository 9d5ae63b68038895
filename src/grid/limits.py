"""Every bound on what a peer may make us allocate or loop over, each with its reason."""

from __future__ import annotations

MAX_SHARES = 256
"""Share numbers are 0..255: the erasure code has 256 points. [spec immutable 6]"""

MAX_CAP_LENGTH = 65536
"""Caps are short; only a LIT cap grows, and 55 octets is the most an uploader writes."""

MAX_CAP_DIGITS = 32
"""Digits of a number in a cap, leading zeros among them; more than any size needs."""

MAX_RSA_KEY_SIZE = 8192
"""Octets of a stored or imported RSA key; one of 2048 bits has 1220 as DER and 1704 as PEM, comments apart."""

MAX_FILE_SIZE = 2**63
"""No file is larger; bounds the arithmetic on sizes taken from capabilities."""

MAX_SEGMENT_SIZE = 256 * 2**20
"""A UEB may name any segment size; one segment must fit in memory several times over."""

MAX_UEB_SIZE = 2000
"""What 1.20's verifier accepts; a real UEB has some 320 octets. [spec immutable 10]"""

READ_CALL_BYTES = 32 * 2**20
"""Octets one batched read may ask for, so that neither side holds more than that per call."""

READ_CALL_RANGES = 8192
"""Ranges in one batched read: 256 shares with a path of hash nodes each."""

WRITE_CALL_BYTES = 32 * 2**20
"""Octets one batched write may carry."""

MAX_SLOT_SIZE = 69105 * 10**12
"""The largest mutable share. [spec storage-server 7]"""

MAX_ADVISORY_LENGTH = 32765
"""UTF-8 octets in a corruption report's reason. [spec wire 15]"""

MAX_ANNOUNCEMENT_SIZE = 64 * 1024
"""Octets in one signed announcement; a real one has about 1 kB."""

MAX_ANNOUNCEMENTS = 10_000
"""Announcements one introducer may make us hold."""

MAX_FURL_LENGTH = 4096
"""A furl with some dozens of hints."""

MAX_LOCATION_HINTS = 64
"""Location hints in one furl: each costs a connection attempt."""

MAX_SLOT_WRITE = 256 * 2**20
"""Octets in one write to a mutable share: a 1.20 client sends a whole SDMF share at once."""

MAX_WIRE_MESSAGE = MAX_SLOT_WRITE + 2**20
"""Octets in one Foolscap message, whatever is in it: what one connection can make us buffer."""

MAX_VERSION_TEXT = 1000
"""Octets kept of a server's application version."""

CONNECT_DEADLINE_S = 15.0
"""Seconds until a server that does not finish connecting counts as unreachable; loopback takes 20 ms."""

MAX_RECONNECT_DELAY_S = 30.0
"""Seconds between attempts to reach a server that is away, at most: a restarted one is soon found again."""

CACHED_READER_SETS = 64
"""Files per server whose remote readers are kept between calls; each costs the server a little memory too."""

MAX_RELAYED_ANNOUNCEMENT = 4 * 2**20
"""Octets of one announcement that may arrive: 1.20's introducer relays any size, and one oversized announcement
among a set is skipped rather than the whole set refused."""

MAX_SUBSCRIBERS = 10_000
"""Subscribers that one introducer keeps; each is a connection of its own in practice."""

MAX_SERVERS_FILE = 4 * 2**20
"""Octets in a file that lists servers: MAX_ANNOUNCEMENTS of them do not fit, but thousands do."""

MAX_CERTIFICATES = 64
"""Grid-manager certificates in one announcement: each costs a signature check per configured key."""
