"""Firefox without a window, driven by WebDriver BiDi, which it speaks itself."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, CloseConnection, Ping, Request, TextMessage

START_S = 60.0
WAIT_S = 20.0


class FirefoxError(Exception):
    """A command failed."""


KEYS = {
    "Tab": "\ue004", "Enter": "\ue007", "Shift": "\ue008", "Escape": "\ue00c", "ArrowLeft": "\ue012", "ArrowUp": "\ue013",
    "ArrowRight": "\ue014", "ArrowDown": "\ue015", "F2": "\ue032", "Space": " ",
}  # fmt: skip
"""What the protocol calls keys that write no character."""


class Firefox:
    """The browser, with one tab at a time, which shares nothing with those before it. Commands wait for their answers."""

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
        self._tab = ""
        self.complaints: list[str] = []
        try:
            self._socket = self._connect()
            self._websocket = WSConnection(ConnectionType.CLIENT)
            self._send(self._websocket.send(Request(host=f"127.0.0.1:{self._port}", target="/session")))
            while not self._receive(AcceptConnection):
                pass
            self._command("session.new", capabilities={})
            self._command("session.subscribe", events=["log.entryAdded"])
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End it."""
        if self._socket is not None:
            self._socket.close()
        self._process.terminate()
        self._process.wait(30)

    @contextmanager
    def tab(self) -> Iterator[Firefox]:
        """Open a tab with cookies and storage of its own, which all commands concern while the context lasts."""
        user = self._command("browser.createUserContext")["userContext"]
        self._tab = self._command("browsingContext.create", type="tab", userContext=user)["context"]
        self.complaints.clear()
        try:
            yield self
        finally:
            self._command("browser.removeUserContext", userContext=user)

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
        """Wait until the expression is true, across the loading of pages."""
        until = time.monotonic() + WAIT_S
        while not self._holds(condition):
            assert time.monotonic() < until, f"never true: {condition}"
            time.sleep(0.02)

    def press(self, key: str) -> None:
        """Press a key by its name or character, with `Shift+` before it if that is held."""
        *held, last = [KEYS.get(part, part) for part in key.split("+")]
        steps = [("keyDown", each) for each in (*held, last)] + [("keyUp", each) for each in (last, *held)]
        actions = [{"type": kind, "value": value} for kind, value in steps]
        source = {"type": "key", "id": "keys", "actions": actions}
        self._command("input.performActions", context=self._tab, actions=[source])

    def write(self, text: str) -> None:
        """Type into what has the focus."""
        for character in text:
            self.press(character)

    def picture(self, path: Path) -> None:
        """Save a screenshot of the whole page."""
        found = self._command("browsingContext.captureScreenshot", context=self._tab, origin="document")
        path.write_bytes(b64decode(found["data"]))

    def _holds(self, condition: str) -> bool:
        try:
            return bool(self.evaluate(f"Boolean({condition})"))
        except FirefoxError:  # The page is about to be another one.
            return False

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
            if answer.get("method") == "log.entryAdded" and answer["params"]["level"] == "error":
                self.complaints.append(answer["params"]["text"])
            if answer.get("id") == self._number:
                if answer["type"] != "success":
                    raise FirefoxError(answer)
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
