"""One request as its handler sees it, without types of the HTTP library. [spec webapi 1]"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import unquote_to_bytes

from grid.caps import UnknownCap, UnknownChild, parse_cap, settle_unknown_child
from grid.directory.pack import Child
from grid.gateway.faults import BadRequest, ServiceUnavailable
from grid.gateway.http.arguments import Arguments
from grid.gateway.http.body import Body
from grid.gateway.http.forms import Form, is_form, read_form
from grid.gateway.pages.links import SHARED, object_path
from grid.gateway.shared.home import is_local
from grid.gateway.shared.services import Services
from grid.values import define, field
from grid.wire.budget.server_memory import ByteBudget

TAKES_CHILDREN = frozenset({"mkdir-with-children", "mkdir-immutable", "set_children", "set-children"})
"""The values of `t` whose body describes children in JSON."""


class Headers:
    """Header fields by case-insensitive name. If a field occurs several times, the first counts."""

    def __init__(self, values: Mapping[str, str]) -> None:
        """values: names in lower case."""
        self._values = dict(values)

    def get(self, name: str) -> str | None:
        """The field's value, or None."""
        return self._values.get(name.lower())

    def without(self, *names: str) -> Headers:
        """The same fields without these. names: in lower case."""
        return Headers({name: value for name, value in self._values.items() if name not in names})


@define(kw_only=True, eq=False)
class Exchange:
    """One request. segments: its decoded path; a trailing slash adds a final "".

    origin: the gateway's scheme and host, as the client wrote them; peer: its address; both as trusted proxies report them.
    raw_path: undecoded and without the query; must never be logged.
    """

    method: str
    segments: tuple[str, ...] = field(repr=False)
    headers: Headers = field(repr=False)
    arguments: Arguments = field(repr=False)
    body: Body = field(repr=False)
    gateway: Services = field(repr=False)
    origin: str = field(repr=False)
    raw_path: str = field(repr=False, default="")
    raw_query: str = field(repr=False, default="")
    peer: str = ""
    _form: Form | None = field(default=None, init=False, repr=False)
    _held: list[tuple[ByteBudget, int]] = field(factory=list, init=False, repr=False)

    @property
    def is_form(self) -> bool:
        """Whether the body is a form (POST only).

        A body that describes children is JSON, whatever its type says, because programs that leave the type to their
        HTTP library send it labeled as a form. [spec webapi 5.4]
        """
        if self.method != "POST" or not is_form(self.body.content_type):
            return False
        return next((value.strip() for name, value in self.arguments.query if name == "t"), "") not in TAKES_CHILDREN

    @property
    def is_own(self) -> bool:
        """Whether a browser that `grid web` opened sent this, on this machine and through no proxy.

        Others may hold its cookie: browsers send it to every port of a host name.
        """
        return is_local(self.peer, self.headers) and self.gateway.home.knows(self.headers)

    @property
    def is_visit(self) -> bool:
        """Whether this gateway only reads for the sender. Everybody is a visitor behind a share link."""
        return self.segments[:1] == (SHARED,) or (self.gateway.settings.is_read_only and not self.is_own)

    @property
    def wants_page(self) -> bool:
        """Whether a browser wants a page to show. Programs, scripts and images accept anything, and get plain text."""
        return "text/html" in (self.headers.get("accept") or "").lower()

    async def form(self) -> Form:
        """Read the body as a form and add its fields to the arguments; empty if the body is no form.

        Cached for this request.
        """
        if self._form is None:
            if self.is_form:
                settings = self.gateway.settings
                cpu = self.gateway.store.runtime.cpu
                self._form = await read_form(self.body, self.arguments, settings.spools, cpu, self._take_form)
            else:
                self._form = Form()
        return self._form

    @property
    def file_name(self) -> str:
        """The name of the form's file, once the form was read; "" without one."""
        return (self._form.file_name if self._form is not None else None) or ""

    def _take_form(self, size: int) -> None:
        if not self.try_hold(self.gateway.stores.forms, size):
            raise ServiceUnavailable("too many long forms at once; try again later", headers=(("Retry-After", "5"),))

    def try_hold(self, budget: ByteBudget, size: int) -> bool:
        """Hold `size` bytes of the budget until this request ends, if they are free; whether they were."""
        if not budget.try_acquire(size):
            return False
        self._held.append((budget, size))
        return True

    async def hold(self, budget: ByteBudget, size: int) -> None:
        """Wait for `size` bytes of the budget, and hold them until this request ends."""
        self._held.append((budget, await budget.acquire(size)))

    def close(self) -> None:
        """Release what was held for this request."""
        if self._form is not None:
            self._form.close()
        held, self._held = self._held, []
        for budget, size in held:
            budget.release(size)


def split_path(raw: bytes) -> tuple[str, ...]:
    """Split a raw path into segments, each decoded after the split; BadRequest if one is not UTF-8. [spec webapi 1,
    1.2]

    Leading empty segments are dropped, because programs append `/uri/...` to a `node.url` that ends with a slash.
    """
    if not raw.startswith(b"/"):
        raise BadRequest("the path does not begin with a slash")
    try:
        return tuple(unquote_to_bytes(segment).decode("utf-8") for segment in raw.lstrip(b"/").split(b"/"))
    except UnicodeDecodeError:
        raise BadRequest("a segment of the path is not UTF-8") from None


def parse_child(segment: str) -> Child:
    """Parse the capability in a path, ignoring a line feed after it. A capability of unknown kind is allowed."""
    cap = parse_cap(segment.removesuffix("\n"))
    if isinstance(cap, UnknownCap):
        if cap.error is not None:
            return Child(target=UnknownChild(error=cap.error))
        return Child(target=settle_unknown_child(cap.text, None))
    return Child(target=cap)


def own_path(exchange: Exchange) -> str:
    """The address of the directory that the request names, as its page writes it."""
    root, *names = exchange.segments[1:]
    return object_path(root.removesuffix("\n"), names[:-1] if names and not names[-1] else names, directory=True)
