"""The server's answers to valid, invalid and unauthorized requests. [spec wire 14-17]"""

from __future__ import annotations

import pytest

from grid.wire.http.format.answers import parse_allocation, parse_numbers, parse_required
from grid.wire.http.format.authority import CANCEL, RENEW, UPLOAD, WRITE_ENABLER
from grid.wire.http.format.bodies import pack_allocation_request
from grid.wire.http.format.cbor import Tagged, pack_cbor_bytes, parse_cbor
from tests.contract.storage_server import share_numbers as numbers
from tests.wire.http.endpoints import ALLOCATE, ENDPOINTS, FREE, LEASE, MSI, REASON, SI, WRITE, ask_endpoint, fill, stop
from tests.wire.http.rig import Rig, ask, make_service, running


@pytest.mark.parametrize("name", ENDPOINTS)
async def test_endpoint_when_asked_with_these_secrets_answers_with_this_status(name: str) -> None:
    async with running(await make_service()) as rig:
        await fill(rig)
        assert await ask_endpoint(rig, name, swissnum="wrong") == 401
        assert await ask_endpoint(rig, name, headers=[("X-Tahoe-Authorization", f"{UPLOAD} ????")]) == 400
        assert await ask_endpoint(rig, name, headers=[("X-Tahoe-Authorization", "unknown-secret eHg=")]) == 400
        usual = ENDPOINTS[name][2]
        for kind in usual:
            assert await ask_endpoint(rig, name, {k: v for k, v in usual.items() if k != kind}) == 400
            assert await ask_endpoint(rig, name, {**usual, kind: b""}) == 400
        for kind in {RENEW, CANCEL, UPLOAD, WRITE_ENABLER} - usual.keys():
            assert await ask_endpoint(rig, name, {**usual, kind: b"x" * 32}) == 400
        for kind in usual.keys() & {RENEW, CANCEL}:
            assert await ask_endpoint(rig, name, {**usual, kind: b"x" * 31}) == 400
        if UPLOAD in usual and name in ("write", "abort"):
            assert await ask_endpoint(rig, name, {**usual, UPLOAD: b"Secret"}) == 401
        if WRITE_ENABLER in usual:
            assert await ask_endpoint(rig, name, {**usual, WRITE_ENABLER: b"W" * 32}) == 401
            assert await ask_endpoint(rig, name, {**usual, WRITE_ENABLER: b"W"}) == 401
        assert await ask_endpoint(rig, name) == ENDPOINTS[name][4]
        await stop(rig)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "nothing", 404),
        ("GET", "version/", 404),
        ("POST", "version", 405),
        ("HEAD", "version", 405),
        ("GET", f"immutable/{SI}", 405),
        ("GET", f"immutable/{SI}/3/abort", 405),
        ("GET", f"immutable/{SI}/4", 404),
        ("GET", f"immutable/{SI}/7", 404),
        ("GET", f"immutable/{SI}/256", 404),
        ("GET", f"immutable/{SI}/-1", 404),
        ("GET", f"immutable/{SI.upper()}/3", 404),
        ("GET", f"immutable/{SI[:-1]}/3", 404),
        ("GET", f"immutable/{SI[:-1]}b/3", 404),
        ("GET", f"mutable/{MSI}/2", 404),
        ("GET", f"mutable/{SI}/shares", 200),
    ],
)
async def test_path_when_wrong_is_refused_and_when_right_is_not(method: str, path: str, status: int) -> None:
    async with running(await make_service()) as rig:
        await fill(rig)
        assert (await ask(rig, method, path)).status == status
        await stop(rig)


async def test_authorization_when_absent_twice_or_not_ascii_is_refused() -> None:
    async with running(await make_service()) as rig:
        for value, status in (("Basic eA==", 401), ("Tahoe-LAFS", 401), ("Tahoe-LAFS \u00e9", 400)):
            reply = await ask(rig, "GET", "version", headers=[("Authorization", value)])
            assert reply.status == status


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        (None, 200),
        ("application/cbor", 200),
        ("APPLICATION/CBOR;q=0.5", 200),
        ("text/html;q=0.3, application/cbor;q=0.9", 200),
        ("*/*", 406),
        ("application/*", 406),
        ("text/html, application/cbor;q=0.9", 406),
        ("application/cbor;q=x", 406),
        ("", 406),
    ],
)
async def test_accept_when_cbor_is_not_preferred_is_refused(accept: str | None, status: int) -> None:
    async with running(await make_service()) as rig:
        await fill(rig)
        headers = [] if accept is None else [("Accept", accept)]
        for name in ("version", "list", "list mutable", "allocate", "read-test-write"):
            assert await ask_endpoint(rig, name, headers=headers) == status
        assert await ask_endpoint(rig, "read", headers=headers) == 200
        await stop(rig)


