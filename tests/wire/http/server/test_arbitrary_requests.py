"""Nonsensical requests: never a server error."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from grid.wire.http.format.authority import UPLOAD
from tests.wire.http.endpoints import (
    ALLOCATE,
    ALLOCATION,
    ENDPOINTS,
    LEASE,
    MSI,
    REASON,
    SI,
    SLOT_WRITE,
    WRITE,
    fill,
    stop,
)
from tests.wire.http.rig import ask, make_service, running

SEGMENTS = st.sampled_from(
    [
        "immutable",
        "mutable",
        "lease",
        "version",
        "shares",
        "abort",
        "corrupt",
        "grid-read",
        "grid-write",
        "grid-find",
        "grid-store",
    ]
    + ["read-test-write", SI, MSI, "0", "3", "7", "1", "%00", "..", "\u00e9"]
)
HEADERS = st.lists(
    st.tuples(
        st.sampled_from(["Range", "Content-Range", "Accept", "Content-Type", "X-Tahoe-Authorization", "Expect"]),
        st.one_of(
            st.sampled_from(["bytes=0-5", "bytes 0-4/*", "application/cbor", f"{UPLOAD} c2VjcmV0", "100-continue"]),
            st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=20),
        ),
    ),
    max_size=3,
)
SECRETS = st.sampled_from([{}, LEASE, ALLOCATE, WRITE, {UPLOAD: b"secret"}])
BODIES = st.one_of(
    st.none(), st.binary(max_size=60), st.sampled_from([ALLOCATION, SLOT_WRITE, REASON, b"\0\1\7" + bytes(12)])
)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["GET", "PUT", "POST", "PATCH", "DELETE", "HEAD"]),
            st.one_of(
                st.lists(SEGMENTS, max_size=4).map("/".join), st.sampled_from([e[1] for e in ENDPOINTS.values()])
            ),
            SECRETS,
            HEADERS,
            BODIES,
        ),
        min_size=20,
        max_size=20,
    )
)
async def test_request_when_arbitrary_is_never_the_servers_fault(
    requests: list[tuple[str, str, Mapping[str, bytes], list[tuple[str, str]], bytes | None]],
) -> None:
    async with running(await make_service()) as rig:
        await fill(rig)
        for method, path, secrets, headers, body in requests:
            pieces = None if body is None else [body]
            if any(not character.isascii() for character in path):
                continue
            reply = await ask(rig, method, path, pieces, secrets=secrets, headers=headers)
            assert reply.status < 500, (method, path, reply.status)
            assert b"Traceback" not in bytes(reply.body)
        await stop(rig)
