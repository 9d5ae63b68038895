"""Puts objects of 1 KiB, 24 at a time, as boto3 does, and uses them: boto3_packing.py URL BUCKET COUNT.

With COUNT 0, it puts until the door stops answering. It prints the name of each object that was answered.
"""

from __future__ import annotations

import hashlib
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

THREADS = 24


def body(name: str) -> bytes:
    """The contents of an object."""
    return name.encode().ljust(1024, b".")


def use(s3: Any, bucket: str, name: str) -> None:
    """Read an object in each way, and copy it, replace it on a condition, and delete it."""
    got = s3.get_object(Bucket=bucket, Key=name, ChecksumMode="ENABLED")
    assert got["Body"].read() == body(name)
    assert (got["Metadata"], got["ETag"]) == ({"name": name}, f'"{hashlib.md5(body(name)).hexdigest()}"')
    assert s3.get_object(Bucket=bucket, Key=name, Range="bytes=100-199")["Body"].read() == body(name)[100:200]
    assert s3.head_object(Bucket=bucket, Key=name)["ContentLength"] == len(body(name))
    s3.copy_object(Bucket=bucket, Key=f"copies/{name}", CopySource={"Bucket": bucket, "Key": name})
    s3.put_object(Bucket=bucket, Key=name, Body=body(f"new {name}"), IfMatch=got["ETag"])
    assert s3.get_object(Bucket=bucket, Key=name)["Body"].read() == body(f"new {name}")
    s3.delete_object(Bucket=bucket, Key=name)
    assert s3.get_object(Bucket=bucket, Key=f"copies/{name}")["Body"].read() == body(name)


def main(url: str, bucket: str, count: str) -> None:
    """Put all objects; use some of them, if their number was given."""
    config = Config(retries={"total_max_attempts": 1}, max_pool_connections=THREADS)
    s3 = boto3.client("s3", endpoint_url=url, config=config)

    def put(thread: int) -> list[str]:
        names = [f"packed/{thread:02}-{number:04}" for number in range(int(count) // THREADS or 10_000)]
        for name in names:
            try:
                s3.put_object(Bucket=bucket, Key=name, Body=body(name), Metadata={"name": name})
            except (BotoCoreError, ClientError):
                if int(count):
                    raise
                break
            sys.stdout.write(f"{name}\n")  # In one piece: other threads write, too.
            sys.stdout.flush()
        return names

    with ThreadPoolExecutor(THREADS) as pool:
        names = [name for some in pool.map(put, range(THREADS)) for name in some]
        if int(count):
            pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix="packed/")
            listed = {each["Key"]: each["Size"] for page in pages for each in page.get("Contents", ())}
            assert listed == {name: len(body(name)) for name in names}
            list(pool.map(lambda name: use(s3, bucket, name), names[::4]))


if __name__ == "__main__":
    main(*sys.argv[1:])