async def test_content_type_when_not_cbor_is_refused() -> None:
    async with running(await make_service()) as rig:
        await fill(rig)
        for name in ("allocate", "corrupt", "read-test-write", "corrupt mutable"):
            assert await ask_endpoint(rig, name, headers=[("Content-Type", "text/plain")]) == 415
            assert await ask_endpoint(rig, name, headers=[("Content-Type", "application/CBOR; x=y")]) == 200
        await stop(rig)


@pytest.mark.parametrize(("name", "limit"), [("allocate", 8192), ("corrupt", 32768), ("corrupt mutable", 32768)])
async def test_body_when_over_its_limit_is_refused(name: str, limit: int) -> None:
    async with running(await make_service()) as rig:
        await fill(rig)
        method, path, secrets, _, _ = ENDPOINTS[name]
        assert (await ask(rig, method, path, [bytes(limit + 1)], secrets=secrets)).status == 413
        assert (await ask(rig, method, path, [bytes(limit)], secrets=secrets)).status == 400
        longest = pack_cbor_bytes({"reason": "x" * 32757})
        if limit == 32768:
            assert len(longest) == limit
            assert (await ask(rig, method, path, [longest], secrets=secrets)).status == 200
        await stop(rig)


NUMBERS = Tagged(258, [0])


@pytest.mark.parametrize(
    "value",
    [
        5,
        {},
        {"share-numbers": NUMBERS},
        {"share-numbers": NUMBERS, "allocated-size": 1, "more": 1},
        {"share-numbers": [0], "allocated-size": 1},
        {"share-numbers": Tagged(257, [0]), "allocated-size": 1},
        {"share-numbers": Tagged(258, [-1]), "allocated-size": 1},
        {"share-numbers": Tagged(258, [256]), "allocated-size": 1},
        {"share-numbers": Tagged(258, ["0"]), "allocated-size": 1},
        {"share-numbers": Tagged(258, list(range(257))), "allocated-size": 1},
        {"share-numbers": NUMBERS, "allocated-size": -1},
        {"share-numbers": NUMBERS, "allocated-size": "1"},
        {"share-numbers": NUMBERS, "allocated-size": True},
        {b"share-numbers": NUMBERS, b"allocated-size": 1},
    ],
)
async def test_allocation_when_not_of_its_schema_is_refused(value: object) -> None:
    async with running(await make_service()) as rig:
        reply = await ask(rig, "POST", f"immutable/{FREE}", [pack_cbor_bytes(value)], secrets=ALLOCATE)
        assert reply.status == 400


TEST = {"offset": 0, "size": 1, "specimen": b""}
VECTOR: dict[str, object] = {"test": [], "write": [], "new-length": None}


@pytest.mark.parametrize(
    "value",
    [
        {"test-write-vectors": {}},
        {"test-write-vectors": {"0": VECTOR}, "read-vector": []},
        {"test-write-vectors": {256: VECTOR}, "read-vector": []},
        {"test-write-vectors": {-1: VECTOR}, "read-vector": []},
        {"test-write-vectors": {0: {**VECTOR, "new-length": -1}}, "read-vector": []},
        {"test-write-vectors": {0: {**VECTOR, "test": [TEST] * 31}}, "read-vector": []},
        {"test-write-vectors": {0: {**VECTOR, "test": [{**TEST, "operator": b"eq"}]}}, "read-vector": []},
        {"test-write-vectors": {0: {**VECTOR, "test": [{**TEST, "specimen": "text"}]}}, "read-vector": []},
        {"test-write-vectors": {0: {**VECTOR, "write": [{"offset": 0, "data": "text"}]}}, "read-vector": []},
        {"test-write-vectors": {}, "read-vector": [{"offset": 0, "size": 1}] * 31},
        {"test-write-vectors": {}, "read-vector": [{"offset": 0, "size": -1}]},
        {"test-write-vectors": [], "read-vector": []},
    ],
)
async def test_slot_write_when_not_of_its_schema_is_refused_and_changes_nothing(value: object) -> None:
    async with running(await make_service()) as rig:
        await fill(rig)
        path = f"mutable/{MSI}/read-test-write"
        assert (await ask(rig, "POST", path, [pack_cbor_bytes(value)], secrets=WRITE)).status == 400
        assert bytes((await ask(rig, "GET", f"mutable/{MSI}/1")).body) == b"mutable share"
        await stop(rig)


