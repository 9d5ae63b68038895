"""Names of systems taken apart."""

from __future__ import annotations

import pytest

from perf.campaigns.labels import Label, parse_label


@pytest.mark.parametrize(
    ("text", "label", "default"),
    [
        ("grid", Label(base="grid@foolscap", codec="isal", durability="full"), True),
        ("grid@http#2", Label(base="grid@http", codec="isal", durability="full"), True),
        ("grid@http-plain", Label(base="grid@http-plain", codec="isal", durability="full"), False),
        ("grid@http+zfec+undurable", Label(base="grid@http", codec="zfec", durability="none"), False),
        ("tahoe@http", Label(base="tahoe@http", codec="zfec", durability="none"), True),
    ],
)
def test_label_says_what_the_system_is(text: str, label: Label, default: bool) -> None:
    assert parse_label(text) == label
    assert label.is_default is default


@pytest.mark.parametrize("text", ["ftp", "grid@smtp", "grid+fast", "tahoe+zfec", ""])
def test_label_of_no_system_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"no system|no option|Tahoe-LAFS"):
        parse_label(text)
