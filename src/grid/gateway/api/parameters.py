"""The arguments of requests: what each means, and which belong together. Pure. [spec webapi 3-7]"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_BOOLEAN = {"type": "string", "enum": ["true", "false", "t", "f", "1", "0", "on", "off"]}
_STRING = {"type": "string"}

PARAMETERS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "uri": ("A capability.", _STRING),
    "format": (
        "How a new object is stored.",
        {"type": "string", "enum": ["", "chk", "sdmf", "mdmf", "CHK", "SDMF", "MDMF"]},
    ),
    "mutable": ("Without format=: whether a new file can be changed.", _BOOLEAN),
    "private-key": ("The private key of a new mutable object: DER in urlsafe base64.", _STRING),
    "unique": ("Whether a new immutable file gets a random key, and is stored while it arrives.", _BOOLEAN),
    "replace": (
        "Whether what is there may be replaced.",
        {"type": "string", "enum": [*_BOOLEAN["enum"], "only-files"]},
    ),
    "ask": ("Whether a form's sender is asked before anything is replaced.", _BOOLEAN),
    "progress": ("What the upload is called in /status/events.", _STRING),
    "upload": ("The identifier of a complete upload, in place of a body.", _STRING),
    "sort": (
        "The column that a directory's page is sorted by.",
        {"type": "string", "enum": ["name", "size", "changed"]},
    ),
    "page": ("The page of a long list, from 1.", {"type": "integer", "minimum": 1}),
    "find": ("Words that names in the list must contain.", _STRING),
    "order": ("`desc` for descending order.", _STRING),
    "offset": ("The offset of the new bytes in a mutable file.", {"type": "integer", "minimum": 0}),
    "filename": ("The name that determines the type.", _STRING),
    "save": ("Whether a browser saves the file.", _BOOLEAN),
    "when_done": ("Where to send the browser afterwards.", _STRING),
    "redirect_to_result": ("Whether to send the browser to the new directory.", _BOOLEAN),
    "name": ("A child's name.", _STRING),
    "from_name": ("The child's name now.", _STRING),
    "to_name": ("The child's name afterwards.", _STRING),
    "to_dir": ("The directory that the child goes to.", _STRING),
    "sure": ("Whether the person has confirmed.", _BOOLEAN),
    "at": ("The directory that the folder picker shows.", _STRING),
    "change": ("The number of a change, as the directory's page names it.", {"type": "integer", "minimum": 0}),
    "verify": ("Whether every byte is read and verified.", _BOOLEAN),
    "repair": ("Whether missing shares are recreated.", _BOOLEAN),
    "add-lease": ("Whether leases are renewed.", _BOOLEAN),
    "output": ("How the result is shown.", _STRING),
    "ophandle": ("The handle of an operation.", _STRING),
    "retain-for": ("How many seconds a result is kept.", {"type": "integer", "minimum": 0}),
    "kind": (
        "The kind of operations listed.",
        {"type": "string", "enum": ["", "upload", "download", "publish", "retrieve", "mapupdate"]},
    ),
    "state": (
        "The state of operations listed.",
        {"type": "string", "enum": ["", "active", "done", "failed", "cancelled"]},
    ),
    "all": ("Whether reads of directories are listed too.", _BOOLEAN),
    "by": (
        "The column that the list of operations is sorted by.",
        {"type": "string", "enum": ["what", "state", "size", "duration", "started"]},
    ),
    "span": ("The time that the plots cover.", {"type": "string", "enum": ["hour", "day"]}),
    "id": ("The ID of a share link, or its name.", _STRING),
    "expires": ("When a new share link ends: a time such as 7d, a day such as 2030-12-31, or never.", _STRING),
    "until": ("The last day of a new share link (UTC), instead of a time.", {"type": "string", "format": "date"}),
    "downloads": ("How many downloads a new share link allows.", {"type": "integer", "minimum": 1}),
    "password": ("The password that visitors of a new share link enter.", _STRING),
    "token": ("The token from `grid web`.", _STRING),
    "details": ("The text of the report.", _STRING),
    "release-after-complete": ("Whether a result is forgotten once it has been shown.", _BOOLEAN),
}

NEW_OBJECT = ("format", "mutable", "private-key", "unique")
CHECKING = ("verify", "repair", "add-lease", "output", "ophandle")
POSTED = (
    "name",
    "from_name",
    "to_name",
    "to_dir",
    "uri",
    "replace",
    "ask",
    "sure",
    "at",
    "change",
    "when_done",
    *NEW_OBJECT,
    *CHECKING,
)
