"""Puts small objects, 24 at a time, until the door stops answering: boto3_putting.py URL BUCKET.

Prints the name of each that was answered.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError


def main(url: str, bucket: str) -> None:
    """Put until the first failure of each thread."""
    config = Config(retries={"total_max_attempts": 1}, max_pool_connections=24)
    s3 = boto3.client("s3", endpoint_url=url, config=config)

    def put(thread: int) -> None:
        for number in range(10_000):
            name = f"{thread:02}-{number:04}"
            try:
                s3.put_object(Bucket=bucket, Key=f"killed/{name}", Body=name.encode())
            except (BotoCoreError, ClientError):
                return
            sys.stdout.write(f"{name}\n")  # In one piece: other threads write, too.
            sys.stdout.flush()

    with ThreadPoolExecutor(24) as pool:
        list(pool.map(put, range(24)))


if __name__ == "__main__":
    main(*sys.argv[1:])
