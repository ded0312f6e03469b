"""The last lines of a log, and messages of one line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.status.log_lines import MAX_LINES, last_line, last_lines, one_line

TRACEBACK = b'Traceback (most recent call last):\n  File "train.py", line 3\nValueError: bad rate\n'


@pytest.mark.parametrize(
    ("log", "lines"),
    [
        (b"", ()),
        (b"\n \n\t\n", ()),
        (TRACEBACK, ("Traceback (most recent call last):", '  File "train.py", line 3', "ValueError: bad rate")),
        (b"without a line break", ("without a line break",)),
        (b"\x1b[1;31mError:\x1b[0m no \x1b]8;;http://x\x07link\x1b]8;;\x07\n", ("Error: no link",)),
        (b" 10%|#  |\r 90%|## |\r\nkilled\r\n", (" 90%|## |", "killed")),
        (b"\ta\0b\xff", ("    a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}",)),
        (b"\n".join(b"%d" % line for line in range(99)), tuple(str(line) for line in range(89, 99))),
    ],
)
def test_the_last_lines_of_a_log(log: bytes, lines: tuple[str, ...]) -> None:
    assert last_lines(log) == lines


def test_fewer_lines_of_a_log() -> None:
    assert last_lines(TRACEBACK, 1) == ("ValueError: bad rate",)


@pytest.mark.parametrize(
    ("log", "end"),
    [
        (b"ValueError: " + b"x" * 500 + b" no such file", " no such file"),
        (b"x" * 500 + b"\xe2\x82\xac", "x\N{EURO SIGN}"),
        # The line is longer than the part of the log that is read.
        (b"ValueError: " + b"x" * 100_000 + b" no such file", " no such file"),
    ],
)
def test_a_long_line_keeps_its_end(log: bytes, end: str) -> None:
    (line,) = last_lines(log)
    assert (len(line), line.count("…")) == (200, 1)
    assert line.endswith(end)
    assert line.startswith(("ValueError: ", "x")) == (len(log) < 10_000)


def test_the_end_of_a_line_that_began_before_the_part_that_is_read() -> None:
    log = b"x" * 20_000 + b"\n" + b"y\n" * 8180 + b"last"
    assert last_lines(log[:20_000] + b" end\n" + b"y\n" * 2 + b"last")[0].endswith("x end")
    assert last_lines(log)[-2:] == ("y", "last")


@pytest.mark.parametrize("character", ["\N{EURO SIGN}", "\N{GRINNING FACE}"])
def test_a_character_that_is_cut_is_left_out(character: str) -> None:
    line = (character * 60 + "\n").encode()
    shown = [last_lines(line * 200 + b"x" * end, 999)[0] for end in range(len(line))]
    assert not [one for one in shown if "\N{REPLACEMENT CHARACTER}" in one]


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ("", ""),
        (" \n", ""),
        ("loading\nno such rate\n", "no such rate"),
        ("\x1b[31m10%\r20%\rboom\x1b[0m\r\n", "boom"),
        ("ValueError: " + "x" * 1800 + " no such file", "ValueError: " + "x" * 88 + "…" + "x" * 286 + " no such file"),
    ],
)
def test_the_last_line_of_a_termination_message(message: str, line: str) -> None:
    assert last_line(message) == line


@given(st.binary(max_size=300) | st.text(max_size=300).map(str.encode))
def test_lines_are_printable_few_and_short(log: bytes) -> None:
    lines = last_lines(log)
    assert len(lines) <= MAX_LINES
    assert all(line.strip() and line.isprintable() and len(line) <= 200 for line in lines)


@given(st.text(max_size=300))
def test_a_message_is_one_printable_line(text: str) -> None:
    line = one_line(text, 100)
    assert line.isprintable()
    assert len(line) <= 100


def test_a_message_keeps_its_words() -> None:
    assert one_line("0/3 nodes are available:\n  3 Insufficient\tnvidia.com/gpu. ") == (
        "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
    )
