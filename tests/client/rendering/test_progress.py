"""What a terminal shows while a command follows an object."""

import io
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from rich.console import Console

from jobgate.cli.rendering.progress import TaskProgress, picture, tasks_of
from jobgate.client.types import JobStatus, Replica, SampleSetStatus
from tests.client.scripted import replica, state

NOW = datetime(2026, 1, 31, 12, 1, 0, tzinfo=UTC)


def job(phase: str = "Running", **status: Any) -> JobStatus:
    return msgspec.convert(state(phase, **status), JobStatus)


def replicas(*given: dict[str, Any]) -> list[Replica]:
    return msgspec.convert(list(given), list[Replica])


def text(*arguments: Any, width: int = 100) -> str:
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(picture(*arguments))
    return console.export_text()


@pytest.mark.parametrize("width", [20, 40, 80])
def test_a_narrow_terminal_leaves_nothing_out(width: int) -> None:
    why = "exit code 3: the data set is not there"
    rows = replicas(replica(0, "Running", task="parameter", restarts=2), replica(0, "Failed", message=why))
    shown = " ".join(text(job(), rows, NOW, width=width).split())
    for part in ("parameter", "1/1", "1 running", "2", "worker", "0/1", "1 failed", why):
        assert part in shown
    assert "…" not in shown


def test_each_task_has_a_row() -> None:
    waits = {
        "code": "Unschedulable",
        "message": "0/3 nodes",
        "since": None,
        "replicas": ["worker[1]"],
        "count": 1,
        "started": False,
    }
    found = tasks_of(
        job(pendingReasons=[waits]),
        replicas(
            replica(0, "Running", task="ps", restarts=2),
            replica(0, "Succeeded"),
            replica(1, "Pending"),
            replica(2, "Running", leaving=True),
        ),
    )
    assert found == [
        TaskProgress(task="ps", done=1, wanted=1, counts="1 running", restarts=2, why=""),
        TaskProgress(
            task="worker",
            done=1,
            wanted=2,
            counts="1 pending, 1 succeeded",
            restarts=0,
            why="Unschedulable: 0/3 nodes",
        ),
    ]


def test_a_failed_replica_explains_its_task() -> None:
    (row,) = tasks_of(job("Failed"), replicas(replica(0, "Running"), replica(1, "Failed", message="exit code 3")))
    assert row.why == "[1] exit code 3"


def test_replicas_that_have_ended_wait_for_nothing() -> None:
    """The replicas are read after the status, whose pending reasons can be older."""
    waits = {
        "code": "ContainerCreating",
        "message": "",
        "since": None,
        "replicas": ["worker[0]"],
        "count": 1,
        "started": False,
    }
    (row,) = tasks_of(job(pendingReasons=[waits]), replicas(replica(0, "Failed", message="exit code 3")))
    assert row.why == "[0] exit code 3"


@pytest.mark.parametrize(
    ("started", "finished", "elapsed"),
    [
        (None, None, ""),
        ("2026-01-31T12:00:18Z", None, "42s"),
        ("2026-01-31T12:00:18Z", "2026-01-31T12:00:20Z", "2s"),
    ],
)
def test_the_time_runs_until_the_end(started: str | None, finished: str | None, elapsed: str) -> None:
    shown = text(job(startedAt=started, finishedAt=finished, message="why"), replicas(replica(0, "Running")), NOW)
    first, second, *_ = shown.splitlines()
    assert (first.split(), second) == (["tour", "Running", *([elapsed] if elapsed else [])], "  why")
    assert ["worker", "1/1", "1", "running", "0"] in [line.split() for line in shown.splitlines()]


def test_a_job_without_known_replicas_shows_its_counts() -> None:
    assert "2 replicas: 2 running" in text(job(), [], NOW)


def test_the_message_of_a_job_is_no_markup() -> None:
    assert "[red]x[/red]" in text(job(message="[red]x[/red]"), [], NOW)


@pytest.mark.parametrize(
    ("cache", "expected"),
    [
        (None, "1/2 servers ready"),
        ({"totalBytes": 4000000, "cachedBytes": 1000000, "whole": False}, "25 % of 4.0 MB cached, 1/2 servers ready"),
        ({"totalBytes": 4000000, "cachedBytes": 4000000, "whole": True}, "all of 4.0 MB cached, 1/2 servers ready"),
    ],
)
def test_a_sample_set_shows_its_cache(cache: Any, expected: str) -> None:
    wire = state("Syncing")
    wire["status"] |= {"cache": cache, "runtime": {"ready": 1, "wanted": 2}}
    assert expected in text(msgspec.convert(wire, SampleSetStatus), [], NOW)
