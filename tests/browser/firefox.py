"""Firefox without a window, driven by WebDriver BiDi, which it speaks itself."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, CloseConnection, Ping, Request, TextMessage

START_S = 60.0


class Firefox:
    """One tab. Commands wait for their answers."""

    def __init__(self, program: str, folder: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        (folder / "profile").mkdir()
        line = [program, "-headless", "-no-remote", "-profile", str(folder / "profile")]
        self._process = subprocess.Popen(
            [*line, "--remote-debugging-port", str(self._port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._number = 0
        self._texts: list[str] = []
        self._part = ""
        self._socket: socket.socket | None = None
        try:
            self._socket = self._connect()
            self._websocket = WSConnection(ConnectionType.CLIENT)
            self._send(self._websocket.send(Request(host=f"127.0.0.1:{self._port}", target="/session")))
            while not self._receive(AcceptConnection):
                pass
            self._command("session.new", capabilities={})
            self._tab = self._command("browsingContext.getTree")["contexts"][0]["context"]
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End it."""
        if self._socket is not None:
            self._socket.close()
        self._process.terminate()
        self._process.wait(30)

    def go(self, url: str) -> None:
        """Load a page and everything that it names."""
        self._command("browsingContext.navigate", context=self._tab, url=url, wait="complete")

    def resize(self, width: int, height: int = 900) -> None:
        """Give the page this much room."""
        self._command("browsingContext.setViewport", context=self._tab, viewport={"width": width, "height": height})

    def evaluate(self, script: str) -> Any:
        """What the script, an expression, returns, or what its promise becomes."""
        wrapped = f"Promise.resolve({script}).then((value) => JSON.stringify(value) ?? 'null')"
        found = self._command("script.evaluate", expression=wrapped, target={"context": self._tab}, awaitPromise=True)
        assert found["type"] == "success", found
        return json.loads(found["result"]["value"])

    def run(self, script: str) -> None:
        """Run a whole script."""
        self._command("script.evaluate", expression=script, target={"context": self._tab}, awaitPromise=False)

    def wait_for(self, condition: str) -> None:
        """Wait until the expression is true."""
        self.evaluate(
            f"new Promise((end) => {{ const look = () => ({condition}) ? end(true) : setTimeout(look, 20); look(); }})"
        )

    def _send(self, data: bytes) -> None:
        assert self._socket is not None
        self._socket.sendall(data)

    def _connect(self) -> socket.socket:
        until = time.monotonic() + START_S
        while True:
            try:
                return socket.create_connection(("127.0.0.1", self._port), START_S)
            except OSError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.1)

    def _command(self, method: str, **params: object) -> Any:
        self._number += 1
        text = json.dumps({"id": self._number, "method": method, "params": params})
        self._send(self._websocket.send(TextMessage(data=text)))
        while True:
            while not self._texts:
                self._receive(TextMessage)
            answer = json.loads(self._texts.pop(0))
            if answer.get("id") == self._number:
                assert answer["type"] == "success", answer
                return answer["result"]

    def _receive(self, wanted: type) -> bool:
        """Take in what arrives next; whether an event of that type was among it."""
        assert self._socket is not None
        data = self._socket.recv(2**16)
        assert data, "Firefox has closed the connection"
        self._websocket.receive_data(data)
        seen = False
        for event in self._websocket.events():
            assert not isinstance(event, CloseConnection), event
            if isinstance(event, Ping):
                self._send(self._websocket.send(event.response()))
            seen = seen or isinstance(event, wanted)
            if isinstance(event, TextMessage):
                self._part += event.data
                if event.message_finished:
                    self._texts.append(self._part)
                    self._part = ""
        return seen
