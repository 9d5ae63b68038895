"""The server of warm programs: warm_server.py SOCKET PROGRAM, until its stdin closes; PROGRAM is `grid`, or another script.

It imports what the programs will, has no thread and a reactor that has never run, and forks for each run. It never runs a
program itself. A node that somebody wants as a child of their own is forked twice, so that it becomes that. The nodes that `grid up`
starts are warm programs, too.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import importlib
import os
import pkgutil
import runpy
import selectors
import signal
import socket
import sys
import threading
import time
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import Any, NoReturn

from attrs import define

STREAM_COUNT = 3

PR_SET_PDEATHSIG = 1
ADOPTION_S = 20.0
"""How long a node waits for its parent, which waits for nothing else."""

C_LIBRARY = ctypes.CDLL(None)


def import_all(program: str, warm: str) -> None:
    """Import what commands use; for a script, its own imports. warm: the path of the `grid` that starts warm."""
    if program != "grid":
        runpy.run_path(program, run_name="warm")
        if "foolscap.crypto" in sys.modules:
            find_one_key()
    else:
        import_grid(warm)
    assert threading.active_count() == 1, "threads do not survive a fork"


def import_grid(warm: str) -> None:
    """Import what Grid's commands and nodes use."""
    import grid
    import grid.node.local_grid

    for module in pkgutil.walk_packages(grid.__path__, "grid."):
        # The part in C is no module of Python's.
        if not module.name.endswith(("__main__", "._lanes")):
            importlib.import_module(module.name)
    use_once()
    grid.node.local_grid.GRID_COMMAND = (warm,)


def use_once() -> None:
    """Do what each process does once, before its first connection and its first file."""
    from twisted.internet.ssl import CertificateOptions

    from grid.codec.erasure import codec_name
    from grid.crypto.multi_buffer import multi_buffer
    from grid.wire.http.format.tls import client_context

    importlib.import_module("encodings.idna")
    CertificateOptions().getContext()
    client_context()
    codec_name()
    multi_buffer()
    for optional in ("asyncssh", "wormhole"):
        with suppress(ImportError):
            importlib.import_module(optional)


def find_one_key() -> None:
    """Have Foolscap find an RSA key once in a process, and not for each of its certificates, which differ in their serial numbers.

    A node of 1.20 has a certificate of its own for every server that it knows. In a grid of ten, most of its start went into
    finding those keys, and into loading them, which tests their primes each time.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives.hashes import SHA256
    from foolscap import crypto
    from OpenSSL.crypto import X509
    from twisted.internet.ssl import Certificate, PrivateCertificate

    find_key = crypto.createCertificate
    found: list[Any] = []

    def make_certificate() -> Any:
        if not found:
            first = find_key()
            found.extend((first, first.privateKey.original.to_cryptography_key()))
            return first
        first, key = found
        known = first.original.to_cryptography()
        again = x509.CertificateBuilder(known.issuer, known.subject, known.public_key(), x509.random_serial_number())
        again = again.not_valid_before(known.not_valid_before_utc).not_valid_after(known.not_valid_after_utc)
        made = Certificate(X509.from_cryptography(again.sign(key, SHA256())))
        return PrivateCertificate.fromCertificateAndKeyPair(made, first.privateKey)

    crypto.createCertificate = make_certificate


def renew_reactor() -> None:
    """Give the reactor, which Foolscap imports, descriptors of this process in place of those that it has from the server's."""
    if "twisted.internet.reactor" not in sys.modules:
        return
    from twisted.internet import reactor as imported

    reactor: Any = imported
    reactor._poller.close()
    for reader in reactor._internalReaders:
        reader.connectionLost(None)
    reactor.__init__()


@define(frozen=True)
class Call:
    """A caller's program and its arguments. parent: the process that becomes its parent; 0 for the server."""

    parent: int
    module: str
    folder: bytes
    arguments: list[str]
    variables: dict[bytes, bytes]
    streams: list[int]

    def run(self) -> None:
        """Become the program; SystemExit or another exception ends it, as it would end `python -m`."""
        os.chdir(self.folder)
        for number, stream in enumerate(self.streams):
            os.dup2(stream, number)
            os.close(stream)
        os.environb.clear()
        os.environb.update(self.variables)
        for written in (sys.stdout, sys.stderr):
            assert isinstance(written, TextIOWrapper)
            written.reconfigure(line_buffering=written is sys.stderr or written.isatty())
        renew_reactor()
        sys.argv[:] = [self.module, *self.arguments]
        if "/" in self.module:
            runpy.run_path(self.module, run_name="__main__")
        else:
            runpy.run_module(self.module, run_name="__main__", alter_sys=True)


