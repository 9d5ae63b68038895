"""`/s/TOKEN[/PATH]`: what the visitor of a share link may see. [spec webapi 10.1] (decision 460)

Owns what a visitor learns: the names and contents below what is shared, and no capability, whatever happens. A token that
opens nothing gets one and the same answer, so nobody learns whether it ever opened anything.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import TypeVar

from attrs import evolve

from grid.caps import DirectoryCap, KnownCap, UnknownChild
from grid.codec.base32 import encode
from grid.crypto.hashing import tagged_hash
from grid.directory.names import normalize_name
from grid.directory.pack import Child
from grid.errors import FormatError
from grid.gateway.faults import BadRequest, Forbidden, NotFound, ServiceUnavailable, TooManyRequests
from grid.gateway.files.downloads import file_contents, size_if_known
from grid.gateway.files.file_pages import markdown_page
from grid.gateway.http.answers import Answer, AnyAnswer, StreamedAnswer, fault_answer, page, redirect
from grid.gateway.http.compression import compressed
from grid.gateway.http.exchange import Exchange
from grid.gateway.http.forms import URLENCODED
from grid.gateway.http.mistakes import Withheld
from grid.gateway.http.ranges_and_tags import entity_tag
from grid.gateway.http.routing import Handler, allow
from grid.gateway.pages.entries import find_neighbors, linked_at, order_arguments, parse_order
from grid.gateway.pages.info import neighbor_links
from grid.gateway.pages.links import SHARED, shared_path
from grid.gateway.pages.paging import MAX_FIND, parse_page
from grid.gateway.pages.visits import (
    GONE,
    SharedDirectory,
    Visit,
    neighbor_address,
    render_gone,
    render_password,
    render_shared_directory,
    render_shared_file,
    render_unavailable,
)
from grid.gateway.shared.passwords import PASS_S, PasswordHash
from grid.gateway.shared.share_links import ShareLink
from grid.gateway.sharing.live_links import LiveLinks
from grid.gateway.tree.archive import zip_directory
from grid.gateway.tree.path import Obstacle, Reached, TreePath, follow, list_children, open_directory
from grid.limits import MAX_PATH_DEPTH
from grid.ports import Buffer, Sink
from grid.runtime import run_sized
from grid.values import frozen

COOKIE = "grid-share"
"""The name of the cookie that holds a visitor's pass. Its path is that of the link."""

PEEK_SIZE = 64 * 2**10
"""Bytes of a file's beginning that count as no download, as `thumbnails.js` reads them."""

_RANGE = re.compile(r"[0-9]+", re.ASCII)
_ABSENT = "nothing of that name is shared here"
_TAG = b"grid_share_link_entity_tag_v1"


@frozen(kw_only=True)
class _Asked:
    """A request behind an open link. names: below the link. has_slash: whether its path ends with a slash."""

    exchange: Exchange
    links: LiveLinks
    link: ShareLink
    names: tuple[str, ...]
    has_slash: bool

    @property
    def visit(self) -> Visit:
        """What the pages say of it."""
        most, done = self.link.most_downloads, self.link.downloads
        left = None if most is None else max(0, most - done)
        return Visit(top=self.link.name, names=self.names, expires=self.link.expires, downloads_left=left)

    async def used(self, answer: AnyAnswer, *, is_download: bool = False) -> AnyAnswer:
        """The answer, once it is counted; the answer of links that open nothing if this one has ended meanwhile.

        What is read while it is sent counts with its first byte: until then, the read may fail.
        """
        if self.exchange.method != "GET":
            return answer
        if isinstance(answer, StreamedAnswer):
            write = answer.write

            async def count_and_write(sink: Sink) -> None:
                await write(_CountedSink(sink, self, is_download=is_download))

            return evolve(answer, write=count_and_write)
        if await self.links.use(self.link, is_download=is_download):
            return answer
        return _gone(self.exchange)


class _CountedSink:
    """Counts the use of a link before it passes the first byte on. Withheld if the link has ended meanwhile."""

    def __init__(self, sink: Sink, asked: _Asked, *, is_download: bool) -> None:
        self._sink = sink
        self._asked = asked
        self._is_download = is_download
        self._is_counted = False

    async def write(self, data: Buffer) -> None:
        """Pass the bytes on."""
        asked = self._asked
        if not self._is_counted and len(data):
            if not await asked.links.use(asked.link, is_download=self._is_download):
                raise Withheld(_unlisted(_gone(asked.exchange)))
            self._is_counted = True
        await self._sink.write(data)


def routes(links: LiveLinks) -> Mapping[str, Handler]:
    """The handler of `/s`."""

    async def visit(exchange: Exchange) -> AnyAnswer:
        allow(exchange, "GET", "HEAD", "POST")
        return _unlisted(await _visit(exchange, links))

    return {SHARED: visit}


