"""Changes to directories: the metadata rule, overwriting, retries, and edits against a model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grid.caps import ChkCap, DirectoryCap, LitCap, SdmfReadCap, SdmfWriteCap, UnknownChild
from grid.codec.netstring import pack_netstring
from grid.directory.edits import (
    NONCE,
    Edit,
    Edited,
    Overwrite,
    RemoveChild,
    SetChild,
    SetMetadata,
    apply_edits,
    read_only,
    updated_metadata,
)
from grid.directory.pack import Child, Entry, Target, make_entry, pack_directory, parse_directory, seal_write_cap
from grid.errors import (
    CapError,
    ChildOfWrongTypeError,
    ExistingChildError,
    FormatError,
    GridError,
    NoSuchChildError,
)

KEY = bytes(range(16))
FILE = LitCap(data=b"file")
OTHER = ChkCap(key=bytes(16), ueb_hash=bytes(32), needed=3, total=10, size=1000)
SSK = SdmfWriteCap(write_key=bytes(16), fingerprint=bytes(32))
FOLDER = DirectoryCap(SSK)
UNKNOWN = UnknownChild(write=b"x-new:write", read=b"ro.x-new:read")


def entries_of(children: dict[str, Child]) -> dict[str, Entry]:
    return {name: make_entry(name, child, mutable=True, write_key=KEY) for name, child in children.items()}


def edit(entries: dict[str, Entry], *edits: Edit, now: float = 100.0, retrying: bool = False) -> Edited:
    return apply_edits(entries, edits, now=now, retrying=retrying, write_key=KEY)


def child_of(edited: Edited, name: str) -> Child:
    child = edited.entries[name].child
    assert child is not None
    return child


def test_metadata_when_a_link_is_new_then_it_has_both_times() -> None:
    times = {"linkcrtime": 5.0, "linkmotime": 5.0}
    assert updated_metadata(None, None, 5.0) == {"tahoe": times}
    assert updated_metadata(None, {"user": 1, "ctime": 2, "tahoe": {"linkcrtime": 1}}, 5.0) == {
        "user": 1,
        "ctime": 2,
        "tahoe": times,
    }


def test_metadata_when_a_link_is_replaced_then_creation_is_kept_and_user_keys_only_if_none_are_given() -> None:
    old = {"user": 1, "tahoe": {"linkcrtime": 1.0, "linkmotime": 2.0, "more": [3]}}
    times = {"linkcrtime": 1.0, "linkmotime": 9.0, "more": [3]}
    assert updated_metadata(old, None, 9.0) == {"user": 1, "tahoe": times}
    assert updated_metadata(old, {}, 9.0) == {"tahoe": times}
    assert updated_metadata(old, {"tahoe": "mine", "b": 2}, 9.0) == {"b": 2, "tahoe": times}
    assert old["tahoe"] == {"linkcrtime": 1.0, "linkmotime": 2.0, "more": [3]}


def test_metadata_when_only_the_old_ctime_is_known_then_it_is_the_time_of_creation() -> None:
    times = {"linkcrtime": 4, "linkmotime": 9.0}
    assert updated_metadata({"ctime": 4}, None, 9.0) == {"ctime": 4, "tahoe": times}
    assert updated_metadata({"ctime": 4, "tahoe": {}}, {"ctime": 7}, 9.0) == {"ctime": 7, "tahoe": times}
    assert updated_metadata({"tahoe": "no object"}, None, 9.0) == {"tahoe": {"linkcrtime": 9.0, "linkmotime": 9.0}}


def test_child_when_set_under_a_name_in_another_form_then_it_is_the_normal_name() -> None:
    edited = edit({}, SetChild("e\u0301", FILE))
    assert list(edited.entries) == ["é"]
    edited = edit(dict(edited.entries), RemoveChild("e\u0301"))
    assert edited.entries == {}
    assert list(edited.previous) == ["é"]
    with pytest.raises(FormatError):
        edit({}, SetChild("\ud800", FILE))


def test_entries_when_not_named_by_an_edit_then_keep_their_bytes() -> None:
    odd = b"".join(
        pack_netstring(b"".join(map(pack_netstring, fields)) + more)
        for fields, more in [
            ((b"z", b"URI:LIT:onwwc3dm", seal_write_cap(b"", KEY), b' { "a" :1}'), b"more"),
            ((b"e\xcc\x81", b"URI:LIT:onwwc3dm   ", b"", b"{}"), b""),
            ((b"hidden", b"URI:CHK:bad", seal_write_cap(b"", KEY), b"{}"), b""),
        ]
    )
    before = parse_directory(odd, mutable=True, write_key=KEY)
    assert before["hidden"].child is None
    after = edit(before, SetChild("new", FILE), RemoveChild("gone", must_exist=False))
    assert {name: after.entries[name].data for name in before} == {n: e.data for n, e in before.items()}
    again = parse_directory(pack_directory(after.entries), mutable=True, write_key=KEY)
    assert {name: entry.data for name, entry in again.items()} == {n: e.data for n, e in after.entries.items()}


def test_entry_that_cannot_be_listed_when_edited_then_counts_as_absent_but_is_not_lost_unasked() -> None:
    before = {"h": Entry(data=b"whatever", child=None)}
    with pytest.raises(NoSuchChildError):
        edit(before, RemoveChild("h"))
    with pytest.raises(NoSuchChildError):
        edit(before, SetMetadata("h", {}))
    with pytest.raises(ExistingChildError):
        edit(before, SetChild("h", FILE, overwrite=False))
    assert not edit(before, RemoveChild("h", must_exist=False)).changed
    replaced = edit(before, SetChild("h", FILE))
    assert child_of(replaced, "h").target == FILE
    assert replaced.previous == {}


@pytest.mark.parametrize("old", [FILE, FOLDER, UNKNOWN])
@pytest.mark.parametrize("overwrite", [True, False, "only-files"])
def test_child_when_one_exists_then_overwrite_decides(old: Target, overwrite: Overwrite) -> None:
    before = entries_of({"a": Child(target=old)})
    change = SetChild("a", OTHER, overwrite=overwrite)
    if overwrite is False or (overwrite == "only-files" and old == FOLDER):
        with pytest.raises(ExistingChildError) as caught:
            edit(before, SetChild("b", OTHER), change)
        assert caught.value.name == "a"
    else:
        edited = edit(before, change)
        assert child_of(edited, "a").target == OTHER
        assert edited.previous["a"].target == old


def test_child_when_an_earlier_attempt_put_it_there_then_it_is_no_obstacle() -> None:
    before = entries_of({"a": Child(target=FILE), "w": Child(target=SSK.read_cap())})
    with pytest.raises(ExistingChildError):
        edit(before, SetChild("a", FILE, overwrite=False))
    edit(before, SetChild("a", FILE, overwrite=False), retrying=True)
    edit(before, SetChild("w", SSK, {"no-write": True}, overwrite=False), retrying=True)
    with pytest.raises(ExistingChildError):
        edit(before, SetChild("a", OTHER, overwrite=False), retrying=True)


def test_child_when_another_request_put_the_same_there_is_an_obstacle_if_requests_are_told_apart() -> None:
    ours = SetChild("a", FILE, {NONCE: "ours"}, overwrite=False)
    edit(entries_of({"a": Child(target=FILE, metadata={NONCE: "ours", "mode": 1})}), ours, retrying=True)
    for metadata in ({}, {NONCE: "theirs"}):
        with pytest.raises(ExistingChildError):
            edit(entries_of({"a": Child(target=FILE, metadata=metadata)}), ours, retrying=True)


def test_removal_when_the_child_is_missing_then_fails_unless_it_may_be_or_this_is_a_retry() -> None:
    with pytest.raises(NoSuchChildError) as caught:
        edit({}, RemoveChild("a"))
    assert caught.value.name == "a"
    assert not edit({}, RemoveChild("a", must_exist=False)).changed
    assert not edit({}, RemoveChild("a"), retrying=True).changed


@pytest.mark.parametrize(("target", "kind"), [(FILE, "file"), (SSK, "file"), (FOLDER, "directory"), (UNKNOWN, "")])
def test_removal_when_a_type_is_given_then_only_another_known_type_is_refused(target: Target, kind: str) -> None:
    before = entries_of({"a": Child(target=target)})
    for must_be in ("file", "directory"):
        change = RemoveChild("a", must_be=must_be)
        if kind in ("", must_be):
            assert edit(before, change).previous["a"].target == target
        else:
            with pytest.raises(ChildOfWrongTypeError):
                edit(before, change)


def test_removal_when_the_link_leads_elsewhere_by_now_then_it_is_left_alone() -> None:
    before = entries_of({"a": Child(target=FILE)})
    assert not edit(before, RemoveChild("a", only=OTHER)).changed
    assert edit(before, RemoveChild("a", only=FILE)).entries == {}


def test_child_when_marked_no_write_then_only_its_read_cap_is_stored_for_good() -> None:
    edited = edit({}, SetChild("a", FOLDER, {"no-write": True}), SetChild("u", UNKNOWN, {"no-write": 1}))
    assert child_of(edited, "a").target == FOLDER.read_cap()
    assert child_of(edited, "u").target == UnknownChild(read=UNKNOWN.read)
    stored = parse_directory(pack_directory(edited.entries), mutable=True, write_key=KEY)
    assert stored["a"].child == child_of(edited, "a")
    cleared = edit(dict(edited.entries), SetMetadata("a", {}), now=200.0)
    assert child_of(cleared, "a").target == FOLDER.read_cap()
    kept = edit(entries_of({"a": Child(target=FILE, metadata={"no-write": True})}), SetChild("a", FOLDER))
    assert child_of(kept, "a").target == FOLDER.read_cap()
    assert child_of(edit({}, SetChild("a", FOLDER, {"no-write": False})), "a").target == FOLDER


def test_metadata_when_set_then_the_link_and_its_creation_stay() -> None:
    before = entries_of({"a": Child(target=SSK, metadata={"x": 1, "tahoe": {"linkcrtime": 1.0}})})
    child = child_of(edit(before, SetMetadata("a", {"y": 2})), "a")
    assert child.target == SSK
    assert child.metadata == {"y": 2, "tahoe": {"linkcrtime": 1.0, "linkmotime": 100.0}}
    with pytest.raises(NoSuchChildError):
        edit(before, SetMetadata("b", {}))


def test_child_when_no_directory_takes_it_then_nothing_is_changed() -> None:
    verify = SSK.read_cap().verify_cap()
    assert verify is not None
    for target in (verify, UnknownChild(error=CapError("bad"))):
        with pytest.raises(CapError):
            edit({}, SetChild("fine", FILE), SetChild("bad", target))
    assert read_only(OTHER) == OTHER
    assert isinstance(read_only(SSK), SdmfReadCap)


NAMES = st.sampled_from(["a", "b", "é", "e\u0301", "z/", ""])
TARGETS = st.sampled_from([FILE, OTHER, SSK, FOLDER, UNKNOWN])
EDITS = st.one_of(
    st.builds(SetChild, NAMES, TARGETS, st.sampled_from([None, {}, {"k": 1}]), st.sampled_from([True, False])),
    st.builds(RemoveChild, NAMES, st.booleans()),
    st.builds(SetMetadata, NAMES, st.just({"m": 1})),
)


@given(batches=st.lists(st.lists(EDITS, max_size=4), max_size=6))
def test_edits_when_made_in_batches_then_agree_with_a_model_or_change_nothing(batches: list[list[Edit]]) -> None:
    entries: dict[str, Entry] = {}
    model: dict[str, Target] = {}
    for now, batch in enumerate(batches):
        expected = _model(model, batch)
        try:
            edited = edit(entries, *batch, now=float(now))
        except GridError:
            assert expected is None
            continue
        assert expected is not None
        entries = parse_directory(pack_directory(edited.entries), mutable=True, write_key=KEY)
        model = expected
        assert {name: entry.child.target for name, entry in entries.items() if entry.child} == model


def _model(before: dict[str, Target], batch: list[Edit]) -> dict[str, Target] | None:
    """The targets by name after the batch; None if it is refused."""
    after = dict(before)
    for change in batch:
        name = "é" if change.name == "e\u0301" else change.name
        match change:
            case SetChild(target=target, overwrite=overwrite):
                if name in after and not overwrite:
                    return None
                after[name] = target
            case RemoveChild(must_exist=must_exist):
                if name not in after and must_exist:
                    return None
                after.pop(name, None)
            case SetMetadata():
                if name not in after:
                    return None
    return after
