"""Lines of logs, and logs that are opened again."""

from datetime import UTC, datetime

import pytest

from app.services.log_lines import MAX_LINE, LineSplitter, LogProgress, TimedLine, timed

FIRST = b"2026-01-02T03:04:05.1Z one"
SECOND = b"2026-01-02T03:04:05.100000001Z two"
THIRD = b"2026-01-02T03:04:05.100000001Z three"
FOURTH = b"2026-01-02T03:04:06Z four"


@pytest.mark.parametrize(
    ("pieces", "lines", "rest"),
    [
        ([b"a\nb\n"], [b"a", b"b"], []),
        ([b"a", b"b\nc", b""], [b"ab"], [b"c"]),
        ([b"\n\n"], [b"", b""], []),
        ([b"a\r\n"], [b"a\r"], []),
        ([b"x" * (MAX_LINE + 3)], [b"x" * MAX_LINE], [b"xxx"]),
        ([b"x" * MAX_LINE] * 3, [b"x" * MAX_LINE] * 2, [b"x" * MAX_LINE]),
    ],
)
def test_pieces_become_lines(pieces: list[bytes], lines: list[bytes], rest: list[bytes]) -> None:
    splitter = LineSplitter()
    assert [line for piece in pieces for line in splitter.feed(piece)] == lines
    assert splitter.end() == rest
    assert splitter.end() == []


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (FIRST, TimedLine("2026-01-02T03:04:05.1Z", b"one")),
        (FOURTH, TimedLine("2026-01-02T03:04:06Z", b"four")),
        (b"2026-01-02T03:04:05Z ", TimedLine("2026-01-02T03:04:05Z", b"")),
        (b"no time", TimedLine("", b"no time")),
        (b"", TimedLine("", b"")),
    ],
)
def test_a_line_has_the_time_of_the_cluster(line: bytes, expected: TimedLine) -> None:
    assert timed(line) == expected


def texts(lines: list[TimedLine]) -> list[bytes]:
    return [line.text for line in lines]


def test_a_log_that_is_opened_again_repeats_no_line() -> None:
    progress = LogProgress()
    assert progress.since is None
    progress.opened()
    assert texts(progress.new_lines([FIRST, SECOND])) == [b"one", b"two"]
    assert progress.since == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    progress.opened()
    # `three` has the time of `two`, and was not read.
    assert texts(progress.new_lines([FIRST, SECOND, THIRD])) == [b"three"]
    progress.opened()
    assert texts(progress.new_lines([SECOND, THIRD, FOURTH, b"no time"])) == [b"four", b"no time"]
    progress.opened()
    assert texts(progress.new_lines([FOURTH])) == []


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        ([b"zero", b"one", b"two", b"last words"], [b"last words"]),
        ([b"two", b"between", b"two"], []),
        ([b"later", b"last words"], [b"later", b"last words"]),
        ([], []),
    ],
)
def test_a_stored_log_continues_a_live_one(stored: list[bytes], expected: list[bytes]) -> None:
    progress = LogProgress()
    progress.opened()
    progress.new_lines([FIRST, SECOND])
    assert texts(progress.new_stored_lines(stored)) == expected


def test_a_stored_log_that_was_never_live_is_whole() -> None:
    assert texts(LogProgress().new_stored_lines([b"one", b""])) == [b"one", b""]
