"""Parses the values of configuration files: sizes, durations, days, addresses, booleans. Pure.

Each function takes the text as it stands in the file. For anything invalid it raises ValueError that says what was
expected but does not quote the text; the caller knows the file, the section and the key. [spec storage-server 10.1; cli
6]
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from ipaddress import ip_address, ip_network

_SIZE = re.compile(r"([0-9]{1,20})\s*([KMGTPE]?)(I?)B?", re.ASCII | re.IGNORECASE)
_DURATION = re.compile(r"([0-9]{1,9})\s*(s|seconds?|days?|mo|months?|years?)", re.ASCII | re.IGNORECASE)
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_WHOLE = re.compile(r"[0-9]{1,20}", re.ASCII)
# 1.20's `--join` wrote numbers as the repr of a Python bytes object. [spec cli 4.4]
_QUOTED_WHOLE = re.compile(r"b'([0-9]{1,20})'", re.ASCII)

_HOST = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*", re.ASCII)

_HINT = re.compile(
    r"(?:(?:tcp:|tor:)?(?!(?:tcp|tor|i2p):)[A-Za-z0-9][A-Za-z0-9_.-]{0,252}|tcp:\[[0-9A-Fa-f:.]+(?:%[A-Za-z0-9.]+)?\])"
    r":([0-9]{1,5})",
    re.ASCII,
)
_I2P_HINT = re.compile(r"i2p:[A-Za-z0-9.-]+(?::[0-9]{1,5})?", re.ASCII)
_PORT_KINDS = ("tcp", "tcp4", "tcp6", "ssl")
_OTHER_KINDS = ("unix", "systemd", "fd", "haproxy", "tls", "onion", "listen")

_EXPONENT = {unit: index for index, unit in enumerate(("", "k", "m", "g", "t", "p", "e"))}
_DAY_S = 86400
_UNIT_S = {"s": 1, "second": 1, "day": _DAY_S, "mo": 31 * _DAY_S, "month": 31 * _DAY_S, "year": 365 * _DAY_S}
_TRUE = frozenset({"1", "yes", "true", "on"})
_FALSE = frozenset({"0", "no", "false", "off"})


def parse_boolean(text: str) -> bool:
    """Parse a boolean."""
    word = text.strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise ValueError("expected true or false")


def parse_whole(text: str, *, least: int = 0, most: int = 2**63) -> int:
    """Parse a whole number from `least` to `most`."""
    word = text.strip()
    quoted = _QUOTED_WHOLE.fullmatch(word)
    word = quoted[1] if quoted else word
    if _WHOLE.fullmatch(word) is None or not least <= int(word) <= most:
        raise ValueError(f"expected a whole number from {least} to {most}")
    return int(word)


def parse_size(text: str) -> int:
    """The bytes of a size such as `1G` (powers of 1000) or `1GiB` (powers of 1024)."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError("expected a size such as 500M, 1G or 1GiB")
    base = 1024 if match[3] else 1000
    return int(int(match[1]) * base ** _EXPONENT[match[2].lower()])


def parse_duration(text: str) -> int:
    """The seconds of a duration such as `31 days`, `2 months` (of 31 days) or `1 year` (of 365 days)."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise ValueError("expected a duration such as 60 days, 2 months or 1 year")
    unit = match[2].lower()
    return int(match[1]) * _UNIT_S[unit if unit in _UNIT_S else unit.removesuffix("s")]


def parse_day(text: str) -> int:
    """The Unix time at which a UTC day, written YYYY-MM-DD, begins."""
    word = text.strip()
    if _DAY.fullmatch(word) is None:
        raise ValueError("expected a day as YYYY-MM-DD")
    try:
        return int(datetime.strptime(word, "%Y-%m-%d").replace(tzinfo=UTC).timestamp())
    except ValueError:
        raise ValueError("expected a day of the calendar, as YYYY-MM-DD") from None


def parse_hosts(text: str) -> tuple[str, ...]:
    """Names for Host headers from a comma-separated list: lower case, IPv6 addresses in brackets; `*` for all."""
    return tuple(_parse_host(word.strip()) for word in text.split(",") if word.strip())


def _parse_host(word: str) -> str:
    name = word.lower().rstrip(".")
    try:
        address = ip_address(name.removeprefix("[").removesuffix("]"))
        return f"[{address}]" if address.version == 6 else str(address)
    except ValueError:
        pass
    if word != "*" and (_HOST.fullmatch(name) is None or len(name) > 253):
        raise ValueError("expected names of hosts with commas between them, without ports; or * for any")
    return name


def parse_proxies(text: str) -> tuple[str, ...]:
    """Addresses and networks from a comma-separated list, in their usual form; `unix` stays as it is."""
    return tuple(_parse_proxy(word.strip()) for word in text.split(",") if word.strip())


def _parse_proxy(word: str) -> str:
    if word.lower() == "unix":
        return "unix"
    try:
        network = ip_network(word)
    except ValueError:
        raise ValueError(
            "expected IP addresses or networks such as 127.0.0.1 or 10.0.0.0/8 with commas between them; unix for a socket"
        ) from None
    if not network.prefixlen:
        raise ValueError("a network of all addresses would let everyone claim any address")
    return str(network.network_address) if network.prefixlen == network.max_prefixlen else str(network)


def parse_hint(text: str) -> str:
    """A location hint, `tcp:HOST:PORT`; `AUTO` stands for every address of this machine. [spec wire 1]"""
    match = _HINT.fullmatch(text)
    if text == "AUTO" or _I2P_HINT.fullmatch(text) or (match is not None and _is_port(match[1])):
        return text
    raise ValueError("expected tcp:HOST:PORT, or several separated by commas; AUTO stands for all local addresses")


def parse_endpoint(text: str) -> str:
    """An endpoint: `PORT`, `tcp:PORT[:interface=ADDRESS]`, or another kind, which is not checked."""
    if text.isascii() and text.isdigit():
        text = f"tcp:{text}"
    kind, colon, rest = text.partition(":")
    number = rest.partition(":")[0].removeprefix("port=")
    if not colon or (kind in _PORT_KINDS and not _is_port(number)) or kind not in (*_PORT_KINDS, *_OTHER_KINDS):
        raise ValueError("expected tcp:PORT[:interface=ADDRESS], with a port from 1 to 65535")
    return text


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 5 and 0 < int(text) < 65536
