"""The JSON form of objects of the grid, as in 1.20's web API. Pure. [spec webapi 8, 7.3]"""

from __future__ import annotations

from collections.abc import Mapping

from grid.caps import (
    ChkVerifyCap,
    DirectoryCap,
    ImmutableFileCap,
    KnownCap,
    MdmfReadCap,
    MdmfVerifyCap,
    MdmfWriteCap,
    SdmfVerifyCap,
    SequenceCap,
    SliceCap,
    UnknownChild,
)
from grid.codec.base32 import encode
from grid.directory.pack import Child, Target

Json = dict[str, object]


def describe_file(child: Child, size: int | None, *, by_path: bool, warning: str | None = None) -> list[object]:
    """A single file or unknown object. size: of a mutable file. by_path: include its metadata.

    warning: for the user.
    """
    described = describe_child(child)
    properties: Json = dict(described[1])  # type: ignore[call-overload]
    if size is not None:
        properties["size"] = size
    if not by_path:
        properties.pop("metadata", None)
    if warning is not None:
        properties["warning"] = warning
    if isinstance(child.target, UnknownChild) and child.target.write:
        properties["mutable"] = True
    elif isinstance(child.target, UnknownChild) and _is_known_immutable(child.target):
        properties["mutable"] = False
    return [described[0], properties]


def describe_directory(cap: DirectoryCap, children: Mapping[str, Child], warning: str | None = None) -> list[object]:
    """A directory with its children. warning: for the user."""
    properties: Json = {"mutable": cap.is_mutable, **_caps(cap)}
    properties["children"] = {name: describe_child(child) for name, child in children.items()}
    if warning is not None:
        properties["warning"] = warning
    return ["dirnode", properties]


def describe_child(child: Child) -> list[object]:
    """An entry of a directory."""
    target, metadata = child.target, dict(child.metadata)
    if isinstance(target, UnknownChild):
        return ["unknown", {**_unknown_caps(target), "metadata": metadata}]
    if isinstance(target, DirectoryCap):
        return ["dirnode", {"mutable": _format(target.body) != "CHK", **_caps(target), "metadata": metadata}]
    format = _format(target)
    properties: Json = {"mutable": format != "CHK", "format": format, **_caps(target), "metadata": metadata}
    if isinstance(target, ImmutableFileCap | ChkVerifyCap):
        properties["size"] = target.size
    if isinstance(target, SliceCap):
        # Keys of our own. [spec extents 5]
        properties["slice"] = {"offset": target.offset, "pack-size": target.pack.size}
    elif isinstance(target, SequenceCap):
        properties["sequence"] = {"table-size": target.table.size}
    return ["filenode", properties]


def describe_unit(path: tuple[str, ...], target: Target, cap: str | None) -> Json:
    """A line of a stream over a tree. cap: None for an unknown child without any, as in 1.20."""
    unit: Json = {"path": list(path), "cap": cap, "type": "unknown"}
    unit |= {"verifycap": "", "repaircap": "", "storage-index": ""}
    if isinstance(target, UnknownChild):
        return unit
    verify = target.verify_cap()
    unit["type"] = "directory" if isinstance(target, DirectoryCap) else "file"
    unit["verifycap"] = "" if verify is None else verify.to_string()
    unit["repaircap"] = _repair_cap(target)
    unit["storage-index"] = "" if target.storage_index is None else encode(target.storage_index)
    return unit


def _repair_cap(target: KnownCap) -> str:
    if target.is_mutable:
        return target.to_string() if target.authority == "write" else ""
    verify = target.verify_cap()
    return "" if verify is None or isinstance(target, DirectoryCap) else verify.to_string()


def _format(cap: KnownCap) -> str:
    if isinstance(cap, MdmfWriteCap | MdmfReadCap | MdmfVerifyCap):
        return "MDMF"
    return "SDMF" if cap.is_mutable or isinstance(cap, SdmfVerifyCap) else "CHK"


def _caps(cap: KnownCap) -> Json:
    found: Json = {}
    if cap.authority == "write":
        found["rw_uri"] = cap.to_string()
    if cap.authority != "verify":
        found["ro_uri"] = cap.read_cap().to_string()
    verify = cap.verify_cap()
    if verify is not None:
        found["verify_uri"] = verify.to_string()
    return found


def _is_known_immutable(child: UnknownChild) -> bool:
    """Whether it is immutable according to its cap or, without a cap, because nothing can change."""
    return child.read.startswith(b"imm.") if child.read is not None else child.error is None


def _unknown_caps(child: UnknownChild) -> Json:
    found: Json = {}
    if child.write is not None:
        found["rw_uri"] = child.write.decode("utf-8", "replace")
    if child.read is not None:
        found["ro_uri"] = child.read.decode("utf-8", "replace")
    return found
