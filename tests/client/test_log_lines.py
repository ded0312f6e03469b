"""Text of logs: prefixes, colours, and where a log continues after a lost connection."""

import pytest

from jobgate.cli.log_lines import Line, Source, colour, is_cut_off, parsed, prefix, unseen


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
    assert parsed(line) == expected


def test_times_of_different_precision_are_in_order() -> None:
    lines = [
        "2026-01-31T12:00:00Z a",
        "2026-01-31T12:00:00.05Z b",
        "2026-01-31T12:00:00.1Z c",
        "2026-01-31T12:00:01Z d",
    ]
    times = [parsed(line).time for line in lines]
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


@pytest.mark.parametrize(
    ("stored", "last", "expected"),
    [
        (["a", "b", "c"], "b", ["c"]),
        (["a", "b", "a", "c"], "a", ["c"]),
        (["a", "b"], "b", []),
        (["a", "b"], "", ["a", "b"]),
        (["x", "y"], "b", ["x", "y"]),
        ([], "b", []),
    ],
)
def test_a_stored_log_continues_a_live_one(stored: list[str], last: str, expected: list[str]) -> None:
    assert unseen(stored, last) == expected


def test_prefixes_are_aligned_and_name_the_attempt_of_a_restart() -> None:
    sources = [Source(task="ps", rank=0, attempt=1), Source(task="worker", rank=10, attempt=2)]
    assert [prefix(source, 13) for source in sources] == ["ps[0]         | ", "worker[10] #2 | "]


def test_neighbours_have_different_colours_and_a_replica_keeps_its_own() -> None:
    tasks = ["ps", "worker"]
    seen = [colour(Source(task=task, rank=rank, attempt=1), tasks) for task in tasks for rank in (0, 1, 2)]
    assert len(set(seen)) == len(seen)
    again = Source(task="worker", rank=2, attempt=3)
    assert colour(again, tasks) == seen[-1]
