"""Uploads on their way to the gateway, as those see them who watch."""

from __future__ import annotations

from pathlib import Path

from twisted.internet import reactor
from twisted.internet.task import deferLater

from tests.gateway.rig import running_gateway


async def test_upload_when_it_arrives_slowly_then_what_came_is_told_under_its_label(tmp_path: Path) -> None:
    async with running_gateway(tmp_path) as rig:
        wire = await rig.connect()
        head = f"PUT /uri?progress=mine HTTP/1.1\r\nHost: {rig.host}\r\nContent-Length: 3000\r\n\r\n"
        wire.send(head.encode() + bytes(1000))
        while not (rig.gateway.history.active and rig.gateway.history.active[0].received == 1000):
            await deferLater(reactor, 0)
        [operation] = rig.gateway.history.active
        assert (operation.label, operation.size, operation.to_json()["received"]) == ("mine", 3000, 1000)
        shown = (await rig.ask("GET", "/status")).body.decode()
        assert "Receiving: 1000 B of 3.00 kB" in shown or "Receiving: 1.00 kB of 3.00 kB" in shown
        assert 'value="0.1667"' in shown
        wire.send(bytes(2000))
        assert (await wire.reply()).status == 200
        [done] = rig.gateway.history.recent
        assert (done.received, done.fraction) == (3000, 1.0)
