"""HTML out of values."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from grid.gateway.pages.markup import Markup, join, tag
from tests.gateway.pages.hostile import Document


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r")))
def test_any_text_and_attribute_is_read_back_as_it_was(text: str) -> None:
    document = Document(tag("p", text, title=text))

    assert document.text == text
    assert document.elements == [("p", {"title": text})]


def test_markup_is_not_escaped_again_and_text_beside_it_is() -> None:
    assert tag("p", tag("b", "a<b"), "&", None, 3, [Markup("<br>"), "<"]) == "<p><b>a&lt;b</b>&amp;3<br>&lt;</p>"


def test_attributes_that_are_none_or_false_are_left_out_and_names_get_hyphens() -> None:
    assert (
        tag("input", required=True, hidden=False, id=None, data_x="1", class_="a")
        == '<input required data-x="1" class="a">'
    )


def test_no_character_of_a_text_is_nul() -> None:
    assert join("a\0b") == "a\N{REPLACEMENT CHARACTER}b"
