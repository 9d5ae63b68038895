"""Cross-origin resource sharing: which pages of other sites may use a bucket, by the rules that its owner sets.

A browser asks before it sends a request, without signing that question. It is answered by the access key that a presigned
URL names, or for a public bucket. The answer to the request itself then has the headers that let the page read it.

Cost: a read of the bucket's directory for each request with an Origin. Anybody can ask questions, so their answers come from
rules that are up to KEPT_S old.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from grid.caps import DirectoryCap
from grid.directory.metadata import Metadata, pack_metadata
from grid.errors import GridError
from grid.gateway.faults import Headers
from grid.gateway.http.answers import Answer, AnyAnswer
from grid.s3.accounts import PUBLIC, Account
from grid.s3.bucket import Bucket
from grid.s3.documents import XML, Element, document, element, text
from grid.s3.door import Call, Door
from grid.s3.faults import S3Fault
from grid.s3.names import SHARING
from grid.s3.object_info import FIELD
from grid.s3.payload import read_document
from grid.s3.signature import RequestHead
from grid.values import define, field, frozen

MAX_RULES = 100
MAX_RULES_DOCUMENT = 2**16
MAX_RULES_ELEMENTS = 3000
MAX_AGE_S = 2**31 - 1

KEPT_S = 5.0
"""How long the rules of a bucket are kept for questions. Those that are changed here count at once."""

MOST_KEPT = 100
"""Buckets whose rules are kept."""

_METHODS = ("GET", "PUT", "HEAD", "POST", "DELETE")
_VARY = ("Vary", "Origin, Access-Control-Request-Headers, Access-Control-Request-Method")
_ORIGIN = re.compile(r"[!-~]{1,1024}")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}")
_NOT_ENABLED = "CORSResponse: CORS is not enabled for this bucket."
_NOT_ALLOWED = (
    "CORSResponse: This CORS request is not allowed. This is usually because the evalution of Origin, request method /"
    " Access-Control-Request-Method or Access-Control-Request-Headers are not whitelisted by the resource's CORS spec."
)


@frozen(kw_only=True)
class Rule:
    """What pages of some origins may do. headers: those that they may send. exposed: those of answers that they may read.

    An origin or a header may contain one `*`, which stands for any characters.
    """

    name: str = ""
    origins: tuple[str, ...]
    methods: tuple[str, ...]
    headers: tuple[str, ...] = ()
    exposed: tuple[str, ...] = ()
    max_age_s: int | None = field(default=None)

    def permits(self, origin: str, method: str, headers: Iterable[str]) -> bool:
        """Whether a page may send such a request. headers: in lower case."""
        return (
            method in self.methods
            and any(_matches(pattern, origin) for pattern in self.origins)
            and all(any(_matches(pattern.lower(), name) for pattern in self.headers) for name in headers)
        )

    def answer(self, origin: str) -> Headers:
        """The headers that say so."""
        is_anyone = "*" in self.origins
        said: list[tuple[str, str]] = [
            ("Access-Control-Allow-Origin", "*" if is_anyone else origin),
            ("Access-Control-Allow-Methods", ", ".join(self.methods)),
            _VARY,
        ]
        if not is_anyone:
            said.append(("Access-Control-Allow-Credentials", "true"))
        if self.exposed:
            said.append(("Access-Control-Expose-Headers", ", ".join(self.exposed)))
        if self.max_age_s is not None:
            said.append(("Access-Control-Max-Age", str(self.max_age_s)))
        return tuple(said)


def _matches(pattern: str, value: str) -> bool:
    first, star, last = pattern.partition("*")
    if not star:
        return pattern == value
    return len(value) >= len(first) + len(last) and value.startswith(first) and value.endswith(last)


@define(eq=False)
class KeptRules:
    """The rules of the buckets that were lately asked about; of none, for a name that is no bucket's."""

    _kept: dict[tuple[DirectoryCap | None, str], tuple[float, list[Rule]]] = field(factory=dict, repr=False)

    async def rules(self, door: Door, account: Account, bucket_name: str) -> list[Rule]:
        """The rules of a bucket of the account, as they were at most KEPT_S ago; the errors of a listing."""
        kept, key, now = self._kept, (account.buckets.get(bucket_name, account.home), bucket_name), door.clock.now()
        since, rules = kept.get(key, (-KEPT_S, []))
        if now - since < KEPT_S:
            return rules
        try:
            rules = await _rules_of(door, account, bucket_name)
        except S3Fault:
            rules = []
        kept.pop(key, None)
        if len(kept) >= MOST_KEPT:
            del kept[next(iter(kept))]
        kept[key] = now, rules
        return rules

    def forget(self) -> None:
        """Forget all rules, also those that are being read."""
        self._kept = {}


