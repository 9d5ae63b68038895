"""boto3 at a door, run by the Python that has boto3 installed: boto3_program.py SCHEME PORT DOMAIN STYLE BUCKET.

It prints a line for each thing that it did, and fails at the first that the door does not do as boto3 expects.
"""

from __future__ import annotations

import io
import socket
import sys
import urllib.request
from typing import Any

import boto3
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import ClientError

PART = 5 * 2**20

_resolve = socket.getaddrinfo


def refused(call: Any, **arguments: Any) -> str:
    """The code with which a call is refused."""
    try:
        call(**arguments)
    except ClientError as error:
        return str(error.response["Error"]["Code"])
    raise AssertionError("the call was not refused")


def objects(s3: Any, bucket: str) -> None:
    """Objects with all that S3 keeps of one."""
    put = s3.put_object(
        Bucket=bucket, Key="a/b \u00e9+.txt", Body=b"hello", ContentType="text/x", Metadata={"color": "red"},
        Tagging="k=v", ChecksumAlgorithm="SHA256",
    )  # fmt: skip
    got = s3.get_object(Bucket=bucket, Key="a/b \u00e9+.txt", ChecksumMode="ENABLED")
    assert got["Body"].read() == b"hello"
    assert (got["ContentType"], got["Metadata"], got["ETag"]) == ("text/x", {"color": "red"}, put["ETag"])
    assert got["ChecksumSHA256"] == put["ChecksumSHA256"]
    assert s3.get_object(Bucket=bucket, Key="a/b \u00e9+.txt", Range="bytes=1-2")["Body"].read() == b"el"
    assert refused(s3.get_object, Bucket=bucket, Key="absent") == "NoSuchKey"
    assert refused(s3.put_object, Bucket=bucket, Key="a/b \u00e9+.txt", IfNoneMatch="*") == "PreconditionFailed"
    s3.put_object(Bucket=bucket, Key="a/b \u00e9+.txt", Body=b"again", IfMatch=put["ETag"], Tagging="k=w")
    assert s3.get_object_tagging(Bucket=bucket, Key="a/b \u00e9+.txt")["TagSet"] == [{"Key": "k", "Value": "w"}]
    s3.put_object_tagging(Bucket=bucket, Key="a/b \u00e9+.txt", Tagging={"TagSet": [{"Key": "n", "Value": "1"}]})
    assert s3.get_object(Bucket=bucket, Key="a/b \u00e9+.txt")["TagCount"] == 1
    s3.copy_object(Bucket=bucket, Key="copy", CopySource={"Bucket": bucket, "Key": "a/b \u00e9+.txt"})
    found = s3.get_object_attributes(Bucket=bucket, Key="copy", ObjectAttributes=["ETag", "ObjectSize"])
    assert found["ObjectSize"] == 5
    print("objects")


def parts(s3: Any, bucket: str) -> None:
    """Uploads in parts, by boto3's own transfers and by hand."""
    data = bytes(range(256)) * (2 * PART // 256) + b"the end"
    config = TransferConfig(multipart_threshold=PART, multipart_chunksize=PART, max_concurrency=4)
    s3.upload_fileobj(io.BytesIO(data), bucket, "parts", Config=config)
    kept = io.BytesIO()
    s3.download_fileobj(bucket, "parts", kept, Config=config)
    assert kept.getvalue() == data
    assert s3.head_object(Bucket=bucket, Key="parts")["ETag"].endswith('-3"')
    s3.copy({"Bucket": bucket, "Key": "parts"}, bucket, "parts copy", Config=config)
    assert s3.get_object(Bucket=bucket, Key="parts copy")["Body"].read() == data
    begun = s3.create_multipart_upload(Bucket=bucket, Key="given up")["UploadId"]
    s3.upload_part(Bucket=bucket, Key="given up", UploadId=begun, PartNumber=1, Body=b"x")
    listed = s3.list_multipart_uploads(Bucket=bucket)["Uploads"]
    assert [(each["Key"], each["UploadId"]) for each in listed] == [("given up", begun)]
    assert len(s3.list_parts(Bucket=bucket, Key="given up", UploadId=begun)["Parts"]) == 1
    s3.abort_multipart_upload(Bucket=bucket, Key="given up", UploadId=begun)
    assert "Uploads" not in s3.list_multipart_uploads(Bucket=bucket)
    print("parts")


def presigned(s3: Any, bucket: str, scheme: str) -> None:
    """Addresses that are signed, as anybody can use them."""
    put = s3.generate_presigned_url("put_object", Params={"Bucket": bucket, "Key": "signed"}, ExpiresIn=60)
    get = s3.generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": "signed"}, ExpiresIn=60)
    if scheme == "http":
        with urllib.request.urlopen(urllib.request.Request(put, data=b"by address", method="PUT")) as answer:
            assert answer.status == 200
        with urllib.request.urlopen(get) as answer:
            assert answer.read() == b"by address"
    print("presigned")


def listings(s3: Any, bucket: str) -> None:
    """Pages of keys, and their removal."""
    keys = [f"list/{number:02}" for number in range(12)]
    for key in keys:
        s3.put_object(Bucket=bucket, Key=key, Body=b"")
    pages = s3.get_paginator("list_objects_v2").paginate(
        Bucket=bucket, Prefix="list/", PaginationConfig={"PageSize": 5}
    )
    assert [each["Key"] for page in pages for each in page["Contents"]] == keys
    top = s3.list_objects_v2(Bucket=bucket, Delimiter="/")
    assert {"Prefix": "list/"} in top["CommonPrefixes"]
    everything = [each["Key"] for each in s3.list_objects(Bucket=bucket)["Contents"]]
    s3.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": key} for key in everything]})
    assert s3.list_objects_v2(Bucket=bucket)["KeyCount"] == 0
    print("listings")


def main(scheme: str, port: str, domain: str, style: str, bucket: str) -> None:
    """Everything, with buckets in the path or in the host's name."""
    endpoint = f"{scheme}://127.0.0.1:{port}"
    if style == "virtual":
        socket.getaddrinfo = lambda host, *rest, **named: _resolve(
            "127.0.0.1" if str(host).endswith(domain) else host, *rest, **named
        )
        endpoint = f"{scheme}://{domain}:{port}"
    # Without a version boto3 signs addresses by version 2, which the door does not take.
    config = Config(s3={"addressing_style": style}, signature_version="s3v4", retries={"total_max_attempts": 1})
    s3 = boto3.client("s3", endpoint_url=endpoint, config=config)
    if bucket not in [each["Name"] for each in s3.list_buckets()["Buckets"]]:
        s3.create_bucket(Bucket=bucket)
    objects(s3, bucket)
    parts(s3, bucket)
    presigned(s3, bucket, scheme)
    listings(s3, bucket)
    s3.delete_bucket(Bucket=bucket)
    print("done")


if __name__ == "__main__":
    main(*sys.argv[1:])
