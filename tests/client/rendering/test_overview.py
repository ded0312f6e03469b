"""What `jobgate top` shows."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from jobgate.cli.rendering.overview import overview, overview_text
from jobgate.client.types import JobSummary
from tests.client.scripted import aggregate, job

NOW = datetime(2026, 1, 31, 12, 5, tzinfo=UTC)


def waits(code: str, count: int, *, started: bool = False) -> dict[str, Any]:
    return {
        "code": code,
        "message": "why",
        "since": None,
        "replicas": ["worker[0]"],
        "count": count,
        "started": started,
    }


def made(name: str, phase: str, created: str = "2026-01-31T12:00:00Z", **status: Any) -> JobSummary:
    return msgspec.convert(job(phase, name, **status) | {"createdAt": created}, JobSummary)


JOBS = [
    made("late", "Queued", "2026-01-31T12:04:00Z", pendingReasons=[waits("PreviousObjects", 2)]),
    made("stuck", "Pending", pendingReasons=[waits("Unschedulable", 2), waits("ImagePull", 1)]),
    made("stuck-too", "Pending", "2026-01-31T12:01:00Z", pendingReasons=[waits("Unschedulable", 1)]),
    made("calm", "Running", message="2 of 2 replicas are running"),
    made("crashing", "Running", pendingReasons=[waits("CrashLoop", 1, started=True)]),
    made("rests", "Paused", aggregate=aggregate(deleted=2, succeeded=1), message="the job is paused"),
    made("half", "Running", aggregate=aggregate(running=1, pending=1, succeeded=1), message="1 waits"),
]


BOTH = "Unschedulable: why (2 replicas); ImagePull: why (1 replica)"


def test_running_jobs_come_first_and_reasons_are_counted() -> None:
    text = overview_text(JOBS, NOW, all_namespaces=True)
    sums, reasons, rows = (part.splitlines() for part in text.split("\n\n"))
    assert sums == ["live jobs: 3 Running, 2 Pending, 1 Queued, 1 Paused", "replicas: 5 running, 7 waiting, 2 stopped"]
    assert [line.split() for line in reasons[1:]] == [
        ["Unschedulable", "3", "2"],
        ["PreviousObjects", "2", "1"],
        ["ImagePull", "1", "1"],
    ]
    assert rows[0].split()[:2] == ["NAMESPACE", "NAME"]
    assert [line.split(maxsplit=9)[1:] for line in rows[1:]] == [
        ["calm", "GenericJob", "Running", "2", "0", "0", "0", "5m"],
        ["crashing", "GenericJob", "Running", "2", "0", "0", "0", "5m", "CrashLoop: why"],
        ["half", "GenericJob", "Running", "1", "1", "0", "1", "5m", "1 waits"],
        ["stuck", "GenericJob", "Pending", "0", "2", "0", "0", "5m", BOTH],
        ["stuck-too", "GenericJob", "Pending", "0", "2", "0", "0", "4m", "Unschedulable: why"],
        ["late", "GenericJob", "Queued", "0", "2", "0", "0", "60s", "PreviousObjects: why"],
        ["rests", "GenericJob", "Paused", "0", "0", "2", "1", "5m", "the job is paused"],
    ]


def test_the_same_for_programs() -> None:
    found = overview(JOBS)
    assert found["replicas"] == {"running": 5, "waiting": 7, "stopped": 2, "done": 2}
    assert found["reasons"]["Unschedulable"] == {"replicas": 3, "jobs": 2}
    assert [one["name"] for one in found["jobs"]] == ["calm", "crashing", "half", "stuck", "stuck-too", "late", "rests"]


def test_nothing_is_live() -> None:
    assert overview_text([], NOW, all_namespaces=False) == "no job is live"
    assert overview([])["jobs"] == []


def test_an_ended_job_whose_replicas_still_run_is_listed_and_says_so() -> None:
    left = made("left", "Failed", aggregate=aggregate(running=1, failed=1), message="worker failed", stillRunning=1)
    lines = overview_text([left], NOW, all_namespaces=False).splitlines()
    assert (lines[0], lines[2]) == ("live jobs: none", "ended jobs with replicas that still run: 1")
    row = ["left", "GenericJob", "Failed", "1", "0", "0", "1", "5m", "1 replica of this job still runs"]
    assert lines[-1].split(maxsplit=8) == row


@pytest.mark.parametrize("width", [20, 80, 200, None])
def test_a_terminal_shows_the_whole_cause(width: int | None) -> None:
    """The answer is in the middle of a message of the scheduler."""
    nodes = "0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: 1 Preemption is no help."
    stuck = made("stuck", "Pending", pendingReasons=[waits("Unschedulable", 2) | {"message": nodes}])
    text = overview_text([stuck], NOW, all_namespaces=False, width=width)
    assert f"Unschedulable: {nodes}" in " ".join(text.split())
