"""Faults of object stores: temporary ones are retried, permanent ones are one clear error, and no wrong byte arrives."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from attrs import evolve

from grid.transfer.ends import EndError
from grid.transfer.object_end import open_object_end
from grid.transfer.outcome import Outcome, Plan
from grid.transfer.selection import parse_selection
from tests.transfer.conftest import require
from tests.transfer.scripted_s3 import BUCKET, Fault, NumberedNames, ScriptedS3, long_page, scripted_s3
from tests.transfer.test_engine import FAST, contents, send

LARGE = 5 * 2**20 + 11


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedS3]:
    """A running server with a small and a large object below `in`; retries do not wait."""
    require("obstore")
    monkeypatch.setattr("grid.transfer.engine.pause_before", lambda attempt, draw: 0.0)
    monkeypatch.setattr("grid.transfer.s3_uploads.PAUSE_S", 0)
    state = ScriptedS3(objects={"in/small": b"small", "in/deep/large": os.urandom(LARGE)})
    with scripted_s3(state) as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        yield state


def replacement(state: ScriptedS3, key: str, new: bytes, at: int) -> tuple[Fault, itertools.count[int]]:
    """No fault at all: the request of that number for the object replaces it. Also the numbers of these requests."""
    count = itertools.count()

    def replace(path: str) -> bool:
        if key in path and next(count) == at:
            state.objects[key] = new
        return False

    return Fault("GET", 500, is_for=replace), count


def wanted(state: ScriptedS3) -> dict[str, bytes]:
    """What a copy of `in` has."""
    return {key.removeprefix("in/"): data for key, data in state.objects.items() if key.startswith("in/")}


def fetch(state: Path, plan: Plan = FAST) -> Outcome:
    return send(open_object_end(f"s3://{BUCKET}/in"), state / "target", state, plan)


def upload(source: Path, state: Path) -> Outcome:
    end = open_object_end(f"s3://{BUCKET}/out", is_target=True)
    return send(source, end, state)


FAULTS = [(500, "InternalError"), (503, "SlowDown"), (429, "TooManyRequests"), (0, ""), (1, "")]


@pytest.mark.parametrize(("status", "code"), FAULTS)
def test_download_when_the_server_fails_for_a_while_arrives(
    s3: ScriptedS3, tmp_path: Path, status: int, code: str
) -> None:
    s3.faults = [Fault("GET", status, code, is_for=lambda path: "large" in path) for _ in range(3)]

    outcome = fetch(tmp_path)

    assert not s3.faults, "all faults happened"
    assert not outcome.failures
    assert contents(tmp_path / "target") == wanted(s3)


@pytest.mark.parametrize(("status", "code"), FAULTS[:-1])
def test_upload_when_the_server_fails_for_a_while_arrives(
    s3: ScriptedS3, tmp_path: Path, status: int, code: str
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "small").write_bytes(b"small")
    (source / "large").write_bytes(os.urandom(20 * 2**20))
    s3.faults = [Fault(method, status, code) for method in ("PUT", "POST", "PUT")]

    outcome = upload(source, tmp_path)

    assert not s3.faults
    assert not outcome.failures
    assert {key: data for key, data in s3.objects.items() if key.startswith("out/")} == {
        f"out/{name}": data for name, data in contents(source).items()
    }


def test_download_when_the_server_never_recovers_fails_by_itself(s3: ScriptedS3, tmp_path: Path) -> None:
    s3.faults = [Fault("GET", 503, "SlowDown", is_for=lambda path: "large" in path) for _ in range(1000)]

    outcome = fetch(tmp_path)

    assert [name for name, _ in outcome.failures] == ["deep/large"]
    assert contents(tmp_path / "target") == {"small": b"small"}


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        (400, "ExpiredToken", "credentials"),
        (403, "ExpiredToken", "credentials"),
        (401, "Unauthorized", "credentials"),
        (403, "AccessDenied", "credentials"),
        (400, "InvalidArgument", "refused"),
    ],
)
def test_download_when_refused_is_asked_for_once_and_says_why(
    s3: ScriptedS3, tmp_path: Path, status: int, code: str, words: str
) -> None:
    s3.faults = [Fault("GET", status, code, is_for=lambda path: "small" in path) for _ in range(5)]

    outcome = fetch(tmp_path)

    ((name, error),) = outcome.failures
    assert name == "small"
    assert words in str(error)
    assert "secret" not in str(error)
    assert "Debug" not in str(error)
    assert len(s3.faults) == 4, "asked once"
    assert contents(tmp_path / "target") == {"deep/large": s3.objects["in/deep/large"]}


LISTINGS = [*FAULTS, (400, "ExpiredToken"), (403, "AccessDenied"), (301, "PermanentRedirect")]


@pytest.mark.parametrize(("status", "code"), LISTINGS)
@pytest.mark.parametrize("prefix", ["in", "out"])
def test_mirror_when_a_later_page_of_a_listing_fails_for_good_changes_nothing(
    s3: ScriptedS3, tmp_path: Path, status: int, code: str, prefix: str
) -> None:
    """Neither because the source seems to have less, nor because the target does."""
    names = {"in/": NumberedNames(range(3000)), "out/": NumberedNames(range(1, 3001))}
    s3.page_of = lambda prefix, token: long_page(names[prefix], prefix, token)

    def is_third(path: str) -> bool:
        return f"prefix={prefix}" in path and "continuation-token=2000" in path

    s3.faults = [Fault("GET", status, code, is_for=is_third) for _ in range(100)]
    ends = [open_object_end(f"s3://{BUCKET}/{each}", is_target=each == "out") for each in ("in", "out")]
    with pytest.raises(EndError, match=f"s3://{BUCKET}/{prefix}"):
        send(ends[0], ends[1], tmp_path, evolve(FAST, delete=True, dry_run=True))
    assert len(s3.faults) < 100 and not any(asked.startswith(("PUT", "DELETE")) for asked in s3.asked)


def test_markers_of_folders_are_left_out_and_empty_objects_are_not(s3: ScriptedS3, tmp_path: Path) -> None:
    s3.objects |= {"in/": b"", "in/deep/": b"", "in/empty/": b"", "in/nothing": b"", "in/e%2Ff ~[]": b"4"}
    for copied in (4, 0):
        outcome = fetch(tmp_path)
        assert (outcome.copied, list(outcome.failures)) == (copied, [])
        assert {each.name for each in outcome.left_out} == {"in", "deep", "empty"}
        wanted = {"small": b"small", "deep/large": s3.objects["in/deep/large"], "nothing": b"", "e%2Ff ~[]": b"4"}
        assert contents(tmp_path / "target") == wanted


ODD_KEYS = ["in/a//b", "in/./c", "in/../d", "in//e"]
CONTROL_KEYS = ["in/x\ny", "in/deep/\x7f", "in/\t//"]


@pytest.mark.parametrize("page", [1, 2, 200])
def test_keys_that_are_no_paths_are_left_out_and_the_others_are_copied(
    s3: ScriptedS3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    monkeypatch.setattr("grid.transfer.s3_uploads.LISTED_AT_ONCE", page)
    s3.objects |= dict.fromkeys(ODD_KEYS, b"odd") | {"in/": b"", "in/deep/": b"", "in/z \u00fc&+%": b"z"}
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "gone").write_bytes(b"gone")
    for copied in (3, 0):
        outcome = fetch(tmp_path, evolve(FAST, delete=True))
        assert (outcome.copied, list(outcome.failures)) == (copied, [])
        assert {each.name for each in outcome.left_out if "no path" in each.why} == {key[3:] for key in ODD_KEYS}
    wanted = {
        "small": b"small", "deep/large": s3.objects["in/deep/large"], "z \u00fc&+%": b"z",
    }  # fmt: skip
    assert contents(tmp_path / "target") == wanted


def test_keys_with_control_characters_fail_alone_and_nothing_is_removed(s3: ScriptedS3, tmp_path: Path) -> None:
    s3.objects |= dict.fromkeys(CONTROL_KEYS, b"odd")
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "gone").write_bytes(b"gone")
    outcome = fetch(tmp_path, evolve(FAST, delete=True))
    failed = {name: str(error) for name, error in outcome.failures}
    assert failed.keys() == {key.removeprefix("in/") for key in CONTROL_KEYS} and not list(outcome.left_out)
    assert all(
        error.startswith(f"{name!r}: it cannot be copied: its key has control") for name, error in failed.items()
    )
    assert (outcome.copied, outcome.removed) == (2, 0) and (tmp_path / "target" / "gone").exists()


def test_keys_with_control_characters_that_are_not_selected_do_not_fail(s3: ScriptedS3, tmp_path: Path) -> None:
    s3.objects |= dict.fromkeys(CONTROL_KEYS, b"odd")
    outcome = fetch(tmp_path, evolve(FAST, selection=parse_selection(["small"], [])))
    assert (outcome.copied, list(outcome.failures)) == (1, [])


def test_names_with_control_characters_fail_alone_and_are_not_sent(s3: ScriptedS3, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for name in ("good", "x\ny", "\x7f"):
        (source / name).write_bytes(b"data")
    outcome = upload(source, tmp_path)
    failed = {name: str(error) for name, error in outcome.failures}
    assert outcome.copied == 1 and failed.keys() == {"x\ny", "\x7f"}
    for name, error in failed.items():
        assert error.startswith(f"{name!r}: s3://{BUCKET}/out cannot hold it: its name has control characters")
    assert s3.objects["out/good"] == b"data" and not any("%0A" in asked or "%7F" in asked for asked in s3.asked)


@pytest.mark.parametrize("key", [*ODD_KEYS, "in/x\ny"])
def test_key_that_is_no_path_is_named_and_removes_nothing_where_only_obstore_can_ask(
    s3: ScriptedS3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setattr("grid.transfer.object_end.open_uploads", lambda *_: None)
    s3.objects[key] = b"odd"
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "kept").write_bytes(b"kept")
    with pytest.raises(EndError, match="is no path: rename that object") as caught:
        fetch(tmp_path, evolve(FAST, delete=True))
    assert repr(key) in str(caught.value)
    assert (tmp_path / "target" / "kept").exists()


@pytest.mark.parametrize(("status", "code"), [(400, "ExpiredToken"), (403, "AccessDenied"), (301, "PermanentRedirect")])
@pytest.mark.parametrize("size", [5, 20 * 2**20])
def test_upload_when_refused_is_tried_once_says_why_and_leaves_nothing(
    s3: ScriptedS3, tmp_path: Path, status: int, code: str, size: int
) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "file").write_bytes(os.urandom(size))
    s3.faults = [Fault(method, status, code) for method in ("PUT", "POST") for _ in range(50)]

    outcome = upload(source, tmp_path)

    ((name, error),) = outcome.failures
    assert name == "file" and "secret" not in str(error)
    assert any(word in str(error) for word in ("credentials", "region"))
    assert len(s3.faults) == 99 and not s3.uploads
    assert not [key for key in s3.objects if key.startswith("out/")]


@pytest.mark.parametrize("status", [301, 307])
def test_download_when_redirected_to_another_region_says_what_to_set(
    s3: ScriptedS3, tmp_path: Path, status: int
) -> None:
    s3.faults = [Fault("GET", status, "PermanentRedirect", is_for=lambda path: "small" in path) for _ in range(20)]

    outcome = fetch(tmp_path)

    assert [name for name, _ in outcome.failures] == ["small"]
    assert "region" in str(outcome.failures[0][1])


@pytest.mark.parametrize("ignores", [False, True])
def test_object_when_replaced_while_it_is_read_is_never_a_mixture(
    s3: ScriptedS3, tmp_path: Path, *, ignores: bool
) -> None:
    old, new = s3.objects["in/deep/large"], os.urandom(LARGE)
    s3.ignores_conditions = ignores
    fault, count = replacement(s3, "in/deep/large", new, at=2)
    s3.faults = [fault]
    outcome = fetch(tmp_path, evolve(FAST, mode="chunked"))

    assert next(count) > 3, "it was read again"
    assert not outcome.failures
    assert contents(tmp_path / "target")["deep/large"] == new != old
    assert not fetch(tmp_path).failures


def test_object_when_its_tag_changes_with_each_answer_fails_and_leaves_nothing(s3: ScriptedS3, tmp_path: Path) -> None:
    count = itertools.count()
    s3.tag_of = lambda data: f'"{next(count)}"'
    s3.ignores_conditions = True

    outcome = fetch(tmp_path, evolve(FAST, mode="chunked"))

    assert [name for name, _ in outcome.failures] == ["deep/large"]
    assert "changed" in str(outcome.failures[0][1])
    assert contents(tmp_path / "target") == {"small": b"small"}


def test_large_object_is_asked_for_and_then_sent_in_ranges_while_a_small_one_is_sent_at_once(
    s3: ScriptedS3, tmp_path: Path
) -> None:
    s3.objects["in/larger"] = os.urandom(11 * 2**20)

    outcome = fetch(tmp_path, evolve(FAST, mode="auto", chunk_size=None))

    assert not outcome.failures
    assert contents(tmp_path / "target") == wanted(s3)
    asked = [line for line in s3.asked if "list-type" not in line]
    assert sorted(line for line in asked if "small" in line) == [f"GET /{BUCKET}/in/small"]
    assert sorted(line for line in asked if "larger" in line) == [
        *[f"GET /{BUCKET}/in/larger"] * 3,
        f"HEAD /{BUCKET}/in/larger",
    ], "two whole ranges and the rest: nothing is sent in vain"


def test_large_object_read_in_one_stream_needs_no_server_that_knows_ranges(s3: ScriptedS3, tmp_path: Path) -> None:
    s3.objects["in/larger"] = os.urandom(11 * 2**20)
    s3.ignores_ranges = True

    outcome = fetch(tmp_path, evolve(FAST, mode="stream"))

    assert not outcome.failures
    assert contents(tmp_path / "target") == wanted(s3)
    assert s3.count("HEAD") == 1


@pytest.mark.parametrize("status", [405, 501, 0])
def test_large_object_when_the_server_answers_no_head_is_fetched(s3: ScriptedS3, tmp_path: Path, status: int) -> None:
    s3.objects["in/larger"] = os.urandom(11 * 2**20)
    s3.faults = [Fault("HEAD", status, "MethodNotAllowed") for _ in range(20)]

    outcome = fetch(tmp_path)

    assert not outcome.failures
    assert contents(tmp_path / "target") == wanted(s3)
    assert len(s3.faults) < 20


@pytest.mark.parametrize("heads", ["empty", "untagged"])
def test_large_object_when_a_head_says_too_little_is_neither_cut_nor_a_mixture(
    s3: ScriptedS3, tmp_path: Path, heads: Literal["empty", "untagged"]
) -> None:
    s3.objects["in/larger"], new = os.urandom(11 * 2**20), os.urandom(11 * 2**20)
    s3.heads = heads
    fault, count = replacement(s3, "in/larger", new, at=3)
    s3.faults = [fault]
    outcome = fetch(tmp_path, evolve(FAST, mode="chunked"))

    assert next(count) > 3
    assert s3.count("HEAD") >= 1
    assert not outcome.failures
    assert contents(tmp_path / "target")["larger"] == new


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        (400, "ExpiredToken", "ExpiredToken"),
        (403, "InvalidAccessKeyId", "InvalidAccessKeyId"),
        (403, "AccessDenied", "permit"),
    ],
)
def test_large_object_when_refused_says_why_though_a_head_has_no_body(
    s3: ScriptedS3, tmp_path: Path, status: int, code: str, words: str
) -> None:
    s3.objects["in/larger"] = os.urandom(11 * 2**20)
    s3.faults = [Fault(method, status, code, is_for=lambda path: "larger" in path) for method in ["HEAD", "GET"]]

    outcome = fetch(tmp_path)

    assert [name for name, _ in outcome.failures] == ["larger"]
    assert words in str(outcome.failures[0][1])


def test_upload_when_its_source_ends_early_leaves_no_object_and_no_parts(s3: ScriptedS3, tmp_path: Path) -> None:
    from tests.transfer.test_engine import LyingEnd

    for size in (100, 20 * 2**20):
        liar = LyingEnd(size, [b"x" * (size // 2)])
        outcome = send(liar, open_object_end(f"s3://{BUCKET}/out", is_target=True), tmp_path)
        assert len(outcome.failures) == 1
    assert not [key for key in s3.objects if key.startswith("out/")]
    assert not s3.uploads