async def _visit(exchange: Exchange, links: LiveLinks) -> AnyAnswer:
    token, *names = exchange.segments[1:] or ("",)
    try:
        link = await links.find(token)
    except ServiceUnavailable as fault:
        return page(render_unavailable(str(fault)), fault.status) if exchange.wants_page else fault_answer(fault)
    if link is None or not exchange.gateway.is_allowed(link.cap):
        return _gone(exchange)
    if link.password is not None and not _has_pass(exchange, links, link, link.password):
        return await _ask_password(exchange, links, link, link.password)
    if exchange.method == "POST":
        return redirect(_address(exchange), 303)
    if not names:
        return redirect(_address(exchange))
    has_slash = names[-1] == ""
    if has_slash:
        names.pop()
    if "" in names or len(names) > MAX_PATH_DEPTH:
        raise NotFound(_ABSENT, shape="page")
    try:
        normal = tuple(map(normalize_name, names))
    except FormatError:
        raise NotFound(_ABSENT, shape="page") from None
    asked = _Asked(exchange=exchange, links=links, link=link, names=normal, has_slash=has_slash)
    return await (_in_directory(asked) if isinstance(link.cap, DirectoryCap) else _lone_file(asked, link.cap))


A = TypeVar("A", bound="Answer | StreamedAnswer")


def _unlisted(answer: A) -> A:
    """The answer, which search engines must not list."""
    return evolve(answer, headers=(*answer.headers, ("X-Robots-Tag", "noindex, nofollow")))


def _gone(exchange: Exchange) -> Answer:
    """The answer for all links that open nothing."""
    return page(render_gone(), 404) if exchange.wants_page else fault_answer(NotFound(GONE))


def _address(exchange: Exchange) -> str:
    """The address of the request without its query; that of the link itself ends with a slash."""
    token, *names = exchange.segments[1:]
    return shared_path(token, names or [""])


def _has_pass(exchange: Exchange, links: LiveLinks, link: ShareLink, password: PasswordHash) -> bool:
    for part in (exchange.headers.get("cookie") or "").split(";"):
        name, _, value = part.strip().partition("=")
        if name == COOKIE and links.passes.is_valid(value, link.digest, password):
            return True
    return False


async def _ask_password(exchange: Exchange, links: LiveLinks, link: ShareLink, password: PasswordHash) -> Answer:
    """The form for the password, or the way on for the right one."""
    if exchange.method != "POST":
        return _password_form(exchange, "", 403)
    # Of this type, a form holds no file that would be kept on disk.
    if exchange.body.content_type.partition(";")[0].strip().lower() != URLENCODED:
        raise BadRequest("send the password as a form", shape="page")
    await exchange.form()
    given = exchange.arguments.text("password") or ""
    wait_s = links.attempts.wait_s(link.digest, exchange.peer)
    if wait_s > 0:
        answer = _password_form(exchange, "There were too many attempts. Wait a minute, and try again.", 429)
        return evolve(answer, headers=(*answer.headers, ("Retry-After", str(int(wait_s) + 1))))
    if not await links.matches(password, given):
        return _password_form(exchange, "This is not the password.", 403)
    path = shared_path(exchange.segments[1])
    secure = "; Secure" if exchange.origin.startswith("https:") else ""
    cookie = f"{COOKIE}={links.passes.issue(link.digest, password)}; Path={path}; Max-Age={PASS_S}"
    answer = redirect(_address(exchange), 303)
    return evolve(answer, headers=(*answer.headers, ("Set-Cookie", f"{cookie}; HttpOnly; SameSite=Lax{secure}")))


def _password_form(exchange: Exchange, problem: str, status: int) -> Answer:
    if exchange.wants_page:
        return page(render_password(problem), status)
    words = problem or "this link needs a password: open it in a browser"
    return fault_answer(TooManyRequests(words) if status == 429 else Forbidden(words))


async def _lone_file(asked: _Asked, cap: KnownCap) -> AnyAnswer:
    """A link to a file: its page, and below it the contents under the file's name."""
    name = asked.link.name
    if not asked.names and asked.has_slash:
        size = await _size(asked, Child(target=cap))
        html = render_shared_file(asked.visit, size=size, changed=None, is_alone=True)
        return await asked.used(page(html))
    if asked.names != (normalize_name(name),) or asked.has_slash:
        raise NotFound(_ABSENT, shape="page")
    return await _file(asked, Child(target=cap), name)


