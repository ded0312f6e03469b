"""The text of lists and statuses."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from jobgate.cli.rendering.descriptions import describe_text
from jobgate.cli.rendering.tables import (
    Columns,
    Order,
    actor_text,
    age,
    counts,
    failure_text,
    list_text,
    shorten,
    sort_events,
    sort_items,
    status_line,
    table,
    why,
)
from jobgate.client.types import Aggregate, Event, History, Job, JobStatus, Replica
from tests.client.scripted import EVENT, HISTORY, aggregate, job, replica, state

NOW = datetime(2026, 1, 31, 12, 5, tzinfo=UTC)
PENDING = [
    {"code": "Unschedulable", "message": "0/3 nodes", "since": None, "replicas": ["w-0"], "count": 1, "started": False}
]


def typed(kind: type[Any], value: Any) -> Any:
    return msgspec.convert(value, kind)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (125, "2m5s"),
        (3600, "60m"),
        (3 * 3600, "3h"),
        (3 * 3600 + 600, "3h10m"),
        (9 * 3600 + 600, "9h"),
        (48 * 3600, "2d"),
        (-5, "0s"),
    ],
)
def test_ages_are_those_of_kubectl(seconds: int, expected: str) -> None:
    assert age(NOW - timedelta(seconds=seconds), NOW) == expected


def test_columns_are_aligned_and_lines_end_without_blanks() -> None:
    assert table(["A", "LONG"], [["four", ""], ["x", "y"]]) == "A      LONG\nfour\nx      y"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("a\n  b", "a b"), ("x" * 81, "x" * 26 + "…" + "x" * 53), ("x" * 80, "x" * 80), ("", "")],
    ids=["lines", "long", "fits", "empty"],
)
def test_a_message_is_one_line_without_its_middle(text: str, expected: str) -> None:
    assert shorten(text, 80) == expected


NODES = "0/1 nodes are available: 1 Insufficient nvidia.com/gpu. preemption: 0/1 nodes are available."
CAUSES = [
    {
        "code": "Unschedulable",
        "message": NODES,
        "since": None,
        "replicas": ["w[0]", "w[1]"],
        "count": 2,
        "started": False,
    },
    {
        "code": "ImagePull",
        "message": "no such image",
        "since": None,
        "replicas": ["w[2]"],
        "count": 1,
        "started": False,
    },
]


def test_describe_and_wide_lists_show_every_cause_whole() -> None:
    """The answer is in the middle of a message of the scheduler."""
    waiting = typed(Job, job("Pending", pendingReasons=CAUSES))
    lines = describe_text(waiting, [], [], [], NOW).splitlines()
    begin = next(number for number, line in enumerate(lines) if line.startswith("Cause:"))
    assert lines[begin].split(maxsplit=1)[1] == f"Unschedulable: {NODES} (2 replicas)"
    assert lines[begin + 1].strip() == "ImagePull: no such image (1 replica)"
    (_, row) = list_text([waiting], NOW, Columns(wide=True)).splitlines()
    assert row.endswith(f"Unschedulable: {NODES} (2 replicas); ImagePull: no such image (1 replica)")


def test_an_imported_job_is_told_from_one_of_this_installation() -> None:
    imported = typed(Job, job("Failed") | {"importedAt": "2026-01-30T12:00:00Z"})
    assert "Failed (imported)" in list_text([imported], NOW, Columns())
    assert "imported" not in list_text([typed(Job, job("Failed"))], NOW, Columns())
    described = describe_text(imported, [], [], [], NOW)
    assert "2026-01-30" in described.partition("Imported:")[2].partition("\n")[0]
    assert "Imported:" not in describe_text(typed(Job, job("Failed")), [], [], [], NOW)


def test_the_messages_of_replicas_and_events_are_whole() -> None:
    failed = typed(Job, job("Failed", message=NODES))
    event = typed(Event, EVENT | {"message": NODES})
    row = typed(History, HISTORY | {"message": NODES})
    text = describe_text(failed, [typed(Replica, replica(0, "Failed", message=NODES))], [event], [row], NOW)
    assert text.count(NODES) == 4


@pytest.mark.parametrize("width", [None, 20, 40, 80, 200])
def test_a_table_on_a_terminal_fits_and_loses_nothing(width: int | None) -> None:
    text = table(["NAME", "WHY"], [["tour", NODES], ["short", "x" * 90]], width=width)
    (header, *lines) = text.splitlines()
    assert header == "NAME    WHY"
    cells = [(line[:8].strip(), line[8:]) for line in lines]
    begins = [place for place, (name, _) in enumerate(cells) if name]
    assert [cells[place][0] for place in begins] == ["tour", "short"]
    whole = [" ".join(cell for _, cell in cells[: begins[1]]), "".join(cell for _, cell in cells[begins[1] :])]
    assert whole == [NODES, "x" * 90]
    assert max(map(len, lines)) <= (width if width and width > 30 else 200)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (state("Pending", pendingReasons=PENDING), "tour  Pending  2 pending  Unschedulable: 0/3 nodes"),
        (
            state("Failed", message="worker[0]: exit 1", pendingReasons=PENDING),
            "tour  Failed  2 pending  worker[0]: exit 1",
        ),
        (state("Running"), "tour  Running  2 running"),
        (state("Paused", reason="Pausing"), "tour  Paused  2 pending  Pausing"),
    ],
)
def test_a_status_is_one_line_with_its_reason(status: dict[str, Any], expected: str) -> None:
    assert status_line(typed(JobStatus, status)) == expected


def test_the_reason_of_an_ended_job_is_not_a_pending_one() -> None:
    assert why(typed(JobStatus, state("Cancelled", message="enough", pendingReasons=PENDING))) == "enough"


def test_counts_without_replicas() -> None:
    assert counts(Aggregate(**aggregate())) == "no replicas"


def test_warnings_name_the_field_or_the_task() -> None:
    found = [
        {"source": "jobgate", "task": None, "pointer": "/spec/a", "message": "restarts nothing"},
        {"source": "cluster", "task": "worker", "pointer": "", "message": "fractional byte value"},
        {"source": "cluster", "task": None, "pointer": "", "message": "deprecated"},
    ]
    described = describe_text(typed(Job, job("Running", warnings=found)), [], [], [], NOW)
    warnings = described.partition("Warnings:\n")[2].splitlines()
    assert [line.strip() for line in warnings[:3]] == [
        "/spec/a: restarts nothing",
        "worker: fractional byte value",
        "cluster: deprecated",
    ]
    assert "Warnings" not in describe_text(typed(Job, job("Running")), [], [], [], NOW)


@pytest.mark.parametrize(
    ("phase", "buckets", "expected"),
    [
        ("Succeeded", {"succeeded": 3, "deleted": 2}, "3/3"),  # parameter servers, which end with the trainers
        ("Failed", {"succeeded": 3, "failed": 1, "deleted": 1}, "3/5"),
        ("Paused", {"succeeded": 1, "deleted": 2}, "1/3"),
    ],
)
def test_a_list_shows_how_many_replicas_a_job_needs(phase: str, buckets: dict[str, int], expected: str) -> None:
    shown = job(phase, aggregate=aggregate(**buckets))
    text = list_text([typed(Job, shown)], NOW, Columns())
    assert text.splitlines()[1].split()[3] == expected


@pytest.mark.parametrize(
    ("columns", "before", "after"),
    [
        (Columns(), [], []),
        (Columns(all_namespaces=True), ["NAMESPACE"], []),
        (Columns(labels=["team", "example.com/tier"]), [], ["TEAM", "TIER"]),
        (Columns(wide=True), [], ["CREATED", "BY", "UID", "MESSAGE"]),
    ],
)
def test_the_columns_of_a_list(columns: Columns, before: list[str], after: list[str]) -> None:
    running = job("Running", startedAt="2026-01-31T12:04:00Z") | {"labels": {"team": "vision"}}
    first, second = list_text([typed(Job, running)], NOW, columns).splitlines()
    assert first.split() == [*before, "NAME", "KIND", "PHASE", "REPLICAS", "DURATION", "AGE", *after]
    row = second.split()[len(before) :]
    assert row[:6] == ["tour", "GenericJob", "Running", "2/2", "60s", "5m"]
    if columns.labels:
        assert row[6:] == ["vision", "-"]


ORDERED = [
    typed(Job, job("Running", name="b", startedAt="2026-01-31T12:00:00Z") | {"createdBy": "z"}),
    typed(Job, job("Queued", name="c") | {"createdBy": "y"}),
    typed(
        Job,
        job("Failed", name="a", startedAt="2026-01-31T10:00:00Z", finishedAt="2026-01-31T11:00:00Z")
        | {"createdBy": "x"},
    ),
]


@pytest.mark.parametrize(
    ("order", "names"),
    [
        (Order.CREATED, "bca"),
        (Order.NAME, "abc"),
        (Order.PHASE, "acb"),
        (Order.DURATION, "abc"),
        (Order.OWNER, "acb"),
    ],
)
def test_a_list_is_sorted_by_a_column(order: Order, names: str) -> None:
    assert "".join(item.name for item in sort_items(order, ORDERED, NOW)) == names


def test_events_are_in_the_order_of_time() -> None:
    times = ["2026-01-31T12:00:05Z", None, "2026-01-31T12:00:01Z"]
    events = [typed(Event, EVENT | {"reason": str(place), "lastSeenAt": at}) for place, at in enumerate(times)]
    assert [event.reason for event in sort_events(events)] == ["2", "0", "1"]


FAILURE = {
    "replica": "worker[1]",
    "attempt": 2,
    "node": "n1",
    "exitCode": 3,
    "signal": None,
    "reason": "Error",
    "message": "no data",
    "lastLines": ["step 1", "no data"],
    "at": "2026-01-31T12:00:00Z",
}


@pytest.mark.parametrize(
    ("failure", "expected"),
    [
        (None, ""),
        (
            FAILURE,
            "First failure: worker[1] in attempt 2 on n1: exit code 3, Error\n  no data\n  | step 1\n  | no data",
        ),
        (
            FAILURE | {"node": None, "exitCode": None, "signal": 9, "message": None, "lastLines": None},
            "First failure: worker[1] in attempt 2: signal 9, Error",
        ),
    ],
)
def test_the_first_failure_has_its_place_cause_and_last_lines(failure: Any, expected: str) -> None:
    status = typed(JobStatus, state("Failed", firstFailure=failure))
    assert failure_text(status) == expected
    described = describe_text(typed(Job, job("Failed", firstFailure=failure)), [], [], [], NOW)
    assert expected in described


@pytest.mark.parametrize(
    ("identity", "short", "whole"),
    [
        ("controller", "jobgate", "jobgate"),
        ("anonymous", "jobgate", "jobgate"),
        ("job:1c3e", "jobgate", "jobgate"),
        (None, "jobgate", "jobgate"),
        ("token:Zk3v", "jobgate (token)", "jobgate (token:Zk3v)"),
        ("user:https://id.example#u-1", "jobgate (user)", "jobgate (user:https://id.example#u-1)"),
    ],
)
def test_a_token_or_a_user_never_looks_like_the_controller(identity: str | None, short: str, whole: str) -> None:
    assert actor_text("jobgate", identity) == short
    assert actor_text("jobgate", identity, whole=True) == whole
    described = describe_text(
        typed(Job, job("Running") | {"createdBy": "jobgate", "createdById": identity}), [], [], [], NOW
    )
    assert f"by {whole} (" in described
