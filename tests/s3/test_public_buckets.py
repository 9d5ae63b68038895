"""Public buckets: everybody can read and list them without an access key, and nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from grid.errors import ConfigError
from grid.s3.accounts import PUBLIC, Account, everybody, pack_accounts, parse_accounts
from tests.gateway.rig import Reply
from tests.s3.rig import MAIN, S3Rig, code, path, running_door, texts

RULES = (
    b"<CORSConfiguration><CORSRule><AllowedOrigin>*</AllowedOrigin><AllowedMethod>GET</AllowedMethod></CORSRule>"
    b"</CORSConfiguration>"
)
CHANGES = [
    ("PUT", "/site/a", b"new", {}),
    ("PUT", "/site/b", b"", {"x-amz-copy-source": "/site/a"}),
    ("PUT", "/site/a?tagging", b"<Tagging><TagSet/></Tagging>", {}),
    ("DELETE", "/site/a?tagging", b"", {}),
    ("PUT", "/site?tagging", b"<Tagging><TagSet/></Tagging>", {}),
    ("DELETE", "/site?tagging", b"", {}),
    ("PUT", "/site?cors", RULES, {}),
    ("DELETE", "/site?cors", b"", {}),
    ("PUT", "/site?acl", b"", {"x-amz-acl": "private"}),
    ("PUT", "/site/a?acl", b"", {"x-amz-acl": "private"}),
    ("DELETE", "/site/a", b"", {}),
    ("POST", "/site?delete", b"<Delete><Object><Key>a</Key></Object></Delete>", {}),
    ("POST", "/site/a?uploads", b"", {}),
    ("PUT", "/site/a?partNumber=1&uploadId=0", b"part", {}),
    ("POST", "/site/a?uploadId=0", b"<CompleteMultipartUpload/>", {}),
    ("DELETE", "/site/a?uploadId=0", b"", {}),
    ("DELETE", "/site", b"", {}),
    ("PUT", "/another", b"", {}),
]
HIDDEN = [
    "/",
    "/bucket",
    "/bucket/a",
    "/nothing",
    "/site?uploads",
    "/site?versions",
    "/site?versioning",
    "/site/a?tagging",
    "/site?tagging",
    "/site?cors",
]


@asynccontextmanager
async def with_site(tmp_path: Path) -> AsyncIterator[S3Rig]:
    """A door whose bucket `bucket`, with the object `a`, is also the public bucket `site`."""
    async with running_door(tmp_path) as rig:
        await rig.ask("PUT", path("a"), b"old", {"Content-Type": "text/x"})
        rig.accounts[PUBLIC] = everybody({"site": rig.accounts[MAIN].buckets["bucket"]})
        yield rig


async def ask(rig: S3Rig, method: str, target: str, body: bytes = b"", headers: dict[str, str] | None = None) -> Reply:
    """A request that is not signed."""
    fields = {"Host": rig.host, "Connection": "close", "Content-Length": str(len(body)), **(headers or {})}
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items()), "", ""]
    return await rig.send("\r\n".join(lines).encode() + body, head=method == "HEAD")


async def test_a_public_bucket_is_read_and_listed_without_a_key(tmp_path: Path) -> None:
    async with with_site(tmp_path) as rig:
        got = await ask(rig, "GET", "/site/a")
        assert (got.status, got.body, got.headers["content-type"]) == (200, b"old", "text/x")
        assert (await ask(rig, "GET", "/site/a", headers={"Range": "bytes=1-1"})).body == b"l"
        for target in ("/site/a", "/site"):
            assert (await ask(rig, "HEAD", target)).status == 200
        for target in ("/site", "/site?list-type=2&fetch-owner=true", "/site?location"):
            reply = await ask(rig, "GET", target)
            assert reply.status == 200
            assert texts(reply.body, "Key") == ([] if "location" in target else ["a"])
        assert code(await ask(rig, "GET", "/site/none")) == "NoSuchKey"


async def test_nobody_changes_a_public_bucket_without_a_key(tmp_path: Path) -> None:
    async with with_site(tmp_path) as rig:
        for method, target, body, headers in CHANGES:
            refused = await ask(rig, method, target, body, headers)
            assert (refused.status, code(refused)) == (403, "AccessDenied"), (method, target)
            says = b"this bucket can be read without a signature, but not written"
            assert (says in refused.body) is target.startswith("/site"), (method, target)
        assert (await rig.ask("GET", path("a"))).body == b"old"
        assert await rig.keys() == ["a"]


async def test_what_is_not_public_is_hidden_from_those_without_a_key(tmp_path: Path) -> None:
    async with with_site(tmp_path) as rig:
        for target in HIDDEN:
            refused = await ask(rig, "GET", target)
            assert (refused.status, code(refused)) == (403, "AccessDenied"), target
        forced = await ask(rig, "GET", "/site/a?response-content-type=text/html")
        assert code(forced) == "InvalidRequest"


async def test_a_bad_signature_reads_no_public_bucket(tmp_path: Path) -> None:
    async with with_site(tmp_path) as rig:
        assert code(await rig.ask("GET", "/site/a", secret="wrong")) == "SignatureDoesNotMatch"
        assert code(await rig.ask("GET", "/site/a", key=PUBLIC, secret="")) == "AuthorizationHeaderMalformed"
        assert code(await ask(rig, "GET", "/site/a", headers={"Authorization": ""})) == "AccessDenied"
        for parameter in ("X-Amz-Signature=0", "AWSAccessKeyId=a&Signature=b&Expires=1"):
            assert (await ask(rig, "GET", f"/site/a?{parameter}")).status in (400, 403)


async def test_a_signed_request_sees_the_buckets_of_its_key(tmp_path: Path) -> None:
    async with with_site(tmp_path) as rig:
        assert code(await rig.ask("GET", "/site/a")) == "NoSuchBucket"
        assert texts((await rig.ask("GET", "/")).body, "Name") == ["bucket"]


async def test_a_bucket_that_is_private_again_is_refused_at_once(tmp_path: Path) -> None:
    async with with_site(tmp_path) as rig:
        assert (await ask(rig, "GET", "/site/a")).status == 200
        del rig.accounts[PUBLIC]
        assert code(await ask(rig, "GET", "/site/a")) == "AccessDenied"


async def test_the_file_has_only_read_capabilities_of_public_buckets(tmp_path: Path) -> None:
    async with running_door(tmp_path) as rig:
        root = rig.accounts[MAIN].buckets["bucket"]
        given = {PUBLIC: everybody({"site": root}), "GKA": Account(access_key="GKA", secret="s", buckets={"b": root})}
        found = parse_accounts(pack_accounts(given), "file")
        assert found == given
        assert found[PUBLIC].buckets["site"].authority == "read"
        forged = pack_accounts(given).replace(root.read_cap().to_string(), root.to_string())
        assert parse_accounts(forged, "file")[PUBLIC].buckets["site"].authority == "read"


@pytest.mark.parametrize("public", ['["a"]', '{"a": 1}', '{"": "x"}', "3"])
def test_a_file_with_invalid_public_buckets_is_refused(public: str) -> None:
    with pytest.raises(ConfigError, match="not a file of access keys"):
        parse_accounts(f'{{"keys": [], "public": {public}}}', "file")