async def _in_directory(asked: _Asked) -> AnyAnswer:
    """A link to a directory: what its path leads to, which is never above the directory."""
    gateway, cap = asked.exchange.gateway, asked.link.cap
    path = TreePath(root=Child(target=cap), names=asked.names, has_slash=asked.has_slash)
    try:
        reached = await follow(gateway, path)
    except Obstacle:
        raise NotFound(_ABSENT, shape="page") from None
    target = reached.child.target
    if reached.missing or isinstance(target, UnknownChild) or target.authority == "verify":
        raise NotFound(_ABSENT, shape="page")
    if isinstance(target, DirectoryCap):
        if not asked.has_slash:
            return redirect(f"{_address(asked.exchange)}/")
        return await _directory(asked, target)
    if asked.has_slash:
        raise NotFound(_ABSENT, shape="page")
    if asked.exchange.arguments.t == "info":
        return await _file_page(asked, reached)
    return await _file(asked, reached.child, reached.name)


async def _directory(asked: _Asked, cap: DirectoryCap) -> AnyAnswer:
    exchange, arguments = asked.exchange, asked.exchange.arguments
    if arguments.t == "zip" and exchange.method == "HEAD":
        return Answer(200, "application/zip")  # Programs that preview links need not make the gateway list everything.
    if arguments.t == "zip":
        return await asked.used(await zip_directory(exchange, cap, asked.visit.title), is_download=True)
    if arguments.t:
        raise BadRequest("a shared directory takes no other t= than zip", shape="page")
    children = await list_children(open_directory(exchange.gateway, Child(target=cap)), shape="page")
    key, descending = parse_order(arguments.shown("sort"), arguments.shown("order"))
    view = SharedDirectory(
        visit=asked.visit,
        children=children,
        sort=key,
        descending=descending,
        page=parse_page(arguments.shown("page")),
        find=(arguments.shown("find") or "")[:MAX_FIND],
    )
    cpu = exchange.gateway.store.runtime.cpu
    render = partial(_listing_page, accept_encoding=exchange.headers.get("accept-encoding"))
    return await asked.used(await run_sized(cpu, len(children), render, view))


def _listing_page(view: SharedDirectory, accept_encoding: str | None) -> Answer:
    return compressed(page(render_shared_directory(view)), accept_encoding)


async def _file_page(asked: _Asked, reached: Reached) -> AnyAnswer:
    """The page of a file, with its neighbors in its directory."""
    exchange, child = asked.exchange, reached.child
    key, descending = parse_order(exchange.arguments.shown("sort"), exchange.arguments.shown("order"))
    cpu, siblings = exchange.gateway.store.runtime.cpu, reached.siblings
    near = await run_sized(cpu, len(siblings), find_neighbors, siblings, reached.name, key, descending)
    order = order_arguments(key, descending)
    html = render_shared_file(
        asked.visit,
        size=await _size(asked, child),
        changed=linked_at(child),
        way=neighbor_links(near, lambda name: neighbor_address(name, order)),
        is_alone=False,
    )
    return await asked.used(page(html))


async def _size(asked: _Asked, child: Child) -> int | None:
    """The size of a file, None if unknown; Forbidden if it must not be shown."""
    assert not isinstance(child.target, UnknownChild)
    asked.exchange.gateway.require_allowed(child.target)
    return await size_if_known(asked.exchange, child)


async def _file(asked: _Asked, child: Child, name: str) -> AnyAnswer:
    """The contents of a file, or its preview. Where downloads are counted, only the whole file is sent, by nothing else."""
    cap, view, is_limited = child.target, asked.exchange.arguments.t, asked.link.most_downloads is not None
    assert not isinstance(cap, UnknownChild)
    if view == "preview" and not is_limited:
        return await asked.used(await markdown_page(asked.exchange, cap, name))
    if view:
        raise BadRequest("a shared file takes no other t= than info", shape="page")
    if is_limited:
        whole = evolve(asked.exchange, headers=asked.exchange.headers.without("range", "if-none-match"))
        answer = await file_contents(whole, cap, name, None)
        kept = [pair for pair in answer.headers if pair[0] not in ("Accept-Ranges", "Cross-Origin-Resource-Policy")]
        return await asked.used(evolve(answer, headers=(*kept, ("Accept-Ranges", "none"))), is_download=True)
    answer = await file_contents(asked.exchange, cap, name, _entity_tag(asked.link, cap))
    if answer.status not in (200, 206) or not _counts(dict(answer.headers).get("Content-Range")):
        return answer
    return await asked.used(answer, is_download=True)


def _counts(content_range: str | None) -> bool:
    """Whether an answer with this range, None for the whole file, counts as a download.

    Players ask for many ranges of one file: only those of its beginning count. A list of pictures asks for less.
    """
    if content_range is None:
        return True
    begin, end, size = map(int, _RANGE.findall(content_range))
    return begin == 0 and (end >= PEEK_SIZE or end + 1 == size)


def _entity_tag(link: ShareLink, cap: KnownCap) -> str | None:
    """The tag of a file that never changes. Unlike the gateway's other tags, it says nothing of the storage index."""
    tag = entity_tag(cap, "", by_path=True)
    return None if tag is None else encode(tagged_hash(_TAG, link.digest + tag.encode("ascii"), 16))
