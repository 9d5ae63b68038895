"""A web server that follows a script: errors, false lengths, lost connections; and counts its requests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

Script = Callable[["WebRequest"], None]


class WebRequest(BaseHTTPRequestHandler):
    """One request; the script answers it."""

    protocol_version = "HTTP/1.1"
    script: Script

    def do_GET(self) -> None:
        """Let the script answer."""
        self.close_connection = True
        self.script(self)

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def answer(self, status: int, body: bytes = b"", length: int | None = None, **headers: str) -> None:
        """Send an answer. length: its Content-Length, if not the true one. Last_Modified: "" to leave it out."""
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        for name, value in ({"Last_Modified": "Sun, 22 Nov 2026 12:00:00 GMT"} | headers).items():
            if value:
                self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def scripted_web(script: Script) -> Iterator[str]:
    """The URL of a server that answers every request by the script."""
    handler = type("Scripted", (WebRequest,), {"script": staticmethod(script)})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
