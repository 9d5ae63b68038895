"""The words of the table of endpoints: what a row and an action of one are; and the rows of share links. Pure."""

from __future__ import annotations

from grid.values import frozen

JSON = "application/json"
TEXT = "text/plain"
HTML = "text/html"
ANYTHING = "*/*"
"""The media type is guessed from the file's name."""


@frozen
class Action:
    """What a method does with this `t`. answers: media types of successful answers.

    statuses: in addition to those that any request may get. json: schema of a JSON answer, which is sent as text/plain
    where 1.20 does so. lines: schema of each line of the answer.
    """

    t: str
    summary: str
    answers: tuple[str, ...] = ()
    statuses: str = "200"
    json: str = ""
    lines: str = ""


FORM = "multipart/form-data"
URLENCODED = "application/x-www-form-urlencoded"
BYTES = "application/octet-stream"


@frozen(kw_only=True)
class Endpoint:
    """One row of the table. arguments: names of PARAMETERS besides `t`. bodies: media types of request bodies.

    actions: what each `t` means; an action without `t` also covers requests whose `t` is ignored.
    """

    path: str
    methods: tuple[str, ...]
    summary: str
    actions: tuple[Action, ...]
    tag: str = "objects"
    arguments: tuple[str, ...] = ()
    bodies: tuple[str, ...] = ()
    needs_token: bool = False


def shown(summary: str, *answers: str, statuses: str = "200", json: str = "") -> tuple[Action, ...]:
    """The single action of a path that only shows something."""
    return (Action("", summary, answers, statuses, json=json),)


def page_and_json(json: str, answer: str = TEXT, *, statuses: str = "200", missing: str = "") -> tuple[Action, ...]:
    """The actions of a path that shows a page to people and JSON to programs.

    missing: statuses that only programs get.
    """
    return (
        Action("", "For people", (HTML,), statuses),
        Action("json", "For programs", (answer,), f"{statuses} {missing}".strip(), json=json),
    )


_VISITED = (
    Action("", "A page, or the bytes of a file", (ANYTHING,), "200 206 302 304 404 409 410 416 429"),
    Action("info", "The page of a file", (HTML,), "200 302 404 410 429"),
    Action("preview", "A Markdown file, formatted", (HTML,), "200 302 404 410 413 429"),
    Action(
        "zip", "A directory and everything below it as a ZIP archive", ("application/zip",), "200 302 404 410 413 429"
    ),
)
_LISTED = (Action("", "All links, as a page or as JSON", (HTML, JSON), json="ShareLinks"),)


def _visited(path: str, summary: str) -> list[Endpoint]:
    """The rows of a share link, or of a path below one. A POST sends the link's password."""
    arguments = ("filename", "save", "name", "sort", "order", "page", "find")
    enter = Action("", "Go on with the right password (password=)", (HTML,), "303 404 413 429")
    reads = Endpoint(
        path=path, methods=("GET", "HEAD"), summary=summary, tag="shares", actions=_VISITED, arguments=arguments
    )
    post = Endpoint(
        path=path, methods=("POST",), summary="Enter the password", tag="shares", actions=(enter,), bodies=(URLENCODED,)
    )
    return [reads, post]


def shares() -> list[Endpoint]:
    """The rows of share links, for their visitors and for their owner."""
    make = ("uri", "name", "expires", "until", "downloads", "password", "id")
    changes = (
        Action("create", "Make a link to a capability (uri=)", (HTML, JSON), "200 413", json="ShareLinks"),
        Action("revoke", "Take a link back (id=)", (HTML, JSON), "200 404 409", json="ShareLinks"),
    )
    asked = Action("json", "All links, as JSON", (JSON,), json="ShareLinks")
    return [
        *_visited("/s/{token}", "What a share link opens"),
        *_visited("/s/{token}/{path}", "What is below a share link"),
        Endpoint(
            path="/shares",
            methods=("GET", "HEAD"),
            summary="The owner's share links",
            tag="shares",
            actions=(*_LISTED, asked),
        ),
        Endpoint(
            path="/shares",
            methods=("POST",),
            summary="Make a share link, or take one back",
            tag="shares",
            actions=changes,
            arguments=make,
            bodies=(URLENCODED, FORM),
        ),
    ]
