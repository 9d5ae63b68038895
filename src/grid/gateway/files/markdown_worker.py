"""Renders Markdown from stdin as safe HTML on stdout, in a separate process.

    python -I -m grid.gateway.files.markdown_worker CPU_SECONDS < TEXT > HTML

Parsing Markdown can take time that grows with the square of the text, and nothing can interrupt a thread, so the
operating system ends this process at its limits of time and memory. The HTML has no scripts, styles, images, forms,
identifiers or raw HTML of the text, and its links lead to web and mail addresses only.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from markdown_it.token import Token

MAX_HTML = 4 * 2**20
"""Bytes of the HTML: quotation marks take six times as many as in the text."""

MAX_NESTING = 20
"""Lists and quotations inside each other; the text deeper inside stays away."""

MEMORY = 2**29
"""Bytes of address space."""

TAGS = {
    "a", "blockquote", "br", "code", "del", "em", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "s", "strong",
    "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip


def render_markdown(text: str) -> str:
    """Safe HTML of the text. Headings begin at the third level, below those of the page around it."""
    import nh3
    from markdown_it import MarkdownIt

    parser = MarkdownIt("js-default", {"maxNesting": MAX_NESTING, "html": True, "linkify": False})
    parser.add_render_rule("image", _image)
    parser.add_render_rule("html_inline", _raw)
    parser.add_render_rule("html_block", _raw)
    tokens = parser.parse(text)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1:]) + 2, 6)}"
    html = parser.renderer.render(tokens, parser.options, {})
    return nh3.clean(
        html,
        tags=TAGS,
        attributes={"a": {"href"}, "ol": {"start"}},
        attribute_filter=_filtered,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
        set_tag_attribute_values={"a": {"target": "_blank"}},
    )


def _image(renderer: object, tokens: Sequence[Token], index: int, options: object, env: object) -> str:
    """The description of an image: fetching it would tell its server who reads the text."""
    from markdown_it.common.utils import escapeHtml

    words = tokens[index].content.strip()
    return f"<em>{escapeHtml(words or 'image')}</em>"


def _raw(renderer: object, tokens: Sequence[Token], index: int, options: object, env: object) -> str:
    """HTML in the text is shown as it is written, except for its comments, which nobody is meant to read."""
    from markdown_it.common.utils import escapeHtml

    text, kept = tokens[index].content, ""
    while text:
        before, begin, inside = text.partition("<!--")
        kept += before
        comment, end, text = inside.partition("-->")
        if begin and not end:
            kept += begin + comment
    shown = escapeHtml(kept)
    return f"<p>{shown}</p>" if tokens[index].type == "html_block" and shown.strip() else shown


def _filtered(element: str, attribute: str, value: str) -> str | None:
    """Drop addresses that would lead to this gateway, and attributes that nh3 allows everywhere."""
    if attribute == "href":
        return value if value.lower().startswith(("http://", "https://", "mailto:")) else None
    return value if attribute in ("rel", "start", "target") else None


def _limit(cpu_s: int) -> None:
    limits: list[tuple[int, int]] = [
        (resource.RLIMIT_CPU, cpu_s),
        (resource.RLIMIT_AS, MEMORY),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ]
    for limit, most in limits:
        with suppress(ValueError, OSError):  # Not every system has every limit, or permits this one.
            resource.setrlimit(limit, (most, most))


def main() -> None:
    """Render stdin to stdout; exit code 3 if the HTML is too long."""
    _limit(int(sys.argv[1]))
    stdin: Any = sys.stdin.buffer
    html = render_markdown(stdin.read().decode("utf-8", "replace")).encode("utf-8")
    if len(html) > MAX_HTML:
        sys.exit(3)
    sys.stdout.buffer.write(html)


if __name__ == "__main__":
    main()
