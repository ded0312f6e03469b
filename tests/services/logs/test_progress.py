"""Logs that are opened again, and then stored."""

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.services.logs import lines as log_lines
from app.services.logs import progress as log_progress
from app.services.logs.lines import LineSplitter, TimedLine
from app.services.logs.progress import LogProgress

FIRST = b"2026-01-02T03:04:05.1Z one"
SECOND = b"2026-01-02T03:04:05.100000001Z two"
THIRD = b"2026-01-02T03:04:05.100000001Z three"
FOURTH = b"2026-01-02T03:04:06Z four"
EPOCH = datetime(2026, 1, 2, tzinfo=UTC)


def texts(lines: list[TimedLine]) -> list[bytes]:
    return [line.text for line in lines]


def read(progress: LogProgress, *lines: bytes, rest: bytes = b"") -> list[bytes]:
    """Open a log with these lines and the beginning of another one. Return the texts of the new ones."""
    splitter = LineSplitter()
    progress.begin()
    pieces = splitter.feed(b"".join(line + b"\n" for line in lines) + rest)
    return texts(progress.new_lines([*pieces, *splitter.end()]))


def test_a_log_that_is_opened_again_repeats_no_line() -> None:
    progress = LogProgress(from_start=True)
    assert progress.since is None
    assert read(progress, FIRST, SECOND) == [b"one", b"two"]
    assert progress.since == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    # `three` has the time of `two`, and was not read.
    assert read(progress, FIRST, SECOND, THIRD) == [b"three"]
    assert read(progress, SECOND, THIRD, FOURTH, b"no time") == [b"four", b"no time"]
    assert read(progress, FOURTH) == []


def test_lines_that_are_not_in_the_order_of_their_times_come_once() -> None:
    progress = LogProgress(from_start=True)
    assert read(progress, FIRST, FOURTH, THIRD) == [b"one", b"four", b"three"]
    assert read(progress, FIRST, FOURTH, THIRD, SECOND) == [b"two"]


def test_a_line_that_was_read_in_part_is_continued() -> None:
    progress = LogProgress(from_start=True)
    assert read(progress, FIRST, rest=SECOND[:-1]) == [b"one", b"tw"]
    assert read(progress, FIRST, SECOND, FOURTH) == [b"o", b"four"]
    assert texts(progress.new_stored_lines(b"one\ntwo\nfour\nfive\n", is_whole=True)) == [b"five"]


@pytest.mark.parametrize("cut", [1, 10, len("2026-01-02T03:04:05.1"), len("2026-01-02T03:04:05.1Z ")])
def test_a_log_that_ends_within_the_time_of_a_line_has_no_such_line_yet(cut: int) -> None:
    progress = LogProgress(from_start=True)
    assert read(progress, rest=FIRST[:cut]) == []
    assert read(progress, FIRST) == [b"one"]


def test_the_parts_of_a_long_line_have_its_time_and_come_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_lines, "MAX_LINE", 40)
    splitter, progress = LineSplitter(), LogProgress(from_start=True)
    line = FIRST.ljust(40) + b"/" * 41
    progress.begin()
    found = progress.new_lines(splitter.feed(line + b"\n"))
    assert found == [TimedLine("2026-01-02T03:04:05.1Z", text) for text in (b"one".ljust(17), b"/" * 40, b"/")]
    assert read(progress, line, SECOND) == [b"two"]


def test_a_message_of_the_kubelet_does_not_hide_where_the_stored_log_continues() -> None:
    progress = LogProgress(from_start=False)
    assert read(progress, FIRST, b"unable to retrieve container logs") == [b"one", b"unable to retrieve container logs"]
    assert texts(progress.new_stored_lines(b"one\ntwo\n", is_whole=True)) == [b"two"]


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        (b"zero\none\ntwo\nlast words", [b"last words"]),
        (b"two\nbetween\ntwo\n", [b"between", b"two"]),
        (b"later\nlast words\n", [b"later", b"last words"]),
        (b"", []),
    ],
)
def test_a_stored_log_continues_a_live_one(stored: bytes, expected: list[bytes]) -> None:
    progress = LogProgress(from_start=False)
    assert read(progress, FIRST, SECOND) == [b"one", b"two"]
    assert texts(progress.new_stored_lines(stored, is_whole=False)) == expected


def test_a_stored_log_that_was_never_live_is_whole() -> None:
    progress = LogProgress(from_start=True)
    assert texts(progress.new_stored_lines(b"one\n\n", is_whole=True)) == [b"one", b""]


class Written(NamedTuple):
    """A line that a container has written."""

    at: datetime
    text: bytes

    @property
    def live(self) -> bytes:
        return f"{self.at:%Y-%m-%dT%H:%M:%S.%f}Z ".encode() + self.text + b"\n"


@st.composite
def written(draw: st.DrawFn, *, is_distinct: bool) -> list[Written]:
    """Draw the lines of a log. Their times increase, apart from small differences."""
    steps = draw(st.lists(st.sampled_from([0, 0, 1, 300_000, 1_000_000]), max_size=24))
    found: list[Written] = []
    at = EPOCH
    for number, step in enumerate(steps):
        at += timedelta(microseconds=step)
        shown = at + timedelta(microseconds=draw(st.sampled_from([0, 0, 1])))
        name = chr(ord("A") + number) if is_distinct else draw(st.sampled_from("ab"))
        found.append(Written(shown, (name + draw(st.sampled_from(["", "", "bcdefg"]))).encode()))
    return found


def interrupted(data: st.DataObject, log: list[Written], progress: LogProgress) -> bytes:
    """Read a log that grows, and is opened several times and cut off anywhere. Return the texts that were passed on."""
    found = b""
    for count in sorted(data.draw(st.lists(st.integers(0, len(log)), min_size=1, max_size=4))):
        since = progress.since or EPOCH
        content = b"".join(line.live for line in log[:count] if line.at >= since)
        content = content[: data.draw(st.integers(0, len(content)))]
        splitter = LineSplitter()
        progress.begin()
        at = data.draw(st.integers(0, len(content)))
        pieces = [*splitter.feed(content[:at]), *splitter.feed(content[at:]), *splitter.end()]
        found += b"".join(line.text for line in progress.new_lines(pieces))
    return found


def plain(log: list[Written]) -> bytes:
    return b"".join(line.text + b"\n" for line in log)


@given(st.data())
def test_interrupted_reading_and_the_whole_stored_log_are_together_the_log(data: st.DataObject) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_lines, "MAX_LINE", 30)
        log = data.draw(written(is_distinct=False))
        progress = LogProgress(from_start=True)
        found = interrupted(data, log, progress)
        assert plain(log).replace(b"\n", b"").startswith(found)
        found += b"".join(texts(progress.new_stored_lines(plain(log), is_whole=True)))
        assert found == plain(log).replace(b"\n", b"")


@given(st.data())
def test_the_end_of_a_log_that_is_stored_from_anywhere_continues_distinct_lines(data: st.DataObject) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_lines, "MAX_LINE", 30)
        patch.setattr(log_progress, "_REMEMBERED", 16)
        log = data.draw(written(is_distinct=True))
        progress = LogProgress(from_start=True)
        found = interrupted(data, log, progress)
        stored_from = data.draw(st.integers(0, min(progress.read, len(plain(log)))))
        rest = texts(progress.new_stored_lines(plain(log)[stored_from:], is_whole=stored_from == 0))
        assert found + b"".join(rest) == plain(log).replace(b"\n", b"")
