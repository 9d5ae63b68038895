"""Converts the web API's JSON to values and back: children, health, repairs, lines of streams. [spec webapi 5.4, 6, 8]

A gateway's answers are validated like all input: GatewayError says what is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping

from grid.caps import Cap, DirectoryCap, KnownCap, UnknownChild, parse_cap, settle_unknown_child
from grid.cli.webapi.refusals import GatewayError, readable_text
from grid.directory.names import normalize_name
from grid.directory.node_json import describe_child
from grid.directory.pack import Child, Target
from grid.directory.walk import Visited
from grid.errors import FormatError
from grid.limits import MAX_CAP_LENGTH, MAX_DIRECTORY_ENTRIES
from grid.placement.health import RepairResult
from grid.values import field, frozen

_COUNTS = ("count-shares-good", "count-shares-needed", "count-shares-expected", "count-wrong-shares")


@frozen(kw_only=True)
class RemoteHealth:
    """The result of a gateway's check. corrupt: (server, share number). crowded, can_spread: never of 1.20."""

    storage_index: str
    healthy: bool
    recoverable: bool
    summary: str
    corrupt: frozenset[tuple[str, int]] = frozenset()
    crowded: bool = False
    can_spread: bool = False
    _json: dict[str, object] = field(factory=dict, repr=False)

    def to_json(self) -> dict[str, object]:
        """The CHECK object as received. [spec webapi 6.2]"""
        return self._json


RemoteMended = RepairResult[RemoteHealth]
"""The result of a gateway's repair."""

LITERAL_HEALTH = RemoteHealth(
    storage_index="",
    healthy=True,
    recoverable=True,
    summary="Healthy (LIT)",
    json={"storage-index": "", "results": {"healthy": True}},
)


def parse_listing(data: object, *, is_mutable: bool) -> dict[str, Child]:
    """The children in the answer to `t=json` of a directory, sorted by name."""
    kind, properties = _node(data)
    children = properties.get("children")
    if kind != "dirnode" or not isinstance(children, dict) or len(children) > MAX_DIRECTORY_ENTRIES:
        raise GatewayError("the gateway's answer is not the listing of a directory")
    found = {_name(name): parse_child(child, deep_immutable=not is_mutable) for name, child in children.items()}
    return dict(sorted(found.items()))


def parse_child(data: object, *, deep_immutable: bool) -> Child:
    """Parse an entry of a listing."""
    _, properties = _node(data)
    metadata = properties.get("metadata", {})
    if not isinstance(metadata, dict):
        raise GatewayError("malformed metadata in the gateway's answer")
    write, read = _cap_text(properties, "rw_uri"), _cap_text(properties, "ro_uri")
    verify = None if write or read else _cap_text(properties, "verify_uri")
    for text in (write, read, verify):
        cap: Cap | None = None if text is None else parse_cap(text, deep_immutable=deep_immutable)
        if isinstance(cap, KnownCap):
            return Child(target=cap, metadata=metadata)
    return Child(target=settle_unknown_child(write, read, deep_immutable=deep_immutable), metadata=metadata)


def describe_children(children: Mapping[str, Child]) -> dict[str, object]:
    """The CHILDREN object that makes these links. [spec webapi 5.4]"""
    return {name: describe_link(child.target, child.metadata) for name, child in children.items()}


def describe_link(target: Target, metadata: Mapping[str, object] | None) -> list[object]:
    """One link of it. metadata: None keeps that of an existing link of the same name."""
    kind, properties = describe_child(Child(target=target))
    assert isinstance(properties, dict)
    caps: dict[str, object] = {name: properties[name] for name in ("rw_uri", "ro_uri") if name in properties}
    if not caps and "verify_uri" in properties:
        caps["ro_uri"] = properties["verify_uri"]
    return [kind, caps if metadata is None else {**caps, "metadata": dict(metadata)}]


