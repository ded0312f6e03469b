"""Where a stored log continues what was read of it while it was live."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.services.logs.overlap import length_of_overlap

logs = st.lists(st.sampled_from([b"a", b"b", b"\n"]), max_size=24).map(b"".join)


@pytest.mark.parametrize(
    ("read", "stored", "from_start", "is_whole", "expected"),
    [
        pytest.param(b"a\nb\n", b"a\nb\nc\n", True, True, 4, id="whole log"),
        pytest.param(b"a\na\n", b"a\na\na\na\n", True, True, 4, id="whole log of equal lines"),
        pytest.param(b"a\nb\n", b"a\nb", True, True, 3, id="whole log without its last line break"),
        pytest.param(b"a\nb\n", b"b\nc\n", True, False, 2, id="end of the log"),
        pytest.param(b"a\nb\n", b"b\na\nb\nc\n", True, False, 2, id="what was read comes again"),
        pytest.param(b"a\n", b"b\na\n", True, False, 0, id="only new text, which repeats what was read"),
        pytest.param(b"a\nb\n", b"b\nc\n", True, True, 2, id="the log was rotated"),
        pytest.param(b"b\n", b"a\nb\nc\n", False, True, 4, id="read from within the stored log"),
        pytest.param(b"b\n", b"a\nb\nc\nb\n", False, True, 4, id="the last line that was read comes again"),
        pytest.param(b"a\nlong line\n", b"line\nb\n", False, False, 5, id="stored from within a line"),
        pytest.param(b"a\nb", b"a\nbc\n", False, False, 3, id="read to within a line"),
        pytest.param(b"a\nb\n", b"c\n", False, False, 0, id="a gap"),
        pytest.param(b"", b"a\n", True, True, 0, id="nothing read"),
        pytest.param(b"", b"a\n", False, False, 0, id="nothing read of the end"),
        pytest.param(b"a\n", b"", True, True, 0, id="nothing stored"),
    ],
)
def test_overlaps(read: bytes, stored: bytes, expected: int, *, from_start: bool, is_whole: bool) -> None:
    assert length_of_overlap(read, stored, from_start=from_start, is_whole=is_whole) == expected


@given(logs, logs)
def test_the_join_of_a_whole_stored_log_is_exact(read: bytes, more: bytes) -> None:
    assert length_of_overlap(read, read + more, from_start=True, is_whole=True) == len(read)


@given(logs, logs, st.data())
def test_the_join_is_exact_if_a_mark_in_the_common_text_comes_once(
    before: bytes, after: bytes, data: st.DataObject
) -> None:
    log = before + b"mark" + after
    mark, marked = len(before), len(before) + len(b"mark")
    begin, stored_from = data.draw(st.integers(0, mark)), data.draw(st.integers(0, mark))
    end = data.draw(st.integers(marked, len(log)))
    expected = end - stored_from
    found = length_of_overlap(log[begin:end], log[stored_from:], from_start=begin == 0, is_whole=stored_from == 0)
    assert found == expected


@given(logs, logs)
def test_the_overlap_is_the_longest_common_text(read: bytes, stored: bytes) -> None:
    found = length_of_overlap(b"x" + read, stored, from_start=True, is_whole=False)
    assert found == max(length for length in range(len(stored) + 1) if read.endswith(stored[:length]))
