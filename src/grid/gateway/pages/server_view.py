"""What the gateway shows of a storage server, on pages and to programs. Pure."""

from __future__ import annotations

from attrs import frozen


@frozen(kw_only=True)
class ServerView:
    """What is known of a storage server. status: one line. available_space: bytes. host: where it was announced, "" if nowhere."""

    server_id: str
    nickname: str
    is_connected: bool
    status: str
    version: str | None = None
    available_space: int | None = None
    last_received_at: float | None = None
    transport: str = ""
    latency_s: float | None = None
    host: str = ""
