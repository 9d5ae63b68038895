"""HTTP connections of the S3 door: the gateway's framing and limits, with authenticated requests.

Bodies are read only after authentication. The log names a request's operation, never its URL, which may be signed, or a
key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import unquote_to_bytes

from twisted.logger import Logger
from twisted.web.http_headers import Headers as HttpHeaders

from grid.errors import GridError
from grid.gateway.faults import Headers
from grid.gateway.http.answers import SANDBOX, Answer, AnyAnswer
from grid.gateway.http.guards import split_target
from grid.gateway.http.request import GatewayRequest
from grid.gateway.http.routing import Routes
from grid.gateway.http.server import GatewayChannel, GatewayFactory
from grid.gateway.shared.traffic import Traffic
from grid.runtime import Tasks
from grid.s3.accounts import PUBLIC, Account
from grid.s3.authentication import ANONYMOUS, Claim, is_signed, parse_claim, verify_claim
from grid.s3.documents import XML, document, text
from grid.s3.door import Call, Door
from grid.s3.faults import S3Fault, s3_fault
from grid.s3.names import path_of
from grid.s3.operations import PUBLIC_OPERATIONS, Level, Operation, choose_operation
from grid.s3.sharing import answer_preflight, shared_with
from grid.s3.signature import RequestHead
from grid.version import __version__
from grid.wire.connections.connection_limit import ConnectionLimit, Standing

MAX_PARAMETERS = 100

_NOT_PUBLIC = "The request is not signed, and this is not public."
_ONLY_READ = "The request is not signed, and this bucket can be read without a signature, but not written."

_log = Logger("grid.s3")


class _AnswerHeaders(HttpHeaders):
    """Headers of an answer. S3's keep their lower case, because clients derive users' metadata from them."""

    def getAllRawHeaders(self) -> Iterator[tuple[bytes, Sequence[bytes]]]:
        """Names and values."""
        for name, values in super().getAllRawHeaders():
            yield (name.lower() if name.lower().startswith(b"x-amz-") else name), values


class S3Request(GatewayRequest):
    """One request of the door."""

    factory: S3Factory

    def __init__(self, channel: Any, *arguments: Any) -> None:
        super().__init__(channel, *arguments)
        self._request_id = ""
        self._sharing: Headers = ()
        self._tasks = Tasks()
        self.responseHeaders = _AnswerHeaders()

    @property
    def _traffic(self) -> Traffic:
        return self.factory.gateway.s3_traffic

    def _common_headers(self, answer: AnyAnswer) -> Headers:
        own = (("Server", f"Grid/{__version__}"), ("x-amz-request-id", self._request_id))
        return (*own, ("X-Content-Type-Options", "nosniff"), *SANDBOX, *self._sharing)

    async def _serve(self) -> None:
        try:
            await super()._serve()
        finally:
            self._tasks.cancel()

    async def _answer(self) -> AnyAnswer:
        door = self.factory.door
        self._request_id = door.services.store.runtime.entropy.random_bytes(8).hex().upper()
        self._record.shown = "s3"
        if len(self.factory.requests) > door.services.settings.max_concurrent:
            raise S3Fault("SlowDown", headers=(("Retry-After", "5"),))
        head = self._head()
        if head.method == "OPTIONS":
            self._record.called = ("Preflight", "")
            return await answer_preflight(door, self._named(head)[0], head)
        account, claim, key = self._identified(head)
        _require_owner(head, account)
        bucket_name, object_key = self._named(head)
        self._sharing = await shared_with(door, account, bucket_name, head)
        level: Level = "object" if object_key else "bucket" if bucket_name else "service"
        if claim is ANONYMOUS and bucket_name not in account.buckets:
            raise S3Fault("AccessDenied", _NOT_PUBLIC)
        operation = choose_operation(head, level)
        if claim is ANONYMOUS:
            _require_public(head, operation)
        if object_key:
            path_of(object_key)  # An impossible key is refused before the body is read.
        self._record.shown = f"s3 {operation.name}"
        self._record.called = (operation.name, "")
        assert self.body is not None
        call = Call(
            door=door,
            head=head,
            account=account,
            claim=claim,
            signing_key=key,
            bucket_name=bucket_name,
            key=object_key,
            body=self.body,
            request_id=self._request_id,
            is_secure=self.isSecure(),
            tasks=self._tasks,
        )
        return await operation.run(call)

    def _identified(self, head: RequestHead) -> tuple[Account, Claim, bytes]:
        """The account of the request, its claim, and its signing key; the faults of `parse_claim` and `verify_claim`."""
        door = self.factory.door
        if not is_signed(head):
            # The connection stays a stranger's, which gives way first.
            public = door.find_public()
            if public is None:
                raise S3Fault("AccessDenied", _NOT_PUBLIC)
            return public, ANONYMOUS, b""
        claim = parse_claim(head)
        account = door.find_account(claim.access_key)
        if account is None or account.access_key == PUBLIC:
            raise S3Fault("InvalidAccessKeyId", details=(("AWSAccessKeyId", claim.access_key),))
        key = verify_claim(head, claim, account.secret, door.now())
        self.channel.permit.stand(Standing.ACTIVE)
        return account, claim, key

    def _of_error(self, error: BaseException) -> Answer:
        if not isinstance(error, GridError):
            raise error
        fault = s3_fault(error)
        if fault.status == 500:
            _log.error("{operation} failed: {reason}", operation=self._record.shown, reason=str(error))
        said = (text("Code", fault.code), text("Message", fault.message))
        details = (text(name, value) for name, value in fault.details)
        body = document("Error", *said, *details, text("RequestId", self._request_id), namespace=False)
        return Answer(fault.status, XML, body, fault.headers)

    def _head(self) -> RequestHead:
        """The request in the form that is signed; InvalidURI, InvalidRequest."""
        _, target = split_target(self.uri)
        path, _, query = target.partition(b"?")
        pairs = [pair.partition(b"=") for pair in query.split(b"&") if pair]
        if len(pairs) > MAX_PARAMETERS:
            raise S3Fault("InvalidURI")
        headers = [
            (name.decode("latin-1").lower(), value.decode("utf-8", "surrogateescape"))
            for name, values in self.requestHeaders.getAllRawHeaders()
            for value in values
        ]
        if sum(name == "host" for name, _ in headers) != 1:
            raise S3Fault("InvalidRequest", "A request must have exactly one Host header.")
        return RequestHead(
            method=self.method.decode("latin-1"),
            path=path.decode("utf-8", "surrogateescape"),
            query=[(_parameter(name), _parameter(value)) for name, _, value in pairs],
            headers=headers,
        )

    def _named(self, head: RequestHead) -> tuple[str, str]:
        """The bucket and key of the request; "" for none."""
        try:
            path = unquote_to_bytes(head.path.encode("utf-8", "surrogateescape")).decode("utf-8").removeprefix("/")
        except UnicodeDecodeError:
            raise S3Fault("InvalidURI", "A key must be UTF-8 text.") from None
        host = (head.header("host") or "").lower().partition(":")[0]
        domain = self.factory.door.domain
        if domain and host.endswith(f".{domain}"):
            return host.removesuffix(f".{domain}"), path
        bucket, _, key = path.partition("/")
        return bucket, key


def _require_public(head: RequestHead, operation: Operation) -> None:
    """Raise unless a request that is not signed may do this with a public bucket. AccessDenied, InvalidRequest."""
    if operation.name not in PUBLIC_OPERATIONS:
        raise S3Fault("AccessDenied", _NOT_PUBLIC if head.method in ("GET", "HEAD") else _ONLY_READ)
    if any(name.startswith("response-") for name, _ in head.query):
        raise S3Fault("InvalidRequest", "Only signed requests may set headers of the answer.")


def _require_owner(head: RequestHead, account: Account) -> None:
    """Raise AccessDenied if the client expects another bucket owner than the access key."""
    for name in ("x-amz-expected-bucket-owner", "x-amz-source-expected-bucket-owner"):
        if head.header(name) not in (None, account.access_key):
            raise S3Fault("AccessDenied")


def _parameter(raw: bytes) -> str:
    try:
        return unquote_to_bytes(raw.replace(b"+", b"%20")).decode("utf-8")
    except UnicodeDecodeError:
        raise S3Fault("InvalidURI", "A parameter must be UTF-8 text.") from None


class S3Channel(GatewayChannel):
    """One connection."""

    requestFactory: Any = S3Request


class S3Factory(GatewayFactory):
    """All connections of a door."""

    protocol: Any = S3Channel

    def __init__(self, door: Door, reactor: Any, connection_limit: ConnectionLimit) -> None:
        """connection_limit: on all connections of this process."""
        self.door = door
        super().__init__(door.services, Routes(), reactor, connection_limit)

    def _count_requests(self) -> None:
        self.gateway.s3_traffic.know((), lambda: len(self.requests))
