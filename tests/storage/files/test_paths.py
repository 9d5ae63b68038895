"""Names in the storage directory."""

from __future__ import annotations

import pytest

from grid.ports import StorageIndex
from grid.storage.files import paths


def test_paths_when_made_of_an_index_are_those_of_1_20() -> None:
    name = paths.index_name(StorageIndex(bytes(range(16))))
    assert name == "aaaqeayeaudaocajbifqydiob4"
    assert paths.share_path(name, 7) == "shares/aa/aaaqeayeaudaocajbifqydiob4/7"
    assert paths.incoming_path(name, 7) == "shares/incoming/aa/aaaqeayeaudaocajbifqydiob4/7"
    assert paths.parse_index_name(name) == bytes(range(16))


@pytest.mark.parametrize("name", ["", "incoming", "aaaqeayeaudaocajbifqydiob", "AAAQEAYEAUDAOCAJBIFQYDIOB4", "é" * 26])
def test_index_name_when_invalid_is_passed_over(name: str) -> None:
    assert paths.parse_index_name(name) is None


@pytest.mark.parametrize("name", ["", "00", "01", "256", "1000", "-1", "+1", " 1", "1 ", "1.draft", "x", "١", "1_0"])
def test_share_name_when_it_is_no_plain_number_below_256_is_passed_over(name: str) -> None:
    assert paths.parse_share_name(name) is None


def test_share_name_when_plain_is_a_number() -> None:
    assert [paths.parse_share_name(str(number)) for number in range(256)] == list(range(256))


def test_files_of_our_own_when_beside_shares_are_not_shares() -> None:
    for path in (paths.draft_path("aa", 3), paths.undo_path("aa")):
        assert paths.parse_share_name(path.rpartition("/")[2]) is None
        assert path.startswith(paths.INCOMING)


def test_prefixes_when_listed_are_all_1024_sorted() -> None:
    assert len(paths.PREFIXES) == len(set(paths.PREFIXES)) == 1024
    assert list(paths.PREFIXES) == sorted(paths.PREFIXES)
    assert paths.PREFIXES[0] == "22"
    assert paths.PREFIXES[-1] == "zz"