async def get_sharing(call: Call) -> AnyAnswer:
    """The rules of a bucket; NoSuchCORSConfiguration if it has none."""
    rules = rules_in(await (await call.bucket()).setting(SHARING))
    if not rules:
        raise S3Fault("NoSuchCORSConfiguration")
    return Answer(200, XML, document("CORSConfiguration", *(element("CORSRule", *_shown(rule)) for rule in rules)))


def _shown(rule: Rule) -> Iterator[str]:
    if rule.name:
        yield text("ID", rule.name)
    yield from (text("AllowedHeader", name) for name in rule.headers)
    yield from (text("AllowedMethod", name) for name in rule.methods)
    yield from (text("AllowedOrigin", origin) for origin in rule.origins)
    yield from (text("ExposeHeader", name) for name in rule.exposed)
    if rule.max_age_s is not None:
        yield text("MaxAgeSeconds", rule.max_age_s)


async def put_sharing(call: Call) -> AnyAnswer:
    """Replace the rules of a bucket."""
    root = await read_document(call, MAX_RULES_DOCUMENT, "CORSConfiguration", MAX_RULES_ELEMENTS)
    bucket = await call.bucket()
    metadata = _to_metadata(parse_rules(root))
    pack_metadata(metadata)
    await _set(call, bucket, metadata)
    return Answer(200, "")


async def delete_sharing(call: Call) -> AnyAnswer:
    """Remove the rules of a bucket."""
    await _set(call, await call.bucket(), {})
    return Answer(204, "")


async def _set(call: Call, bucket: Bucket, metadata: Metadata) -> None:
    try:
        await bucket.set(SHARING, metadata)
    finally:
        call.door.remembered.of(KeptRules).forget()


def parse_rules(root: Element) -> list[Rule]:
    """The rules in a document; MalformedXML, InvalidRequest."""
    rules = [_rule(each) for each in root.all("CORSRule")]
    if not 0 < len(rules) <= MAX_RULES:
        raise S3Fault("MalformedXML")
    return rules


def _rule(said: Element) -> Rule:
    def texts(name: str) -> tuple[str, ...]:
        return tuple(each.text for each in said.all(name))

    rule = Rule(
        name=said.get("ID") or "",
        origins=texts("AllowedOrigin"),
        methods=texts("AllowedMethod"),
        headers=texts("AllowedHeader"),
        exposed=texts("ExposeHeader"),
        max_age_s=_age(said.get("MaxAgeSeconds")),
    )
    if not rule.origins or not rule.methods or len(rule.name) > 255:
        raise S3Fault("MalformedXML")
    _require_offered(rule)
    if not _is_valid(rule):
        raise S3Fault("InvalidRequest", "An AllowedOrigin is not the origin of a page.")
    return rule


def _require_offered(rule: Rule) -> None:
    """Raise InvalidRequest for a method or a header that no rule can have, or too many wildcards."""
    for method in rule.methods:
        if method not in _METHODS:
            message = f"Found unsupported HTTP method in CORS config. Unsupported method is {method}"
            raise S3Fault("InvalidRequest", message)
    for element_name, values in (("AllowedOrigin", rule.origins), ("AllowedHeader", rule.headers)):
        for value in values:
            if value.count("*") > 1:
                raise S3Fault("InvalidRequest", f'{element_name} "{value}" can not have more than one wildcard.')
    for value in rule.exposed:
        if "*" in value:
            message = "contains wildcard. We currently do not support wildcard for ExposeHeader."
            raise S3Fault("InvalidRequest", f'ExposeHeader "{value}" {message}')
    for value in (*rule.headers, *rule.exposed):
        if not _HEADER.fullmatch(value):
            raise S3Fault("InvalidRequest", f'AllowedHeader "{value}" contains invalid character.')


