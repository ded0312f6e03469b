"""Lines of logs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.services.logs import lines as log_lines
from app.services.logs.lines import MAX_LINE, LineSplitter, Piece, TimedLine, split_time


@pytest.mark.parametrize(
    ("received", "lines", "rest"),
    [
        ([b"a\nb\n"], [Piece(b"a"), Piece(b"b")], []),
        ([b"a", b"b\nc", b""], [Piece(b"ab")], [Piece(b"c", is_end=False)]),
        ([b"\n\n"], [Piece(b""), Piece(b"")], []),
        ([b"a\r\n"], [Piece(b"a\r")], []),
        ([b"x" * MAX_LINE], [], [Piece(b"x" * MAX_LINE, is_end=False)]),
        ([b"x" * MAX_LINE, b"\n"], [Piece(b"x" * MAX_LINE)], []),
        (
            [b"x" * (MAX_LINE + 3)],
            [Piece(b"x" * MAX_LINE, is_end=False)],
            [Piece(b"xxx", is_start=False, is_end=False)],
        ),
        (
            [b"x" * MAX_LINE] * 2 + [b"xxx\ny\n"],
            [
                Piece(b"x" * MAX_LINE, is_end=False),
                Piece(b"x" * MAX_LINE, is_start=False, is_end=False),
                Piece(b"xxx", is_start=False),
                Piece(b"y"),
            ],
            [],
        ),
    ],
)
def test_a_log_is_split_into_lines_and_parts_of_long_ones(
    received: list[bytes], lines: list[Piece], rest: list[Piece]
) -> None:
    splitter = LineSplitter()
    assert [line for each in received for line in splitter.feed(each)] == lines
    assert splitter.end() == rest
    assert splitter.end() == []


@given(st.lists(st.text("ab\n", max_size=12)))
def test_the_lines_do_not_depend_on_the_pieces_in_which_the_log_comes(received: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_lines, "MAX_LINE", 3)
        in_pieces, at_once = LineSplitter(), LineSplitter()
        found = [line for each in received for line in in_pieces.feed(each.encode())]
        assert found == at_once.feed("".join(received).encode())
        assert in_pieces.end() == at_once.end()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"2026-01-02T03:04:05.1Z one", TimedLine("2026-01-02T03:04:05.1Z", b"one")),
        (b"2026-01-02T03:04:06Z four", TimedLine("2026-01-02T03:04:06Z", b"four")),
        (b"2026-01-02T03:04:05Z ", TimedLine("2026-01-02T03:04:05Z", b"")),
        (b"no time", TimedLine("", b"no time")),
        (b"", TimedLine("", b"")),
    ],
)
def test_a_line_has_the_time_of_the_cluster(line: bytes, expected: TimedLine) -> None:
    assert split_time(line) == expected
