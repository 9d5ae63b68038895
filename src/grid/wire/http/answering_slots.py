"""The server's answer to a mutable write. [spec wire 17]"""

from __future__ import annotations

from grid.errors import BadWriteEnablerError, FormatError
from grid.limits import MAX_HTTP_SLOT_BODY, READ_CALL_BYTES
from grid.ports import SlotSecrets, StorageServer
from grid.wire.http.answering_uploads import lease_secrets
from grid.wire.http.answers import pack_slot_answer
from grid.wire.http.authority import WRITE_ENABLER
from grid.wire.http.bodies import parse_slot_request
from grid.wire.http.routes import Endpoint
from grid.wire.http.service import CBOR_HEADERS, Answerer, Bounds, Request

WRITE_ENABLER_SIZE = 32


class SlotAnswers:
    """Test and write. The request is held whole, since its tests must pass before its first octet is stored."""

    def __init__(self, server: StorageServer, bounds: Bounds) -> None:
        self._server = server
        self._bounds = bounds

    def answerers(self) -> dict[Endpoint, Answerer]:
        """By endpoint."""
        return {Endpoint.READ_TEST_WRITE: self._read_test_write}

    async def _read_test_write(self, request: Request) -> None:
        request.require_cbor_wanted()
        request.require_cbor_sent()
        enabler = request.secrets[WRITE_ENABLER]
        if len(enabler) != WRITE_ENABLER_SIZE:
            raise BadWriteEnablerError("no slot has a write enabler of that length")
        secrets = SlotSecrets(write_enabler=enabler, lease=lease_secrets(request))
        body, reserved = await self._bounds.read_body(request.exchange, MAX_HTTP_SLOT_BODY)
        try:
            writes, ranges = parse_slot_request(body)
            if sum(length for _, length in ranges) > READ_CALL_BYTES:
                raise FormatError(f"a mutable write that reads more than {READ_CALL_BYTES} octets of a share")
            answer = await self._server.test_and_write(request.route.storage_index, secrets, writes, ranges)
            request.exchange.send(200, CBOR_HEADERS, pack_slot_answer(answer))
        finally:
            self._bounds.bodies.release(reserved)
