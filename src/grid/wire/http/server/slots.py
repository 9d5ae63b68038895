"""The server's answer to a mutable write. [spec wire 17]"""

from __future__ import annotations

from grid.errors import BadWriteEnablerError, FormatError
from grid.limits import MAX_HTTP_SLOT_BODY, READ_CALL_BYTES
from grid.ports import SlotAnswer, SlotSecrets, StorageServer
from grid.wire.budget.measured import MeasuredReads
from grid.wire.budget.reservation import Reservation
from grid.wire.http.format.answers import pack_slot_answer
from grid.wire.http.format.authority import WRITE_ENABLER
from grid.wire.http.format.bodies import parse_slot_request
from grid.wire.http.format.routes import Endpoint
from grid.wire.http.server.service import CBOR_HEADERS, Answerer, Bounds, Request
from grid.wire.http.server.uploads import lease_secrets

WRITE_ENABLER_SIZE = 32


class SlotAnswers:
    """Test and write. The request is held whole, since its tests must pass before its first byte is stored."""

    def __init__(self, server: StorageServer, bounds: Bounds) -> None:
        self._reads = MeasuredReads(server)
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
        with request.exchange.reserve(self._bounds.answers) as room:
            request.exchange.send(200, CBOR_HEADERS, pack_slot_answer(await self._answer(request, secrets, room)))
            await request.exchange.sent(room)

    async def _answer(self, request: Request, secrets: SlotSecrets, room: Reservation) -> SlotAnswer:
        async with self._bounds.body(request.exchange, MAX_HTTP_SLOT_BODY) as body:
            writes, ranges = parse_slot_request(body)
            if sum(length for _, length in ranges) > READ_CALL_BYTES:
                raise FormatError(f"a mutable write that reads more than {READ_CALL_BYTES} bytes of a share")
            return await self._reads.test_and_write(room, request.route.storage_index, secrets, writes, ranges)