def parse_health(data: object) -> RemoteHealth:
    """Parse a CHECK object, of an object with or without shares."""
    checked = _object(data)
    results = _object(checked.get("results"))
    index = checked.get("storage-index")
    healthy = results.get("healthy")
    if (
        not isinstance(index, str)
        or len(index) > 64
        or not (index.isalnum() or not index)
        or not isinstance(healthy, bool)
    ):
        raise _no_health()
    if not index:
        return LITERAL_HEALTH
    recoverable = results.get("recoverable")
    if not isinstance(recoverable, bool) or any(not _is_count(results.get(name)) for name in _COUNTS):
        raise _no_health()
    summary = checked.get("summary")
    return RemoteHealth(
        storage_index=index,
        healthy=healthy,
        recoverable=recoverable,
        summary=readable_text(summary.encode("utf-8", "replace")) if isinstance(summary, str) else "",
        corrupt=_corrupt(results.get("list-corrupt-shares", [])),
        crowded=results.get("crowded") is True,
        can_spread=results.get("can-spread") is True,
        json=checked,
    )


def parse_mended(data: object) -> RemoteMended:
    """Parse a CHECK-AND-REPAIR object, or the result for an object without shares."""
    repaired = _object(data)
    if "pre-repair-results" not in repaired:
        if repaired.get("storage-index") != "":
            raise _no_health()
        return RemoteMended(attempted=False, successful=False, before=LITERAL_HEALTH, after=LITERAL_HEALTH)
    return RemoteMended(
        attempted=repaired.get("repair-attempted") is True,
        successful=repaired.get("repair-successful") is True,
        before=parse_health(repaired["pre-repair-results"]),
        after=parse_health(repaired.get("post-repair-results")),
    )


def parse_visited(unit: Mapping[str, object]) -> Visited:
    """The object that a line of a stream describes."""
    path, cap = unit.get("path"), unit.get("cap")
    if not isinstance(path, list) or not all(isinstance(name, str) for name in path) or not isinstance(cap, str | None):
        raise GatewayError("a line of the gateway's stream names no object")
    text = (cap or "").encode("utf-8", "replace")
    parsed = parse_cap(text)
    target: Target = parsed if isinstance(parsed, KnownCap) else UnknownChild(read=text or None)
    size = None if isinstance(target, DirectoryCap) else getattr(target, "size", None)
    return Visited(path=tuple(_name(name) for name in path), target=target, size=size)


def directory_cap(text: str) -> DirectoryCap:
    """Parse a directory's capability in a gateway's answer; GatewayError."""
    cap = parse_cap(text)
    if not isinstance(cap, DirectoryCap):
        raise GatewayError("the gateway's answer is not the capability of a directory")
    return cap


def _node(data: object) -> tuple[str, dict[str, object]]:
    match data:
        case [str(kind), dict(properties)]:
            return kind, properties
    raise GatewayError("the gateway's answer does not describe an object of the grid")


def _object(data: object) -> dict[str, object]:
    if not isinstance(data, dict):
        raise _no_health()
    return data


def _cap_text(properties: Mapping[str, object], name: str) -> bytes | None:
    text = properties.get(name)
    if text is None:
        return None
    if not isinstance(text, str) or len(text) > MAX_CAP_LENGTH:
        raise GatewayError("invalid capability in the gateway's answer")
    return text.encode("utf-8", "replace")


def _name(name: str) -> str:
    try:
        return normalize_name(name)
    except FormatError:
        raise GatewayError("invalid name in the gateway's answer") from None


def _corrupt(data: object) -> frozenset[tuple[str, int]]:
    if not isinstance(data, list):
        raise _no_health()
    found = set()
    for share in data:
        match share:
            case [str(server), str(), int(number)]:
                found.add((readable_text(server.encode("utf-8", "replace")), number))
            case _:
                raise _no_health()
    return frozenset(found)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**32


def _no_health() -> GatewayError:
    return GatewayError("the gateway's answer is not the result of a check")
