"""Stands for a warm program until it ends: passes everything that it was given to the server, and ends as the program ends.

Its text, with a call of `main` behind it, is the program. It imports as little as can be, as it is started for every run.
"""

import _socket
import os
import signal
import sys


def pack_call(parent: int, module: str, folder: bytes, arguments: list[str], variables: list[bytes]) -> bytes:
    """What a server is sent. parent: the process that shall have the program as its child; 0 for the server. variables: names and values in turn."""
    words = [os.fsencode(argument) for argument in arguments]
    return b"\0".join([b"%d" % parent, module.encode(), folder, b"%d" % len(words), *words, *variables])


def call(server: str, module: str) -> int:
    """The status that the run ended with, as subprocess counts it: below 0 for a signal."""
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    connection.connect(server)
    variables = [part for name, value in os.environb.items() for part in (name, value)]
    text = pack_call(0, module, os.getcwdb(), sys.argv[1:], variables)
    streams = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
    connection.sendmsg([len(text).to_bytes(4, "big")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
    connection.sendall(text)

    def forward(number: int, frame: object) -> None:
        connection.sendall(bytes([number]))

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, forward)
    answer = connection.recv(2)
    if len(answer) != 2:
        raise SystemExit("the server of warm programs ended before the program did")
    return int.from_bytes(answer, "big", signed=True)


def main(server: str, module: str) -> None:
    """Have the module run, and end as it does."""
    status = call(server, module)
    if status < 0:
        if -status != signal.SIGKILL:  # Which nobody handles.
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)
