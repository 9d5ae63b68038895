"""Every limit on what a peer may make us allocate or loop over, each with its reason."""

from __future__ import annotations

MAX_SHARES = 256
"""Share numbers are 0..255, because the erasure code has 256 points. [spec immutable 6]"""

MAX_CAP_LENGTH = 65536
"""Caps are short. Only a LIT cap grows, and uploaders write at most 55 bytes into one."""

MAX_CAP_DIGITS = 32
"""Digits of a number in a cap, including leading zeros; more than any size needs."""

MAX_RSA_KEY_SIZE = 8192
"""Bytes of a stored or imported RSA key. A 2048-bit key has 1220 bytes as DER and 1704 as PEM, without comments."""

MAX_FILE_SIZE = 2**63
"""No file is larger. This limits the arithmetic on sizes from capabilities."""

MAX_SEGMENT_SIZE = 256 * 2**20
"""A UEB may name any segment size; one segment must fit in memory several times over."""

MAX_UEB_SIZE = 2000
"""What 1.20's verifier accepts; a real UEB has some 320 bytes. [spec immutable 10]"""

READ_CALL_BYTES = 32 * 2**20
"""Bytes that one batched read may request; neither side holds more than that per call."""

READ_CALL_RANGES = 8192
"""Ranges in one batched read: 256 shares with a path of hash nodes each."""

WRITE_CALL_BYTES = 32 * 2**20
"""Bytes that one batched write may contain."""

STORE_CALL_BYTES = 8 * 2**20
"""Bytes of whole shares in one message: the server holds them all, and makes them durable together."""

STORE_CALL_SHARES = 256
"""Whole shares in one message: each is an open file for a moment."""

FIND_CALL_FILES = 64
"""Files in one question: the server looks up all of them on its disk in one step."""

FIND_FILE_BYTES = 32 * 2**10
"""A question shares a message with others only if it requests at most this many bytes of each share, so that answers stay fast."""

MAX_SLOT_SIZE = 69105 * 10**12
"""The largest mutable share. [spec storage-server 7]"""

MAX_ADVISORY_LENGTH = 32765
"""UTF-8 bytes in a corruption report's reason. [spec wire 15]"""

MAX_ANNOUNCEMENT_SIZE = 64 * 1024
"""Bytes in one signed announcement; a real one has about 1 kB."""

MAX_ANNOUNCEMENTS = 10_000
"""Announcements one introducer may make us hold."""

MAX_ANNOUNCEMENTS_SIZE = 16 * 2**20
"""Bytes of all of them together; 10,000 real ones have that many. As objects in memory they take several times as much."""

MAX_FURL_LENGTH = 4096
"""Characters of a FURL; this is enough for dozens of hints."""

MAX_LOCATION_HINTS = 64
"""Location hints in one FURL; each costs a connection attempt."""

MAX_INVITATION_SIZE = 16 * 1024
"""Bytes in one message between inviter and joiner: a FURL of any length and a nickname."""

MAX_MAILBOX_BYTES = 2**20
"""Bytes that a server of magic-wormhole may send while two sides meet; it needs about 3 kB, and 10 B a minute of waiting."""

MAX_NICKNAME_LENGTH = 200
"""Characters of a node's name in an invitation; every list of servers shows it."""

MAX_SLOT_WRITE = 256 * 2**20
"""Bytes in one write to a mutable share: a 1.20 client sends a whole SDMF share at once."""

MAX_SLOT_HEAD = 2**20
"""Bytes of a packed slot write except its data: the tests are on headers. A longer write is sent unpacked."""

MAX_WIRE_MESSAGE = MAX_SLOT_WRITE + 2 * 2**20
"""Bytes in one Foolscap message of any kind; this is what one connection can make us buffer."""

MAX_UNSENT = 64 * 2**20
"""Bytes waiting to be sent on one connection before its next request is read: twice the longest answer."""

MAX_VERSION_TEXT = 1000
"""Bytes kept of a server's application version."""

CONNECT_DEADLINE_S = 15.0
"""Seconds after which a server that has not finished connecting counts as unreachable; on loopback it takes 20 ms."""

MAX_CONNECTIONS = 4096
"""Incoming connections of one process, over all protocols, if its file descriptors allow that many: far more than a server
of a large grid has clients. Half of them may be strangers at any moment, which is more than the clients that reconnect at once when a
server restarts."""