def _age(given: str | None) -> int | None:
    if given is None:
        return None
    digits = given.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 11 and int(digits) <= MAX_AGE_S):
        raise S3Fault("MalformedXML")
    return int(given)


def _is_valid(rule: Rule) -> bool:
    """Whether headers of answers can contain the texts of the rule."""
    return all(_ORIGIN.fullmatch(value) for value in rule.origins) and all(
        _HEADER.fullmatch(value) for value in (*rule.headers, *rule.exposed)
    )


def _to_metadata(rules: Sequence[Rule]) -> Metadata:
    return {
        FIELD: [
            {
                "name": rule.name,
                "origins": list(rule.origins),
                "methods": list(rule.methods),
                "headers": list(rule.headers),
                "exposed": list(rule.exposed),
                "max-age": rule.max_age_s,
            }
            for rule in rules
        ]
    }


def rules_in(metadata: Metadata) -> list[Rule]:
    """The rules in the metadata; without those that no request could have set."""
    said = metadata.get(FIELD)
    return [rule for each in said if (rule := _kept_rule(each))] if isinstance(said, list) else []


def _kept_rule(said: object) -> Rule | None:
    if not isinstance(said, Mapping):
        return None

    def texts(name: str) -> tuple[str, ...]:
        values = said.get(name)
        return tuple(value for value in values if isinstance(value, str)) if isinstance(values, list) else ()

    name, age = said.get("name"), said.get("max-age")
    rule = Rule(
        name=name if isinstance(name, str) else "",
        origins=texts("origins"),
        methods=tuple(method for method in texts("methods") if method in _METHODS),
        headers=texts("headers"),
        exposed=texts("exposed"),
        max_age_s=age if type(age) is int and abs(age) <= MAX_AGE_S else None,
    )
    return rule if rule.origins and rule.methods and _is_valid(rule) else None


async def shared_with(door: Door, account: Account, bucket_name: str, head: RequestHead) -> Headers:
    """The headers that let a page read the answer to its request; none if the bucket's rules do not permit it."""
    origin = head.header("origin")
    if origin is None or not bucket_name or not _ORIGIN.fullmatch(origin):
        return ()
    try:
        rules = await _rules_of(door, account, bucket_name)
    except GridError:
        return ()  # The operation says what is wrong.
    return next((rule.answer(origin) for rule in rules if rule.permits(origin, head.method, ())), ())


async def _rules_of(door: Door, account: Account, bucket_name: str) -> list[Rule]:
    return rules_in(await (await door.bucket(account, bucket_name)).setting(SHARING))


async def answer_preflight(door: Door, bucket_name: str, head: RequestHead) -> AnyAnswer:
    """Say whether a page may send a request. BadRequest, AccessForbidden."""
    origin, method = head.header("origin") or "", head.header("access-control-request-method") or "null"
    if not _ORIGIN.fullmatch(origin):
        raise S3Fault("BadRequest", "Insufficient information. Origin request header needed.")
    if method not in _METHODS:
        raise S3Fault("BadRequest", f"Invalid Access-Control-Request-Method: {method}")
    wanted = [name for name in (head.header("access-control-request-headers") or "").split(",") if name.strip()]
    headers = [name.strip().lower() for name in wanted]
    for name, shown in zip(headers, wanted, strict=True):
        if not _HEADER.fullmatch(name):
            raise S3Fault("BadRequest", f'Access-Control-Request-Headers "{shown}" contains invalid character.')
    account = _asked(door, head)
    rules = [] if account is None else await door.remembered.of(KeptRules).rules(door, account, bucket_name)
    if not rules:
        raise S3Fault("AccessForbidden", _NOT_ENABLED)
    for rule in rules:
        if rule.permits(origin, method, headers):
            allowed = (("Access-Control-Allow-Headers", ", ".join(headers)),) if headers else ()
            return Answer(200, "", headers=(*rule.answer(origin), *allowed))
    raise S3Fault("AccessForbidden", _NOT_ALLOWED)


def _asked(door: Door, head: RequestHead) -> Account | None:
    """The account of the request that a browser asks about: that of a presigned URL, or everybody's."""
    credential = head.parameter("X-Amz-Credential")
    if credential is None:
        return door.find_public()
    access_key = credential.partition("/")[0]
    return None if access_key == PUBLIC else door.find_account(access_key)
