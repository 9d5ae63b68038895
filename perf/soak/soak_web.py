"""The part of a soak's client that goes through a gateway: immutable files over HTTP, as a browser or a program stores and reads them."""

from __future__ import annotations

import http.client
import urllib.parse
from collections.abc import Mapping
from typing import Any

from twisted.internet.threads import deferToThread

from grid.crypto.aes import CtrCipher

PIECE = 1 << 16
ANSWER_S = 120.0


def contents(key: bytes, offset: int, length: int) -> bytes:
    """That range of the file of that key (16 bytes)."""
    return CtrCipher(key, offset).crypt(bytes(length))


class WebWork:
    """Files of one gateway, at this URL."""

    def __init__(self, url: str) -> None:
        self._address = urllib.parse.urlsplit(url).netloc

    async def do(self, operation: Mapping[str, Any]) -> dict[str, Any]:
        """Carry it out; {"cap"} of what was stored, {"wrong"} if other bytes came than were stored."""
        work = self._put if operation["op"] == "web-put" else self._read
        answer: dict[str, Any] = await deferToThread(work, operation)
        return answer

    def _put(self, operation: Mapping[str, Any]) -> dict[str, Any]:
        body = contents(bytes.fromhex(operation["key"]), 0, operation["size"])
        connection = http.client.HTTPConnection(self._address, timeout=ANSWER_S)
        try:
            connection.request("PUT", "/uri?format=chk", body)
            answer = connection.getresponse()
            text = answer.read().decode("utf-8", "replace")
        finally:
            connection.close()
        if answer.status not in (200, 201):
            return {"error": f"status {answer.status}: {text[:300]}"}
        return {"cap": text.strip()}

    def _read(self, operation: Mapping[str, Any]) -> dict[str, Any]:
        key, offset, length = bytes.fromhex(operation["key"]), operation["offset"], operation["length"]
        headers = {"Range": f"bytes={offset}-{offset + length - 1}"} if length else {}
        connection = http.client.HTTPConnection(self._address, timeout=ANSWER_S)
        try:
            connection.request("GET", f"/uri/{urllib.parse.quote(operation['cap'], safe='')}", headers=headers)
            answer = connection.getresponse()
            if answer.status != (206 if length else 200):
                return {"error": f"status {answer.status}: {answer.read(300).decode('utf-8', 'replace')}"}
            at = offset if length else 0
            while piece := answer.read(PIECE):
                if piece != contents(key, at, len(piece)):
                    return {"wrong": f"the bytes from {at} on are not those of the file"}
                at += len(piece)
        finally:
            connection.close()
        if length and at != offset + length:
            return {"wrong": f"{at - offset} bytes came, not {length}"}
        return {}
