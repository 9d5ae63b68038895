"""Features in which S3 servers differ, tried with boto3: feature_program.py URL, with the account in the environment.

Prints as JSON whether the server has each. A feature counts only if it has its effect, not if a request for it is accepted.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

BUCKET = "features"


class Server:
    """A server with a bucket for each feature, so that none affects another."""

    def __init__(self, url: str) -> None:
        self.url = url
        config = Config(signature_version="s3v4", s3={"addressing_style": "path"}, retries={"total_max_attempts": 1})
        self.s3: Any = boto3.client("s3", endpoint_url=url, config=config)
        self._count = 0

    def bucket(self, **options: Any) -> str:
        """A new bucket with the object `a`."""
        self._count += 1
        name = f"{BUCKET}-{self._count}"
        self.s3.create_bucket(Bucket=name, **options)
        self.s3.put_object(Bucket=name, Key="a", Body=b"first")
        return name

    def anonymous(
        self, path: str, method: str = "GET", headers: dict[str, str] | None = None, body: bytes | None = None
    ) -> Any:
        """The answer to a request that is not signed: status, headers and body."""
        request = urllib.request.Request(f"{self.url}/{path}", data=body, headers=headers or {}, method=method)
        try:
            with urllib.request.urlopen(request) as answer:
                return answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as refusal:
            return refusal.code, refusal.headers, refusal.read()


def object_tags(server: Server) -> bool:
    name, tags = server.bucket(), [{"Key": "k", "Value": "v"}]
    server.s3.put_object_tagging(Bucket=name, Key="a", Tagging={"TagSet": tags})
    return bool(server.s3.get_object_tagging(Bucket=name, Key="a")["TagSet"] == tags)


def bucket_tags(server: Server) -> bool:
    name, tags = server.bucket(), [{"Key": "k", "Value": "v"}]
    server.s3.put_bucket_tagging(Bucket=name, Tagging={"TagSet": tags})
    return bool(server.s3.get_bucket_tagging(Bucket=name)["TagSet"] == tags)


def attributes(server: Server) -> bool:
    found = server.s3.get_object_attributes(Bucket=server.bucket(), Key="a", ObjectAttributes=["ObjectSize"])
    return bool(found["ObjectSize"] == 5)


def list_versions(server: Server) -> bool:
    return len(server.s3.list_object_versions(Bucket=server.bucket())["Versions"]) == 1


def versions(server: Server) -> bool:
    name = server.bucket()
    server.s3.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
    first = server.s3.put_object(Bucket=name, Key="b", Body=b"1")["VersionId"]
    server.s3.put_object(Bucket=name, Key="b", Body=b"2")
    return bool(server.s3.get_object(Bucket=name, Key="b", VersionId=first)["Body"].read() == b"1")


def locks(server: Server) -> bool:
    name = server.bucket(ObjectLockEnabledForBucket=True)
    held = server.s3.put_object(Bucket=name, Key="b", Body=b"1", ObjectLockLegalHoldStatus="ON")
    try:
        server.s3.delete_object(Bucket=name, Key="b", VersionId=held["VersionId"])
    except ClientError:  # Servers call it AccessDenied or InvalidRequest.
        return bool(server.s3.get_object(Bucket=name, Key="b", VersionId=held["VersionId"])["Body"].read() == b"1")
    return False


def lists_shown(server: Server) -> bool:
    name = server.bucket()
    shown = server.s3.get_bucket_acl(Bucket=name)["Grants"] and server.s3.get_object_acl(Bucket=name, Key="a")["Grants"]
    return bool(shown[0]["Permission"] == "FULL_CONTROL")


def bucket_lists(server: Server) -> bool:
    name = server.bucket(ObjectOwnership="BucketOwnerPreferred")
    server.s3.put_bucket_acl(Bucket=name, ACL="public-read")
    return len(server.s3.get_bucket_acl(Bucket=name)["Grants"]) > 1


def object_lists(server: Server) -> bool:
    name = server.bucket(ObjectOwnership="BucketOwnerPreferred")
    server.s3.put_object_acl(Bucket=name, Key="a", ACL="public-read")
    return bool(server.anonymous(f"{name}/a")[0] == 200)


def policies(server: Server) -> bool:
    name = server.bucket()
    said = [
        {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "s3:GetObject", "Resource": f"arn:aws:s3:::{name}/*"}
    ]
    before = server.anonymous(f"{name}/a")[0]
    policy = json.dumps({"Version": "2012-10-17", "Statement": said})
    server.s3.put_bucket_policy(Bucket=name, Policy=policy)
    status, _, body = server.anonymous(f"{name}/a")
    return (before, status, body) == (403, 200, b"first")


def bucket_cors(server: Server) -> bool:
    name, origin = server.bucket(), "https://app.example.org"
    rule = {"AllowedOrigins": [origin], "AllowedMethods": ["GET"], "AllowedHeaders": ["*"]}
    server.s3.put_bucket_cors(Bucket=name, CORSConfiguration={"CORSRules": [rule]})
    url = server.s3.generate_presigned_url("get_object", Params={"Bucket": name, "Key": "a"})
    allowed = []
    for asking in (origin, "https://other.example.org"):
        headers = {"Origin": asking, "Access-Control-Request-Method": "GET"}
        status, said, _ = server.anonymous(url.removeprefix(f"{server.url}/"), "OPTIONS", headers)
        allowed.append(status < 300 and said.get("Access-Control-Allow-Origin") == asking)
    return allowed == [True, False]


def websites(server: Server) -> bool:
    name = server.bucket()
    index = {"IndexDocument": {"Suffix": "index.html"}}
    server.s3.put_bucket_website(Bucket=name, WebsiteConfiguration=index)
    return bool(server.s3.get_bucket_website(Bucket=name)["IndexDocument"]["Suffix"] == "index.html")


def forms(server: Server) -> bool:
    name = server.bucket()
    made = server.s3.generate_presigned_post(name, "form")
    boundary = "feature-program"
    parts = [
        f'--{boundary}\r\nContent-Disposition: form-data; name="{k}"\r\n\r\n{v}\r\n' for k, v in made["fields"].items()
    ]
    parts.append(
        f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\nposted\r\n--{boundary}--\r\n'
    )
    headers = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
    server.anonymous(made["url"].removeprefix(f"{server.url}/"), "POST", headers, "".join(parts).encode())
    return bool(server.s3.get_object(Bucket=name, Key="form")["Body"].read() == b"posted")


def lifecycle(server: Server) -> bool:
    name = server.bucket()
    rule = {"ID": "old", "Status": "Enabled", "Filter": {"Prefix": ""}, "Expiration": {"Days": 30}}
    server.s3.put_bucket_lifecycle_configuration(Bucket=name, LifecycleConfiguration={"Rules": [rule]})
    return len(server.s3.get_bucket_lifecycle_configuration(Bucket=name)["Rules"]) == 1


def customer_keys(server: Server) -> bool:
    name, key = server.bucket(), os.urandom(32)
    given = {"SSECustomerAlgorithm": "AES256", "SSECustomerKey": key}
    server.s3.put_object(Bucket=name, Key="b", Body=b"1", **given)
    try:
        server.s3.get_object(Bucket=name, Key="b")
    except ClientError:
        return bool(server.s3.get_object(Bucket=name, Key="b", **given)["Body"].read() == b"1")
    return False


def bucket_notifications(server: Server) -> bool:
    name = server.bucket()
    server.s3.put_bucket_notification_configuration(Bucket=name, NotificationConfiguration={})
    return "ResponseMetadata" in server.s3.get_bucket_notification_configuration(Bucket=name)


FEATURES: tuple[Callable[[Server], bool], ...] = (
    object_tags, bucket_tags, attributes, list_versions, versions, locks, lists_shown, bucket_lists, object_lists,
    policies, bucket_cors, websites, forms, lifecycle, customer_keys, bucket_notifications,
)  # fmt: skip


def main(url: str) -> None:
    """Try each. A refusal means no, whatever its reason."""
    server, found = Server(url), {}
    for feature in FEATURES:
        try:
            found[feature.__name__] = feature(server)
        except (ClientError, KeyError) as error:
            sys.stderr.write(f"{feature.__name__}: {error}\n")
            found[feature.__name__] = False
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