def receive(connection: socket.socket) -> Call | None:
    """What a caller sent; None if it was killed before it had sent everything."""
    head, streams, _, _ = socket.recv_fds(connection, 4, STREAM_COUNT)
    size, text = int.from_bytes(head, "big"), b""
    while len(text) < size and (more := connection.recv(size - len(text))):
        text += more
    if not size or len(text) < size:
        for stream in streams:
            os.close(stream)
        return None
    parent, module, folder, count, *rest = text.split(b"\0")
    arguments, variables = rest[: int(count)], rest[int(count) :]
    return Call(
        int(parent),
        module.decode(),
        folder,
        [os.fsdecode(argument) for argument in arguments],
        dict(zip(variables[::2], variables[1::2], strict=True)),
        streams,
    )


class Server:
    """Runs that are under way, each with its caller."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, selectors.EVENT_READ)
        self._selector.register(sys.stdin, selectors.EVENT_READ)

    def serve(self) -> Call | None:
        """Return, in each child, what to run, and None in the server when nobody needs it anymore."""
        while True:
            for key, _ in self._selector.select():
                call: Call | None = None
                if key.fileobj is sys.stdin:
                    return None
                if key.fileobj is self._listener:
                    connection, _ = self._listener.accept()
                    with suppress(ConnectionError):
                        call = receive(connection)
                    if call is None:
                        connection.close()
                        continue
                    process = os.fork()
                    if not process:
                        if call.parent and (node := os.fork()):
                            connection.sendall(node.to_bytes(4, "big"))
                            os._exit(0)
                        self._forget(connection)
                        return call
                    if call.parent:
                        self._hand_over(connection, process, call)
                    else:
                        self._watch(connection, process, call)
                else:
                    key.data()

    def _hand_over(self, connection: socket.socket, between: int, call: Call) -> None:
        """Close the node's streams; the caller sees its connection end when the process between it and us has ended."""
        for stream in call.streams:
            os.close(stream)
        os.waitpid(between, 0)
        connection.close()

    def _watch(self, connection: socket.socket, process: int, call: Call) -> None:
        for stream in call.streams:
            os.close(stream)
        ended = os.pidfd_open(process)

        def hear() -> None:
            if connection.fileno() < 0:
                return  # The program ended at the same moment.
            try:
                signals = connection.recv(1)
            except ConnectionError:
                signals = b""
            number = signals[0] if signals else signal.SIGKILL  # A caller that is gone was killed.
            os.kill(process, number)  # It is not reaped before it is forgotten here.
            if not signals:
                self._selector.unregister(connection)

        def tell() -> None:
            _, status = os.waitpid(process, 0)
            if connection in self._selector.get_map():
                self._selector.unregister(connection)
            self._selector.unregister(ended)
            os.close(ended)
            with connection, suppress(OSError):  # The caller may be gone.
                connection.sendall(os.waitstatus_to_exitcode(status).to_bytes(2, "big", signed=True))

        self._selector.register(connection, selectors.EVENT_READ, hear)
        self._selector.register(ended, selectors.EVENT_READ, tell)

    def _forget(self, connection: socket.socket) -> None:
        """Close, in a child, the server's descriptors."""
        connection.close()
        for key in list(self._selector.get_map().values()):
            if key.fileobj is not sys.stdin and key.fd != connection.fileno():
                os.close(key.fd)
        self._selector.close()


def wait_for_parent(parent: int) -> None:
    """Return as its child, which the kernel ends with it."""
    deadline = time.monotonic() + ADOPTION_S
    while os.getppid() != parent and time.monotonic() < deadline:
        time.sleep(0.001)
    C_LIBRARY.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        raise SystemExit("nobody has adopted this process")


def main(path: str, program: str) -> None:
    """Serve, or in a child run. Interrupts end programs as from a terminal, also where they were ignored at the start."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    import_all(program, str(Path(path).with_name("grid.cli")))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(64)
        gc.freeze()
        print("ready", flush=True)
        call = Server(listener).serve()
        if call is not None:
            listener.detach()
    if call is not None:
        end(call)


def end(call: Call) -> NoReturn:
    """Run the program and exit like an interpreter, but without tearing down the server's imports."""
    status: object = 0
    try:
        if call.parent:
            wait_for_parent(call.parent)
        call.run()
    except SystemExit as exited:
        status = exited.code or 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
        status = 1
    if not isinstance(status, int):
        print(status, file=sys.stderr)
        status = 1
    getattr(threading, "_shutdown")()  # noqa: B009 - it is no public name
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
    except OSError:
        status = 120  # As Python itself ends with output that nobody takes.
    os._exit(status & 0xFF)


if __name__ == "__main__":
    main(*sys.argv[1:])
