"""Bytes and segments that processes have sent and received over TCP, from the kernel. Linux only.

The kernel counts them for each open connection (sock_diag(7), tcp_info). Bytes are those of the streams, including TLS
but not TCP's own headers, each counted once however often it was sent. Segments with payload approximate messages from
outside: a message takes at least one. A connection opened and closed between two looks is missed; if one disappears in
between, there is no count at all.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from attrs import frozen

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_NLM_REQUEST_DUMP = 0x301
_NLMSG_ERROR, _NLMSG_DONE = 2, 3
_INET_DIAG_INFO = 2
_OPEN_STATES = 0xFFF & ~(1 << 6)
"""All states but TIME_WAIT, which no longer has counts."""

_HEADER = struct.Struct("=IHHII")
_REQUEST = struct.Struct("=BBBxI48x")
_ANSWER_SIZE = 72
_INODE = struct.Struct("=I")
_PORTS = struct.Struct(">HH")
_ATTRIBUTE = struct.Struct("=HH")
_COUNTS = struct.Struct("=120xQQ16xII")
"""bytes_acked, bytes_received; segs_out, segs_in, notsent, min_rtt; data_segs_in, data_segs_out."""


@frozen(kw_only=True)
class Traffic:
    """bytes_out, bytes_in: of the TCP streams. segments_out, segments_in: those with payload."""

    bytes_out: int = 0
    bytes_in: int = 0
    segments_out: int = 0
    segments_in: int = 0


def connections(pids: Iterable[int], without_ports: Collection[int] = ()) -> dict[int, Traffic]:
    """What each open connection of these processes has carried so far, by inode.

    without_ports: skip connections with these local ports.
    """
    wanted = {inode for pid in pids for inode in _socket_inodes(pid)}
    if not wanted:
        return {}
    return {
        inode: traffic
        for family in (socket.AF_INET, socket.AF_INET6)
        for inode, port, traffic in _dump(family)
        if inode in wanted and port not in without_ports
    }


def difference(before: Mapping[int, Traffic], after: Mapping[int, Traffic]) -> Traffic | None:
    """What was carried between two looks; None if a connection disappeared."""
    if before.keys() - after.keys():
        return None
    nothing = Traffic()
    pairs = [(traffic, before.get(inode, nothing)) for inode, traffic in after.items()]
    return Traffic(
        bytes_out=sum(new.bytes_out - old.bytes_out for new, old in pairs),
        bytes_in=sum(new.bytes_in - old.bytes_in for new, old in pairs),
        segments_out=sum(new.segments_out - old.segments_out for new, old in pairs),
        segments_in=sum(new.segments_in - old.segments_in for new, old in pairs),
    )


def _socket_inodes(pid: int) -> Iterator[int]:
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = os.readlink(link)
        except FileNotFoundError:
            continue
        if target.startswith("socket:["):
            yield int(target[8:-1])


def _dump(family: int) -> Iterator[tuple[int, int, Traffic]]:
    """Inode, local port and counts of every connection of this machine."""
    request = _REQUEST.pack(family, socket.IPPROTO_TCP, 1 << (_INET_DIAG_INFO - 1), _OPEN_STATES)
    header = _HEADER.pack(_HEADER.size + len(request), _SOCK_DIAG_BY_FAMILY, _NLM_REQUEST_DUMP, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _NETLINK_SOCK_DIAG) as kernel:
        kernel.send(header + request)
        while True:
            data = memoryview(kernel.recv(1 << 18))
            while data:
                size, kind, *_ = _HEADER.unpack_from(data)
                if kind == _NLMSG_ERROR:
                    raise OSError("the kernel does not tell what connections carry")
                if kind == _NLMSG_DONE:
                    return
                found = _parse(data[_HEADER.size : size])
                if found is not None:
                    yield found
                data = data[-(-size // 4) * 4 :]


def _parse(answer: memoryview) -> tuple[int, int, Traffic] | None:
    (inode,) = _INODE.unpack_from(answer, _ANSWER_SIZE - 4)
    port, _ = _PORTS.unpack_from(answer, 4)
    rest = answer[_ANSWER_SIZE:]
    while len(rest) >= _ATTRIBUTE.size:
        size, kind = _ATTRIBUTE.unpack_from(rest)
        if kind == _INET_DIAG_INFO and size - 4 >= _COUNTS.size:
            acked, received, segments_in, segments_out = _COUNTS.unpack_from(rest, 4)
            traffic = Traffic(bytes_out=acked, bytes_in=received, segments_out=segments_out, segments_in=segments_in)
            return inode, port, traffic
        rest = rest[-(-size // 4) * 4 :]
    return None
