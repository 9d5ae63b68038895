"""Answers `t=preview`, a Markdown file as a page, and `t=share`, which helps to share something. [spec webapi 10]

Owns the bounds: the bytes of the text, and the time of the process that formats it, one at a time.
"""

from __future__ import annotations

import subprocess
import sys

from grid.caps import KnownCap, LitCap
from grid.gateway.faults import BadRequest, PayloadTooLarge
from grid.gateway.http.answers import Answer, page
from grid.gateway.http.exchange import Exchange
from grid.gateway.pages.file_cards import kind_of, render_formatted
from grid.gateway.pages.sharing import Sharing, render_sharing
from grid.gateway.shared.services import Services
from grid.sinks import BytesSink

MAX_TEXT = 256 * 2**10
"""Bytes of a text that is formatted."""

CPU_S = 2
"""Seconds of processor time that formatting may take; an ordinary text of this size takes a third of a second."""

WAIT_S = 20.0
"""Seconds after which the process is killed, on a machine that is busy with other things."""

_TOO_MUCH = "this text takes too long to format; open it as it is"


async def share_page(exchange: Exchange, cap: KnownCap, name: str, back: str) -> Answer:
    """The page. cap: not a verify capability. back: the object's page."""
    view = Sharing(
        cap=cap,
        name=name,
        origin=exchange.origin,
        public=_public(exchange),
        back=back,
        is_visit=exchange.is_visit,
        can_end=exchange.is_own and exchange.gateway.settings.share_links is not None,
    )
    # Its two QR codes take some 50 ms.
    return page(await exchange.gateway.store.runtime.cpu.run(render_sharing, view))


def _public(exchange: Exchange) -> str:
    """The name for links that other machines open; "" for the one by which the client reached the gateway."""
    hosts = exchange.gateway.settings.hosts
    return hosts.public if hosts is not None else ""


async def markdown_page(exchange: Exchange, cap: KnownCap, name: str) -> Answer:
    """The file as a page; BadRequest if its name is not that of a Markdown file, PayloadTooLarge."""
    if kind_of(name) != "markdown":
        raise BadRequest("t=preview shows Markdown files only")
    gateway = exchange.gateway
    gateway.require_allowed(cap)
    async with gateway.stores.previews.one():
        text = await _read(gateway, cap)
        if len(text) > MAX_TEXT:
            raise PayloadTooLarge(f"only texts of up to {MAX_TEXT // 2**10} KiB are formatted; open it as it is")
        html = await gateway.store.runtime.cpu.run(format_markdown, text)
    return page(render_formatted(name, html, is_visit=exchange.is_visit))


async def _read(gateway: Services, cap: KnownCap) -> bytes:
    """The file, or one byte more than is formatted."""
    if isinstance(cap, LitCap):
        return cap.data
    sink = BytesSink()
    record = gateway.history.retrieve if cap.is_mutable else gateway.history.download
    with record(cap.storage_index) as operation:
        operation.size = await gateway.store.read(cap, sink, 0, MAX_TEXT + 1)
    return bytes(sink.data)


def format_markdown(text: bytes, cpu_s: int = CPU_S) -> str:
    """Safe HTML of the text, made by a process of its own; PayloadTooLarge. Blocks until the process ends."""
    command = [sys.executable, "-I", "-m", "grid.gateway.files.markdown_worker", str(cpu_s)]
    try:
        done = subprocess.run(
            command, input=text, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=WAIT_S, env={}, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        raise PayloadTooLarge(_TOO_MUCH) from None
    if done.returncode:
        raise PayloadTooLarge(_TOO_MUCH)
    return done.stdout.decode("utf-8")