MAX_STORAGE_CONNECTIONS = 400
"""The same for a node that stores shares; an idle connection over Foolscap costs it 58 KiB (decision 0350)."""

MAX_RECONNECT_DELAY_S = 30.0
"""Most seconds during which calls make only short tries (wire/backoff.py) after repeated failures to reach a server."""

CACHED_READER_SETS = 64
"""Files per server whose remote readers are cached between calls; each costs the server some memory too."""

MAX_RELAYED_ANNOUNCEMENT = 4 * 2**20
"""Bytes of one incoming announcement. 1.20's introducer relays any size; one oversized announcement
among a set is skipped rather than the whole set refused."""

MAX_SUBSCRIBERS = 10_000
"""Subscribers of one introducer; in practice, each has a connection of its own."""

MAX_SERVERS_FILE = 4 * 2**20
"""Bytes in a file that lists servers: room for thousands, though not for MAX_ANNOUNCEMENTS."""

MAX_CERTIFICATES = 64
"""Grid-manager certificates in one announcement: each costs a signature check per configured key."""

# The HTTP storage protocol.

MAX_HTTP_HEAD = 16 * 1024
"""Bytes in the head of one HTTP message; real ones have under 1 kB."""

MAX_HTTP_HEADERS = 64
"""Header lines in one HTTP message; real ones have under 12."""

MAX_CBOR_ITEMS = 200_000
"""Items in one CBOR message: 256 shares with 30 tests and hundreds of writes each."""

MAX_HTTP_ALLOCATE_BODY = 8192
"""Bytes of an allocation's request. [spec wire 15]"""

MAX_HTTP_ADVISORY_BODY = 32768
"""Bytes of a corruption report's request. [spec wire 15]"""

MAX_HTTP_SLOT_BODY = MAX_SLOT_WRITE + 2**20
"""Bytes of a mutable write's request, which must be held whole; the protocol itself allows 2^48."""

MAX_HTTP_CBOR_ANSWER = 30 * 2**20
"""Bytes of a CBOR answer that a client accepts. [spec wire 18]"""

MAX_HTTP_ERROR_BODY = 10_000
"""Bytes of an error's body that a client accepts. [spec wire 18]"""

MAX_HTTP_CONNECTIONS = 300
"""Connections that one HTTP listener of a storage node serves at once; beyond that, one of them gives way."""

ANSWERS_BYTES = 40 * 2**20
"""Bytes of answers that one storage server holds at once, over both protocols: the longest one, and some to spare."""

REQUESTS_BYTES = 24 * 2**20
"""Bytes that one storage server holds at once of long Foolscap messages, the longest HTTP bodies, and parsed HTTP requests.
A larger request waits until it can run alone."""

OVERSIZE_ANSWERS_BYTES = 16 * 2**20
"""Bytes of ANSWERS_BYTES that answers leave free while a request larger than REQUESTS_BYTES is held."""

REQUEST_WAIT_S = 120.0
"""Seconds that a request waits for that room before it is refused, or its connection is closed if it cannot be refused. While
others wait, a request that has the room has some 60 s."""

SMALL_REQUEST = 16 * 1024
"""A request of up to this size never waits for others: the most that each of hundreds of connections may hold."""

MAX_CALLS_EACH = 64
"""Foolscap calls that one connection may have running before it is read from again."""

MAX_CALLS = 4096
"""The same for all connections of a server. A connection's first call is always accepted."""

MAX_MESSAGE_OBJECTS = 2**17
"""Containers in one Foolscap message; a read of 8192 ranges has that many."""

MESSAGE_OBJECT_BYTES = 256
"""Bytes of memory per container."""

MESSAGE_RATE = 4096
"""Bytes per second that must come of a Foolscap message that has begun; a short one has MESSAGE_REVIEW_S in total."""

MESSAGE_REVIEW_S = 30.0
"""How often to check that."""

MESSAGE_PRESSED_RATE = 64 * 1024
MESSAGE_PRESSED_S = 60.0
"""While others wait for memory, a message must come at this rate, and everything that holds memory must come within this many seconds."""

PARSED_WEIGHT = 10
"""Bytes of memory per byte of a request that consists of small records, once it is parsed."""

ANSWER_RANGE_BYTES = 64
"""Bytes that a range costs in an answer besides its data, however short it is."""

