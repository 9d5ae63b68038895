"""Markdown as safe HTML."""

from __future__ import annotations

import re

import pytest

from grid.gateway.files.markdown_worker import MAX_NESTING, TAGS, render_markdown
from tests.gateway.pages.hostile import HOSTILE, Document

TRICKS = [
    "[a](javascript:alert(1)) [b](JaVaScRiPt:alert(1)) [c](data:text/html,x) [d](vbscript:x)",
    "<script>alert(1)</script> <img src=x onerror=alert(1)> <svg onload=alert(1)>",
    "![a](http://elsewhere/pixel.png) ![b](/uri/secret) ![<b>c](x)",
    "[a](/uri/URI:DIR2:x) [b](//elsewhere/x) [c](../x) [d](#x) [e](?t=unlink)",
    '<http://a.example/"onmouseover=alert(1)> [x]: javascript:alert(1)\n\n[x]',
    '~~~"><script>\nx\n~~~\n\n# h {#id onclick=x}\n\n[a](http://x "t\\" onclick=\\"alert(1)")',
    "<form action=/uri><input name=a></form><style>*{}</style><base href=x><meta http-equiv=refresh>",
]


@pytest.mark.parametrize("text", [*HOSTILE, *TRICKS])
def test_nothing_in_a_text_runs_fetches_or_leads_to_the_gateway(text: str) -> None:
    for given in (text, f"# {text}", f"> - {text}", f"| {text} |\n|---|\n| {text} |"):
        document = Document(render_markdown(given))
        for element, attributes in document.elements:
            assert element in TAGS
            assert set(attributes) <= {"href", "rel", "target", "start"}, (element, attributes)
            assert re.match(r"(https?://|mailto:)", attributes.get("href") or "mailto:"), attributes
            if element == "a":
                assert {"noopener", "noreferrer"} <= set((attributes["rel"] or "").split())


def test_text_has_headings_below_those_of_its_page_tables_lists_and_code() -> None:
    html = render_markdown(
        "# One\n\n##### Five\n\n| a |\n|---|\n| b |\n\n3. x\n\n~~~\n<i>\n~~~\n\n**b** ~~s~~ ![alt](x)"
    )
    assert "<h3>One</h3>" in html and "<h6>Five</h6>" in html
    assert "<th>a</th>" in html and "<td>b</td>" in html and '<ol start="3">' in html
    assert "<pre><code>&lt;i&gt;\n</code></pre>" in html
    assert "<strong>b</strong>" in html and "<s>s</s>" in html and "<em>alt</em>" in html


def test_comments_are_left_out_and_all_other_html_is_shown_as_it_is_written() -> None:
    html = render_markdown(
        "a <!-- b --> c <b>d</b>\n\n<!-- five\nnumbers -->\n\n<div>*x*</div> <!-- y -->\n\n`<!-- code -->`\n\n<!-- open"
    )
    assert "<p>a  c &lt;b&gt;d&lt;/b&gt;</p>" in html and "five" not in html and "y" not in html
    assert "<p>&lt;div&gt;*x*&lt;/div&gt;" in html and "<code>&lt;!-- code --&gt;</code>" in html
    assert "&lt;!-- open" in html


def test_nesting_is_cut() -> None:
    html = render_markdown("> " * 500 + "deep")
    assert 0 < html.count("<blockquote>") <= MAX_NESTING
