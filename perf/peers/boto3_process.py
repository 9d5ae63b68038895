"""The boto3 process: takes requests and sends answers as lines of JSON, several at a time.

Runs in boto3's own environment, without this project: it imports only boto3 and the standard library. Arguments:
boto3_process.py ENDPOINT [tuned]; the account is in the file named by AWS_SHARED_CREDENTIALS_FILE.
"""

from __future__ import annotations

import hashlib
import json
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import boto3
from boto3.s3.transfer import TransferConfig
from botocore.config import Config

BUCKET = "bench"
AT_ONCE = 128
"""Requests answered in parallel, and connections kept; the default is ten connections."""

TUNED = 32
CHUNK = 20_000_000


class Worker:
    """A client with its connections."""

    def __init__(self, endpoint: str, tuned: bool) -> None:
        settings = Config(s3={"addressing_style": "path"}, max_pool_connections=AT_ONCE if tuned else 10)
        self._client = boto3.client("s3", endpoint_url=endpoint, config=settings)
        self._tuned = tuned
        self._transfer = (
            TransferConfig(max_concurrency=TUNED, multipart_chunksize=CHUNK, multipart_threshold=CHUNK)
            if tuned
            else TransferConfig()
        )

    def answer(self, what: str, name: str, path: str) -> list[str] | None:
        """Carry out a request."""
        if what == "bucket":
            self._client.create_bucket(Bucket=BUCKET)
        elif what == "put":
            self._client.upload_file(path, BUCKET, name, Config=self._transfer)
        elif what == "get":
            self._client.download_file(BUCKET, name, path, Config=self._transfer)
        elif what == "warm":
            self._client.get_object(Bucket=BUCKET, Key=name, Range="bytes=0-4")["Body"].read()
        elif what == "list":
            pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=name)
            return [entry["Key"] for page in pages for entry in page.get("Contents", ())]
        elif what == "first":
            seconds, digest = self._first_byte(name)
            return [str(seconds), digest]
        elif what == "delete":
            self._client.head_object(Bucket=BUCKET, Key=name)
            self._client.delete_object(Bucket=BUCKET, Key=name)
        elif what == "put-folder":
            self._each("put", [(f"{name}/{file.name}", str(file)) for file in sorted(Path(path).iterdir())])
        elif what == "get-folder":
            Path(path).mkdir()
            keys = self.answer("list", f"{name}/", "") or []
            self._each("get", [(key, f"{path}/{key.partition('/')[2]}") for key in keys])
        elif what == "delete-folder":
            self._each("delete", [(key, "") for key in self.answer("list", f"{name}/", "") or []])
        else:
            raise ValueError(f"no question {what!r}")
        return None

    def _first_byte(self, name: str) -> tuple[float, str]:
        """Seconds until the first byte of an object, and the SHA-256 of all of it."""
        started = time.perf_counter()
        body = self._client.get_object(Bucket=BUCKET, Key=name)["Body"]
        first = body.read(1)
        seconds = time.perf_counter() - started
        return seconds, hashlib.sha256(first + body.read()).hexdigest()

    def _each(self, what: str, items: list[tuple[str, str]]) -> None:
        if not self._tuned:
            for name, path in items:
                self.answer(what, name, path)
            return
        with ThreadPoolExecutor(TUNED) as pool:
            list(pool.map(lambda item: self.answer(what, *item), items))


def main(arguments: list[str]) -> None:
    """Answer requests until stdin ends."""
    worker = Worker(arguments[0], "tuned" in arguments[1:])
    turn = threading.Lock()

    def tell(line: dict[str, Any]) -> None:
        with turn:
            sys.stdout.write(json.dumps(line) + "\n")
            sys.stdout.flush()

    def one(question: dict[str, Any]) -> None:
        started = time.perf_counter()
        try:
            result = worker.answer(question["what"], question["name"], question["path"])
        except Exception as error:  # noqa: BLE001 - whatever it is, the answer says it
            tell({"id": question["id"], "error": f"{type(error).__name__}: {error}"})
        else:
            tell({"id": question["id"], "seconds": time.perf_counter() - started, "result": result})

    tell({"id": 0, "version": boto3.__version__})
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for line in sys.stdin:
            pool.submit(one, json.loads(line))


if __name__ == "__main__":
    main(sys.argv[1:])
