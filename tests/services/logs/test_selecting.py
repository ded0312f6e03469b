"""Which parts of a log a request selects: nothing twice, nothing lost, whatever the chunks are."""

import re
from array import array
from collections.abc import Iterator, Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.services.logs import selecting
from app.services.logs.search import LinePattern
from app.services.logs.selecting import ChunkLines, LineSelection, LogLines

WORDS = st.sampled_from([b"", b"a", b"error 7", b"\r", b"\xff\x00", b"loss=0.5 " * 3, b"x" * 40])
LINES = st.lists(WORDS, min_size=1, max_size=30)


@pytest.fixture(autouse=True, scope="module")
def _short_slices() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selecting, "SLICE", 16)
        yield


def log_of(lines: Sequence[bytes], cuts: Sequence[int], *, is_ended: bool) -> tuple[bytes, list[LogLines]]:
    """Return a text and its chunks, which end at the cuts. The time of each line is its number from 1."""
    text = b"\n".join(lines) + (b"\n" if is_ended else b"")
    ends = [match.end() for match in re.finditer(rb"\n", text)]
    ends += [len(text)] if len(text) > (ends[-1] if ends else 0) else []
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    chunks = []
    for begin, end in pairwise(places):
        numbers = [
            number for number, stop in enumerate(ends) if stop > begin and (ends[number - 1] if number else 0) < end
        ]
        stops = [min(ends[number], end) for number in numbers]
        continues = begin not in {0, *ends}
        chunks.append(
            LogLines(
                start=begin,
                first_line=numbers[0] + continues,
                text=text[begin:end],
                lengths=[stop - start for start, stop in pairwise([begin, *stops])],
                times=[number + 1 for number in numbers],
                continues=continues,
            )
        )
    return text, chunks


LOGS = st.builds(log_of, LINES, st.lists(st.integers(0, 400), max_size=4), is_ended=st.booleans())


def selected(chunks: Sequence[LogLines], selection: LineSelection) -> list[LogLines]:
    return [part for chunk in chunks for part in ChunkLines(chunk).select(selection)]


def text_of(parts: Sequence[LogLines]) -> bytes:
    return b"".join(part.text for part in parts)


@given(LOGS, st.integers(0, 400), st.integers(0, 400))
def test_exact_bytes_are_those_of_the_log(log: tuple[bytes, list[LogLines]], begin: int, length: int) -> None:
    text, chunks = log
    parts = selected(chunks, LineSelection(begin=begin, end=begin + length, is_exact=True))
    assert text_of(parts) == text[begin : begin + length]
    assert all(text[part.start :].startswith(part.text) for part in parts)


@given(LOGS, st.lists(st.integers(0, 400), max_size=3))
def test_ranges_that_follow_each_other_divide_the_lines(log: tuple[bytes, list[LogLines]], places: list[int]) -> None:
    text, chunks = log
    bounds = [0, *sorted(places), None]
    found = [selected(chunks, LineSelection(begin=begin or 0, end=end)) for begin, end in pairwise(bounds)]
    assert text_of([part for parts in found for part in parts]) == text
    for parts, begin in zip(found, bounds[:-1], strict=True):
        assert all(part.start >= (begin or 0) for part in parts)


@given(LOGS)
def test_a_part_has_the_places_the_numbers_and_the_times_of_its_lines(log: tuple[bytes, list[LogLines]]) -> None:
    text, chunks = log
    parts = selected(chunks, LineSelection())
    assert text_of(parts) == text
    for part in parts:
        assert sum(part.lengths) == len(part.text)
        assert len(part.text) <= selecting.SLICE
        assert part.first_line - part.continues == text.count(b"\n", 0, part.start)
        assert list(part.times) == [part.first_line - part.continues + index + 1 for index in range(len(part.lengths))]
        assert part.continues == (part.start > 0 and text[part.start - 1 : part.start] != b"\n")


@given(LOGS, st.integers(0, 40), st.integers(0, 40), st.integers(0, 40))
def test_times_and_numbers_select_whole_lines(
    log: tuple[bytes, list[LogLines]], since: int, until: int, first: int
) -> None:
    text, chunks = log
    lines = text.splitlines(keepends=True) if b"\r" not in text else [*re.findall(rb"[^\n]*\n|[^\n]+$", text)]
    expected = b"".join(line for number, line in enumerate(lines) if since <= number + 1 < until and number >= first)
    assert text_of(selected(chunks, LineSelection(since=since, until=until, first_line=first))) == expected


@given(LINES, st.sampled_from(["error", "^a$", "^$", "[0-9]$", "x{3}", "(?i)LOSS", "nothing", "", "a|7"]))
def test_a_pattern_selects_the_lines_that_python_would(lines: list[bytes], pattern: str) -> None:
    whole = LogLines(
        start=5,
        first_line=3,
        text=b"".join(line + b"\n" for line in lines),
        lengths=[len(line) + 1 for line in lines],
        times=[0] * len(lines),
    )
    expected = [line for line in lines if re.search(pattern.encode(), line)]
    assert text_of(ChunkLines(whole).find_matches(LinePattern(pattern))) == b"".join(line + b"\n" for line in expected)


def test_lines_without_a_time_are_always_selected() -> None:
    untimed = LogLines(start=0, first_line=0, text=b"a\nb\n", lengths=[2, 2], times=[0, 5])
    assert text_of(selected([untimed], LineSelection(since=6))) == b"a\n"


def test_short_lines_take_more_memory_than_their_text() -> None:
    numbers = array("q", range(1000))
    chunk = ChunkLines(
        LogLines(start=0, first_line=0, text=b"\n" * 1000, lengths=array("I", [1] * 1000), times=numbers)
    )
    assert chunk.size > len(numbers) * (1 + 4 + 8)
