"""Text of logs: prefixes, colours, and where a log continues after a lost connection."""

import pytest

from jobgate.cli.logs.lines import Line, LogPosition, Source, colour, is_cut_off, parse, prefix


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("2026-01-31T12:00:00.5Z step 1", Line("2026-01-31T12:00:00.500000000Z", "step 1")),
        ("2026-01-31T12:00:00.123456789Z ", Line("2026-01-31T12:00:00.123456789Z", "")),
        ("2026-01-31T12:00:00Z a  b", Line("2026-01-31T12:00:00.000000000Z", "a  b")),
        ("step 1", Line("", "step 1")),
        ("2026-01-31 12:00:00 of the program", Line("", "2026-01-31 12:00:00 of the program")),
    ],
)
def test_the_time_of_a_line_is_split_off(line: str, expected: Line) -> None:
    assert parse(line) == expected


@pytest.mark.parametrize(
    ("attempt", "message", "expected"),
    [
        (1, "worker[3]: it has not started", "worker[3]: it has not started"),
        (2, "worker[3]: it has not started", "worker[3] #2: it has not started"),
        (1, "no log of it is kept", "worker[3]: no log of it is kept"),
    ],
)
def test_a_message_names_its_replica_once(attempt: int, message: str, expected: str) -> None:
    assert Source(task="worker", rank=3, attempt=attempt).about(message) == expected


def test_times_of_different_precision_are_in_order() -> None:
    lines = [
        "2026-01-31T12:00:00Z a",
        "2026-01-31T12:00:00.05Z b",
        "2026-01-31T12:00:00.1Z c",
        "2026-01-31T12:00:01Z d",
    ]
    times = [parse(line).time for line in lines]
    assert times == sorted(times)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (Line("", "[jobgate] the log is cut off here: the process stops"), True),
        (Line("", ""), True),
        (Line("2026-01-31T12:00:00.000000000Z", ""), False),
        (Line("2026-01-31T12:00:00.000000000Z", "[jobgate] the log is cut off here: says the program"), False),
        (Line("", "step 1"), False),
    ],
)
def test_lines_of_the_gateway_are_recognized(line: Line, expected: bool) -> None:  # noqa: FBT001
    assert is_cut_off(line) is expected


def line(second: int, text: str) -> Line:
    return Line(f"2026-01-31T12:00:{second:02}.000000000Z", text)


def printed(position: LogPosition, *lines: Line) -> list[str]:
    """Open a log with these lines, and return the texts of those that are printed."""
    position.opened()
    return [one.text for one in lines if position.passes(one)]


def test_a_log_that_is_opened_again_repeats_no_line() -> None:
    position = LogPosition(from_start=True)
    of_cluster = Line("", "the cluster says this without a time")
    assert printed(position, line(0, "one"), line(1, "two")) == ["one", "two"]
    assert printed(position, line(0, "one"), line(1, "two"), line(1, "three"), of_cluster) == ["three", of_cluster.text]
    assert printed(position, line(1, "two"), line(1, "three"), of_cluster, line(2, "four")) == ["four"]


@pytest.mark.parametrize(
    ("lines", "stored", "from_start", "is_whole", "expected"),
    [
        pytest.param("a b", "a b c", True, True, "c", id="whole log"),
        pytest.param("a a", "a a a", True, True, "a", id="whole log of equal lines"),
        pytest.param("a b", "b c", True, False, "c", id="end of the log"),
        pytest.param("a", "b a", True, False, "b a", id="only new lines, which repeat what was printed"),
        pytest.param("a b", "b a b", True, False, "a b", id="the last line comes again"),
        pytest.param("b", "a b c b", False, True, "c b", id="printed from within the stored log"),
        pytest.param("a bcd e", "cd e f", False, False, "f", id="stored from within a line"),
        pytest.param("b", "x y", False, False, "x y", id="a gap"),
        pytest.param("", "a b", True, True, "a b", id="nothing printed"),
        pytest.param("", "a b", False, False, "a b", id="nothing printed of the end"),
        pytest.param("b", "", False, True, "", id="nothing stored"),
    ],
)
def test_a_stored_log_continues_a_live_one(
    lines: str, stored: str, expected: str, *, from_start: bool, is_whole: bool
) -> None:
    position = LogPosition(from_start=from_start)
    printed(position, *(line(second, text) for second, text in enumerate(lines.split())))
    assert list(position.unseen(stored.split(), is_whole=is_whole)) == expected.split()


def test_prefixes_are_aligned_and_name_the_attempt_of_a_restart() -> None:
    sources = [Source(task="ps", rank=0, attempt=1), Source(task="worker", rank=10, attempt=2)]
    assert [prefix(source, 13) for source in sources] == ["ps[0]         | ", "worker[10] #2 | "]


def test_neighbours_have_different_colours_and_a_replica_keeps_its_own() -> None:
    tasks = ["ps", "worker"]
    seen = [colour(Source(task=task, rank=rank, attempt=1), tasks) for task in tasks for rank in (0, 1, 2)]
    assert len(set(seen)) == len(seen)
    again = Source(task="worker", rank=2, attempt=3)
    assert colour(again, tasks) == seen[-1]
