"""Slow clients of doors: their requests are valid, so that the door does all that it would do for others."""

from __future__ import annotations

import time

from grid.s3.authentication import parse_claim, verify_claim
from grid.s3.signature import RequestHead
from perf.peers.object_servers import Versity
from perf.workloads.slow_clients import signed_head


def test_the_request_of_a_slow_client_is_signed_and_says_how_long_its_body_is() -> None:
    server = Versity()
    first, *lines = signed_head(server, "PUT", "/bench/slow", 6_000_000).decode().removesuffix("\r\n\r\n").split("\r\n")
    fields = [(name, value) for name, _, value in (line.partition(": ") for line in lines)]
    head = RequestHead(method="PUT", path="/bench/slow", query=[], headers=fields)

    claim = parse_claim(head)

    assert first == "PUT /bench/slow HTTP/1.1"
    assert claim.access_key == server.access_key
    assert verify_claim(head, claim, server.secret_key, time.time())
    assert head.header("content-length") == "6000000"