MAX_WAITING_ANSWERS = 2048
"""Requests that may wait until other answers are sent; further ones are refused."""

ANSWER_WAIT_S = 30.0
"""Seconds that a request waits for room for its answer before it is refused."""

ANSWER_RATE = 4096
"""Bytes per second that a client must read of an answer that is held for it."""

ANSWER_STALL_S = 60.0
"""Seconds after which a client that stays below that rate is disconnected."""

ANSWER_PRESSED_STALL_S = 2.0
"""The same while others wait for room."""

ANSWER_SMALL_STALL_S = 0.5
"""The same while others wait for room for small answers."""

ANSWER_PRESSED_RATE = 64 * 1024
ANSWER_PRESSED_S = 60.0
"""While others wait, a client must read that many bytes per second, and everything held for it within that many seconds."""

READERS_ANSWERS_BYTES = 8 * 2**20
"""Bytes for large answers that addresses may not use after a client there left one unread, unless none is held."""

SMALL_ANSWER = 2**20 + 2**19
"""An answer up to this size is small: a piece of an HTTP body, and the cost of its ranges."""

SMALL_ANSWERS_BYTES = 6 * 2**20
"""Bytes of ANSWERS_BYTES reserved for small answers."""

HTTP_PIECES_BYTES = 16 * 2**20
"""Bytes of share data that all requests of one HTTP server hold together."""

HTTP_BODIES_BYTES = 16 * 2**20
"""Bytes of large request bodies that one HTTP server holds at once."""

MAX_SHARED_BODY = STORE_CALL_BYTES + 2**20
"""A request body up to this size takes its room as it comes; a longer one takes room of REQUESTS_BYTES, all at once."""

MAX_HTTP_DISCARD = 32 * 2**20
"""Bytes of a refused request's body to read and drop, so that the client sees the refusal."""

SNIFF_DEADLINE_S = 30.0
"""Seconds within which a new connection to the shared port must show its protocol. [spec wire 13]"""

HTTP_HEAD_DEADLINE_S = 30.0
"""Seconds from the first byte of a request, or a TLS handshake, to the end of its head."""

HTTP_IDLE_DEADLINE_S = 300.0
"""Seconds that a server keeps an idle connection."""

HTTP_STALL_DEADLINE_S = 60.0
"""Seconds within which a body must make progress, in either direction. [spec wire 18]"""

HTTP_BODY_RATE = 4096
"""Bytes of a body that must come in that time; fewer do not count as progress."""

MAX_HTTP_UPLOAD_IDLE_S = 1800.0
"""Seconds without a write after which an upload is forgotten. [spec storage-server 8.2]"""

MAX_NURLS = 16
"""Addresses used from one announcement; each costs a connection attempt."""

MAX_LEASES = 10_000
"""Leases on one share. Otherwise a client with ever new secrets would make the file, and reading it, ever longer."""

MAX_UPLOAD_SPANS = 1000
"""Separate pieces in which an unfinished share may come. Each takes memory, and every answer to a write over HTTP lists the gaps between
them: 10,000 of them took 75 ms of the event loop each time."""

MOST_UPLOAD_SPANS = 100_000
"""Those of all unfinished shares of a server together, from which on each may come in FEW_UPLOAD_SPANS."""

FEW_UPLOAD_SPANS = 16

MAX_UPLOAD_BACKLOG = 256 * 2**20
"""Bytes that wait to be written in one upload: how far a client may run ahead of a slow disk."""

MAX_WAITING_CALLS = 4096
"""Calls that may wait for others on the same storage index."""

MAX_SLOT_VECTORS = 65536
"""Tests, writes and read ranges in one call on a mutable slot; each of the three has this limit."""

MAX_ADVISORIES = 10_000
"""Corruption reports kept; anyone who can read may file one."""

MAX_UPLOAD_FILES = 256
"""Unfinished shares whose files stay open between writes. The files of further ones are opened and synced for each write."""

# Mutable files.

MAX_MUTABLE_SHARES = 255
"""k and N are one byte each in a mutable share's header. [spec mutable 4]"""

MAX_MUTABLE_SEGMENTS = 2**24
"""2 TiB of MDMF. A hash tree over them has a gigabyte, of which readers fetch a few rows at a time."""

MAX_CHAIN_ENTRIES = 512
"""Entries in a share hash chain: no tree over 255 shares has more nodes, a real chain has at most 8."""