@pytest.mark.parametrize("value", [{"reason": ""}, {"reason": b"bytes"}, {}, {"reason": "x", "y": 1}, "text"])
async def test_report_when_not_of_its_schema_is_refused(value: object) -> None:
    async with running(await make_service()) as rig:
        await fill(rig)
        assert (await ask(rig, "POST", f"immutable/{SI}/3/corrupt", [pack_cbor_bytes(value)])).status == 400
        assert (await ask(rig, "POST", f"immutable/{SI}/4/corrupt", [REASON])).status == 404
        await stop(rig)


@pytest.mark.parametrize("path", [f"immutable/{SI}/3", f"mutable/{MSI}/1"])
async def test_range_when_asked_for_is_clipped_and_when_malformed_is_refused(path: str) -> None:
    async with running(await make_service()) as rig:
        await fill(rig)
        whole = bytes((await ask(rig, "GET", path)).body)
        size = len(whole)
        for first, last in ((0, 0), (2, 4), (5, size - 1), (5, size + 5), (0, 2**62), (size - 1, 2**40)):
            reply = await ask(rig, "GET", path, headers=[("Range", f"bytes={first}-{last}")])
            assert reply.status == 206
            assert bytes(reply.body) == whole[first : last + 1]
            end = min(last, size - 1)
            assert reply.head.headers[b"content-range"] == [f"bytes {first}-{end}/*".encode()]
            assert reply.head.headers[b"content-type"] == [b"application/octet-stream"]
        for first, last in ((size, size), (size, 2**40), (2**62, 2**63), (2**63, 2**63), (10**18, 10**19 - 1)):
            reply = await ask(rig, "GET", path, headers=[("Range", f"bytes={first}-{last}")])
            assert (reply.status, bytes(reply.body)) == (204, b"")
        for value in ("bytes=0-", "bytes=-1", "bytes=0-1,3-4", "items=0-1", "bytes=4-3", "x"):
            assert (await ask(rig, "GET", path, headers=[("Range", value)])).status == 416
        missing = path.rsplit("/", 1)[0] + "/9"
        for last in (5, 2**40):
            assert (await ask(rig, "GET", missing, headers=[("Range", f"bytes=0-{last}")])).status == 404
        await stop(rig)


async def test_lists_when_shares_are_unfinished_or_unknown_leave_them_out() -> None:
    async with running(await make_service()) as rig:
        await fill(rig)
        assert parse_numbers((await ask(rig, "GET", f"immutable/{SI}/shares")).body) == {3}
        assert parse_numbers((await ask(rig, "GET", f"immutable/{FREE}/shares")).body) == frozenset()
        assert parse_numbers((await ask(rig, "GET", f"mutable/{MSI}/shares")).body) == {1}
        assert (await ask(rig, "PUT", f"lease/{FREE}", [], secrets=LEASE)).status == 404
        assert (await ask(rig, "PUT", f"lease/{MSI}", [], secrets=LEASE)).status == 204
        await stop(rig)


async def test_version_when_asked_has_exactly_the_keys_of_its_schema() -> None:
    async with running(await make_service()) as rig:
        reply = await ask(rig, "GET", "version")
        value = parse_cbor(reply.body)
        key = b"http://allmydata.org/tahoe/protocols/storage/v1"
        assert set(value) == {key, b"application-version"}
        assert set(value[key]) == {
            b"maximum-immutable-share-size",
            b"maximum-mutable-share-size",
            b"available-space",
        }
        assert reply.head.headers[b"content-type"] == [b"application/cbor"]


