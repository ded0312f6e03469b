"""Directories stand for their files exactly where juicefs would warm those files and no others."""

import os
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cacheserver.files.threads import Stop
from cacheserver.warmup import whole_directories
from cacheserver.warmup.file_lists import ListEntry, can_be_listed, regular_files

NAMES = st.sampled_from(["a", "b", "c", ".dot", " edge", "two\nlines"])
PATHS = st.lists(st.lists(NAMES, min_size=1, max_size=4).map("/".join), max_size=12, unique=True)


def make(top: Path, *paths: str) -> Path:
    """Create files. Paths below an existing file are skipped."""
    for path in paths:
        place = top / path
        if not any(parent.is_file() for parent in place.parents if parent.is_relative_to(top)) and not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(path)
    return top


def entries(top: Path) -> list[ListEntry]:
    return [*whole_directories.whole_directories(top, top, Stop())]


def lines(top: Path) -> dict[str, int]:
    return {str(Path(os.fsdecode(path)).relative_to(top)): files for path, files in entries(top)}


def below(listed: ListEntry) -> list[bytes]:
    path = Path(os.fsdecode(listed.path))
    found = [path] if path.is_file() else [found for found in path.rglob("*") if found.is_file()]
    return [os.fsencode(found) for found in found if not found.is_symlink()]


TREES: dict[str, tuple[list[str], dict[str, int]]] = {
    "nothing": ([], {".": 0}),
    "all of it": (["a/1", "a/b/2", "3"], {".": 3}),
    "a hidden file": (["a/1", "a/2", "b/.x", "b/1", "b/c/2", "3"], {"a": 2, "b/1": 1, "b/c": 1, "3": 1}),
    "a hidden directory": (["a/1", ".warmup/run"], {"a": 1}),
    "a name that cannot be listed": (["a/1", "b/ edge"], {"a": 1, "b/ edge": 1}),
    "a directory's name that cannot be listed": (["a/1", "b /1"], {"a": 1, "b /1": 1}),
}


@pytest.mark.parametrize(("paths", "wanted"), TREES.values(), ids=TREES)
def test_the_entries_for_a_tree(tmp_path: Path, paths: list[str], wanted: dict[str, int]) -> None:
    assert lines(make(tmp_path, *paths)) == wanted


def test_links_and_empty_directories_keep_no_directory_from_being_whole(tmp_path: Path) -> None:
    make(tmp_path, "a/1", ".x")
    (tmp_path / "a" / "link").symlink_to("/etc")
    (tmp_path / "a" / "empty").mkdir()
    os.mkfifo(tmp_path / "a" / "pipe")
    (tmp_path / "none").mkdir()
    assert lines(tmp_path) == {"a": 1}


def test_a_file_is_listed_as_itself_and_hidden_entries_are_not(tmp_path: Path) -> None:
    make(tmp_path, "a/1", ".b/2")
    assert [*whole_directories.whole_directories(tmp_path / "a/1", tmp_path, Stop())] == [
        ListEntry(os.fsencode(tmp_path / "a/1"), 1)
    ]
    assert [*whole_directories.whole_directories(tmp_path / ".b", tmp_path, Stop())] == []


def test_too_many_pending_directories_are_listed_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole_directories, "_MAX_PENDING", 2)
    make(tmp_path, *(f"a/d{number}/1" for number in range(7)), "a/2", "b/1")
    assert lines(tmp_path) == {**{f"a/d{number}": 1 for number in range(7)}, "a/2": 1, "b": 1}


def test_directories_of_too_many_files_are_listed_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole_directories, "_MAX_FILES", 4)
    make(tmp_path, *(f"a/d{number}/{file}" for number in range(4) for file in range(2)), "a/2", "b/1")
    assert lines(tmp_path) == {**{f"a/d{number}": 2 for number in range(4)}, "a/2": 1, "b": 1}


@given(PATHS)
def test_each_file_is_listed_exactly_once(paths: list[str]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        top = make(Path(directory), *paths)
        found = entries(top)
        assert Counter(path for listed in found for path in below(listed)) == Counter(
            path for path, _ in regular_files(top, top, Stop())
        )
        assert all(listed.files == len(below(listed)) for listed in found)
        assert all(can_be_listed(path) or Path(os.fsdecode(path)).is_file() for path, _ in found)