MAX_UPDATE_SEGMENTS = 2**17
"""Segments of a file that can grow in place, which keeps all its hashes in memory: 16 GiB, 8 MiB per share."""

# Packs and sequences.

MAX_SEQUENCE_PARTS = 2**16
"""Parts of a sequence: a terabyte in parts of 16 MiB."""

MAX_SEQUENCE_LINE = 320
"""Bytes of one part in a table; a slice with numbers of 19 digits has under 260."""

MAX_SEQUENCE_TABLE_SIZE = 16 * 2**20
"""Bytes of the table of a sequence, which is held whole: MAX_SEQUENCE_PARTS of the longest usual lines."""

# Directories.

MAX_DIRECTORY_SIZE = 256 * 2**20
"""Bytes of a directory, which is held whole: a million entries of the usual 260."""

MAX_DIRECTORY_ENTRIES = 2**20
"""Entries of a directory; each takes a few objects in memory."""

MAX_NAME_SIZE = 64 * 2**10
"""Bytes of a name in a directory, as UTF-8. File systems allow 255, and no URL to a gateway can contain half of this."""

MAX_METADATA_SIZE = 64 * 2**10
"""Bytes of JSON in one entry's metadata; real ones have a hundred. As objects they briefly take thirty times as much."""

KEPT_METADATA_BYTES = 64 * 2**20
"""Memory for one directory's metadata as objects: a hundred thousand usual entries. The rest stays JSON."""

MAX_UNPACKED_AT_ONCE = MAX_DIRECTORY_SIZE
"""Bytes of directories that a process unpacks at once: as objects they take some six times that."""

MAX_UNPACKING_WAITERS = 100
"""Large directories that wait for that; each was read already."""

MAX_METADATA_DEPTH = 100
"""Nesting of objects and lists in a link's metadata; real ones have 2 levels, and Python's own parser fails near 1000."""

GATEWAY_HEADERS_SIZE = 32 * 1024
"""Bytes of a request's line and headers to the gateway; a path with two capabilities has one thousand."""

GATEWAY_HEADER_COUNT = 100
"""Header fields in a request to the gateway; browsers send twenty."""

GATEWAY_HEADER_S = 30.0
"""Most seconds for all headers of a request."""

GATEWAY_IDLE_S = 120
"""Seconds that a connection to the gateway may be idle."""

GATEWAY_BODY_PERIOD_S = 60.0
"""How often the gateway checks the progress of a body."""

GATEWAY_BODY_RATE = 4096
"""Bytes of a body that must come in each such period while the gateway waits for it."""

MAX_GATEWAY_CONNECTIONS = 1000
"""Connections that a gateway serves at once; each has at most one request running."""

GATEWAY_STALL_S = 600.0
"""Seconds for which a client may read nothing of an answer."""

GATEWAY_DISCARDED = 32 * 2**20
"""Bytes of a body to read after the answer, so that the client sees the answer."""

# Files through the web gateway.

MAX_SDMF_BODY = 256 * 2**20
"""Bytes of an SDMF file stored through a gateway: it is one segment, encoded whole in memory."""

# Directories through the web gateway.

MAX_CHILDREN_BODY = 64 * 2**20
"""Bytes of JSON that describe children, some 200,000 of them. As objects they briefly take ten times as much."""

MAX_PATH_DEPTH = 1000
"""Names in a path; each costs a read, and a missing one may become a directory."""

MAX_OPERATIONS = 200
"""Whole-tree operations that a gateway remembers, running or ended; the oldest ended one is dropped first."""

MAX_RUNNING_OPERATIONS = 20
"""Whole-tree operations that run at once; each keeps eight requests in flight."""

MAX_OPERATION_RECORDS = 500_000
"""Objects whose caps or health one gateway's operations remember; each takes about a kilobyte. Streams have no such limit."""

MAX_HANDLE_LENGTH = 1000
"""Characters in an operation's handle; clients choose about twenty."""

# Answers of a web gateway to a command.

MAX_LISTING_JSON = 2**30
"""Bytes of a directory's listing; a child takes some four times as much as in the directory itself."""

MAX_CHECK_JSON = 64 * 2**20
"""Bytes of the result of a check or a repair, and of a line of a stream: 256 shares on some thousand servers."""

MAX_STATUS_JSON = 16 * 2**20
"""Bytes of a gateway's own state: some hundred per server."""