async def patch(rig: Rig, number: int, first: int, data: bytes, **options: object) -> tuple[int, list[tuple[int, int]]]:
    headers = [("Content-Range", f"bytes {first}-{first + len(data) - 1}/*")]
    secrets = {UPLOAD: b"secret"}
    reply = await ask(rig, "PATCH", f"immutable/{SI}/{number}", [data], secrets=secrets, headers=headers)
    return reply.status, parse_required(reply.body) if reply.status < 300 else []


async def test_upload_when_written_in_any_order_says_what_is_missing_and_closes_itself() -> None:
    async with running(await make_service()) as rig:
        await fill(rig)
        assert await patch(rig, 7, 4, b"45") == (200, [(0, 4), (6, 10)])
        assert await patch(rig, 7, 3, b"345") == (200, [(0, 3), (6, 10)])
        assert (await patch(rig, 7, 3, b"3x"))[0] == 409
        assert (await patch(rig, 7, 8, b"890"))[0] == 416
        rig.pool.close()  # Uploads do not belong to connections.
        assert await patch(rig, 7, 6, b"6789") == (200, [(0, 3)])
        assert await patch(rig, 7, 0, b"012") == (201, [])
        assert (await patch(rig, 7, 0, b"012"))[0] == 404
        assert (await ask(rig, "PUT", f"immutable/{SI}/7/abort", [], secrets={UPLOAD: b"secret"})).status == 405
        assert bytes((await ask(rig, "GET", f"immutable/{SI}/7")).body) == b"0123456789"


async def test_upload_when_aborted_is_as_if_never_begun() -> None:
    async with running(await make_service()) as rig:
        await fill(rig)
        path = f"immutable/{SI}/7/abort"
        assert (await ask(rig, "PUT", path, [], secrets={UPLOAD: b"other"})).status == 401
        assert (await ask(rig, "PUT", path, [], secrets={UPLOAD: b"secret"})).status == 200
        assert (await ask(rig, "PUT", path, [], secrets={UPLOAD: b"secret"})).status == 404
        reply = await ask(rig, "POST", f"immutable/{SI}", [pack_allocation_request([3, 7], 10)], secrets=ALLOCATE)
        assert parse_allocation(reply.body) == (numbers(3), numbers(7))
        reply = await ask(rig, "POST", f"immutable/{SI}", [pack_allocation_request([3, 7], 10)], secrets=ALLOCATE)
        assert parse_allocation(reply.body) == (numbers(3), numbers())
        await stop(rig)


@pytest.mark.parametrize(
    ("content_range", "body", "status"),
    [
        (None, b"x", 416),
        ("bytes 0-0", b"x", 416),
        ("bytes */5", b"x", 416),
        ("items 0-0/*", b"x", 416),
        ("bytes 1-0/*", b"", 416),
        ("bytes 0-4/*", b"abcd", 400),
        ("bytes 0-4/*", b"", 400),
        ("bytes 0-4/99", b"abcdefgh", 200),
        ("bytes 9-10/*", b"ab", 416),
    ],
)
async def test_write_when_its_range_and_its_body_disagree_is_refused(
    content_range: str | None, body: bytes, status: int
) -> None:
    async with running(await make_service()) as rig:
        await fill(rig)
        headers = [] if content_range is None else [("Content-Range", content_range)]
        path, secrets = f"immutable/{SI}/7", {UPLOAD: b"secret"}
        reply = await ask(rig, "PATCH", path, [body], secrets=secrets, headers=headers)
        assert reply.status == status
        if status == 200:
            assert parse_required(reply.body) == [(5, 10)]
        await stop(rig)


async def test_plain_port_when_asked_serves_reads_only_and_only_to_the_token() -> None:
    async with running(await make_service()) as rig:
        await fill(rig)
        for name, (_, _, _, _, usual) in ENDPOINTS.items():
            is_read = name.startswith(("list", "read", "batched")) and name not in ("read-test-write", "batched write")
            assert await ask_endpoint(rig, name, in_the_clear=True) == (usual if is_read else 404)
            if is_read:
                assert await ask_endpoint(rig, name, in_the_clear=True, swissnum="x") == 401
        await stop(rig)
