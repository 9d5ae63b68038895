"""Parsing the names of systems."""

from __future__ import annotations

import pytest

from perf.campaigns.labels import Label, parse_label, with_baselines, without_commit


@pytest.mark.parametrize(
    ("text", "label", "default"),
    [
        ("grid", Label(base="grid@foolscap", codec="isal", durability="full"), True),
        ("grid@http#2", Label(base="grid@http", codec="isal", durability="full"), True),
        ("grid@http-plain", Label(base="grid@http-plain", codec="isal", durability="full"), False),
        ("grid@http+zfec+undurable", Label(base="grid@http", codec="zfec", durability="none"), False),
        ("grid:054f5b7", Label(base="grid@foolscap", codec="isal", durability="full", commit="054f5b7"), False),
        (
            "grid@http:v1.0+zfec#2",
            Label(base="grid@http", codec="zfec", durability="full", commit="v1.0"),
            False,
        ),
        ("tahoe@http", Label(base="tahoe@http", codec="zfec", durability="none"), True),
    ],
)
def test_label_says_what_the_system_is(text: str, label: Label, default: bool) -> None:
    assert parse_label(text) == label
    assert label.is_default is default


@pytest.mark.parametrize("text", ["ftp", "grid@smtp", "grid+fast", "tahoe+zfec", "tahoe:054f5b7", "grid:", ""])
def test_label_of_no_system_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"no system|no option|Tahoe-LAFS|colon"):
        parse_label(text)


def test_baselines_stand_beside_their_systems_and_leave_other_programs_out() -> None:
    systems = with_baselines(("grid@foolscap", "grid@http+zfec#2", "tahoe@http"), "054f5b7")
    assert systems == ("grid@foolscap", "grid@foolscap:054f5b7", "grid@http+zfec#2", "grid@http:054f5b7+zfec#2")
    assert [without_commit(system) for system in systems[1::2]] == ["grid@foolscap", "grid@http+zfec#2"]


def test_baseline_of_no_grid_is_refused() -> None:
    with pytest.raises(ValueError, match="no Grid"):
        with_baselines(("tahoe@http",), "054f5b7")


def test_label_of_a_peer_names_its_program_its_server_and_its_options() -> None:
    label = parse_label("rclone@versitygw+tuned")
    assert (label.base, label.options, label.is_peer, label.is_grid) == ("rclone@versitygw", ("tuned",), True, False)
    assert parse_label("scp+cipher=aes128-ctr+old").options == ("cipher=aes128-ctr", "old")
    assert parse_label("cp").is_default
    assert not label.is_default


@pytest.mark.parametrize(
    "text", ["scp+crypt", "scp+cipher=", "cp+x", "rclone", "rclone@minio:abc", "s5cmd@versitygw+packed"]
)
def test_label_of_a_peer_when_it_has_no_such_option_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"no (option|system)"):
        parse_label(text)


def test_label_with_options_of_the_engine_is_a_grid_that_departs_from_the_default() -> None:
    label = parse_label("grid@http+unhedged+window=4194304+zfec")
    assert (label.base, label.codec, label.options) == ("grid@http", "zfec", ("unhedged", "window=4194304"))
    assert not label.is_default


@pytest.mark.parametrize("text", ["grid@http+window=0", "grid@http+window=4M", "grid@http:054f5b7+unbatched"])
def test_option_of_the_engine_that_is_impossible_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"number of bytes|older commit"):
        parse_label(text)
