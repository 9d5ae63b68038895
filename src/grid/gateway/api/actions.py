"""What each `t` does with an object or with none, and what it answers: rows of the table of endpoints. Pure. [spec webapi 3-7]"""

from __future__ import annotations

from attrs import frozen

JSON = "application/json"
TEXT = "text/plain"
HTML = "text/html"
ANYTHING = "*/*"
"""The type that a file's name says."""


@frozen
class Action:
    """What a method with this `t` does. answers: media types of what succeeds.

    statuses: besides those that every request may have. json: the schema of what comes as JSON, which is text/plain where
    1.20 says so; lines: that of each line.
    """

    t: str
    summary: str
    answers: tuple[str, ...] = ()
    statuses: str = "200"
    json: str = ""
    lines: str = ""


_SEEN = "304 404 410"
_MADE = "200 302 404 409 410 413 507"
_LINKED = "200 302 404 409 410 507"

READ_FILE = Action("", "The bytes of a file", (ANYTHING,), f"200 206 409 416 {_SEEN}")
_READ = Action("", "The bytes of a file, or the page of a directory", (ANYTHING,), f"200 206 409 416 {_SEEN}")
_DESCRIBED = (
    Action("json", "What is known of it", (TEXT,), f"200 {_SEEN}", json="Node"),
    Action("uri", "Its capability", (TEXT,), f"200 {_SEEN}"),
    Action("readonly-uri", "The capability that only reads it", (TEXT,), f"200 {_SEEN}"),
    Action("info", "A page about it", (HTML,), f"200 {_SEEN}"),
)
GET_FILE = (READ_FILE, *_DESCRIBED)
GET_OBJECT = (_READ, *_DESCRIBED, Action("rename-form", "A page to rename a child (name=)", (HTML,), f"200 {_SEEN}"))

_PUT_FILE = Action("", "Store the body there", (HTML,), "200 201 404 409 410 413 501 507")
_PUT_DIRECTORY = Action("mkdir", "Make a directory, or find one", (TEXT,), "200 404 409 410 507")
PUT_OBJECT = (_PUT_FILE, _PUT_DIRECTORY)
PUT_CHILD = (
    _PUT_FILE,
    Action("uri", "Link the capability in the body", (HTML,), "200 404 409 410 413 501 507"),
    _PUT_DIRECTORY,
)

POST_OBJECT = (
    Action("mkdir", "Make a directory (name=)", (HTML,), _MADE),
    Action("mkdir-with-children", "Make one with the children in the body", (HTML,), _MADE),
    Action("mkdir-immutable", "The same, never to be changed", (HTML,), _MADE),
    Action("upload", "Store the form's file (name=)", (HTML,), "200 302 404 409 410 413 501 507"),
    Action("uri", "Link a capability (name=, uri=)", (HTML,), _LINKED),
    Action("unlink", "Unlink a child (name=)", (HTML,), _LINKED),
    Action("delete", "The same", (HTML,), _LINKED),
    Action("rename", "Rename a child (from_name=, to_name=)", (HTML,), _LINKED),
    Action("relink", "Move a child, also to another directory (to_dir=)", (HTML,), _LINKED),
    Action("set_children", "Link many children, as the body says", (HTML,), _MADE),
    Action("set-children", "The same", (HTML,), _MADE),
    Action("check", "Its health; repair= makes it whole", (TEXT, HTML), "200 302 404 409 410 507", json="CheckAnswer"),
    Action("stream-manifest", "A line for each object below", (HTML,), "200 404 409 410", lines="ManifestLine"),
    Action("stream-deep-check", "A line with the health of each", (HTML,), "200 404 409 410", lines="CheckLine"),
    *(
        Action(f"start-{kind}", f"Begin {words}, under ophandle=", (), "302 404 409 410 429")
        for kind, words in (
            ("manifest", "a list of all objects below"),
            ("deep-check", "a check of all objects below"),
            ("deep-size", "to sum up what is below"),
            ("deep-stats", "statistics of what is below"),
        )
    ),
)

_MADE_UNLINKED = "200 302 303 413 507"
PUT_UNLINKED = (
    Action("", "Store the body", (HTML,), "200 413 507"),
    Action("mkdir", "Make a directory", (HTML,), "200 507"),
)
POST_UNLINKED = (
    Action("", "Store the form's file", (HTML,), "200 302 413 507"),
    Action("upload", "The same", (HTML,), "200 302 413 507"),
    Action("mkdir", "Make a directory", (HTML,), _MADE_UNLINKED),
    Action("mkdir-with-children", "Make one with the children in the body", (HTML,), _MADE_UNLINKED),
    Action("mkdir-immutable", "The same, never to be changed", (HTML,), _MADE_UNLINKED),
)

_STATE = "200 403 404 409 410 413"
GET_OPERATION = (
    Action("", "How it stands", (TEXT, HTML), _STATE, json="OperationState"),
    Action("status", "The same", (TEXT, HTML), _STATE, json="OperationState"),
)
END_OPERATION = (Action("cancel", "End it", (TEXT, HTML), _STATE, json="OperationState"),)


def shown(summary: str, *answers: str, statuses: str = "200", json: str = "") -> tuple[Action, ...]:
    """The one thing that a path shows."""
    return (Action("", summary, answers, statuses, json=json),)


def page_and_json(json: str, answer: str = TEXT, *, statuses: str = "200", missing: str = "") -> tuple[Action, ...]:
    """What a path shows people, and programs. missing: statuses that only programs are told."""
    return (
        Action("", "For people", (HTML,), statuses),
        Action("json", "For programs", (answer,), f"{statuses} {missing}".strip(), json=json),
    )
