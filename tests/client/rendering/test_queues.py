"""The text about queues."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from jobgate.cli.rendering.queues import position_text, queue_text, queues_text
from jobgate.client.types import JobQueue
from tests.client.scripted import a_queue, a_queued_job

NOW = datetime(2026, 1, 31, 12, 5, tzinfo=UTC)
SPOT = {"flavor": "spot", "resource": "cpu", "nominalQuota": "64", "used": "62", "usedByQueue": "12"}
FIXED = SPOT | {"flavor": "fixed", "used": None}


def made(**changes: Any) -> JobQueue:
    return msgspec.convert(a_queue(**changes), JobQueue)


@pytest.mark.parametrize(
    ("resources", "shown"), [([], "-"), ([SPOT], "cpu 62/64"), ([SPOT, FIXED], "cpu@spot 62/64, cpu@fixed ?/64")]
)
def test_a_row_has_the_use_of_each_quota(resources: list[Any], shown: str) -> None:
    header, row = queues_text([made(resources=resources)], all_namespaces=True).splitlines()
    assert header.split() == ["NAMESPACE", "NAME", "CLUSTER", "QUEUE", "ACTIVE", "PENDING", "ADMITTED", "IN", "USE"]
    assert row.split(maxsplit=6) == ["team", "nightly", "research", "yes", "2", "1", shown]


def test_a_wide_row_says_why_a_queue_is_not_active() -> None:
    stopped = made(active=False, message="is stopped")
    assert queues_text([stopped], wide=True).splitlines()[1].split()[2:] == ["no", "2", "1", "-", "is", "stopped"]


def test_a_queue_has_its_quota_and_the_jobs_that_wait_in_order() -> None:
    jobs = [a_queued_job("first", position=4, since="2026-01-31T12:04:00Z"), a_queued_job("second")]
    text = queue_text(made(resources=[SPOT], pendingJobs=jobs, pendingJobsOmitted=3), NOW)
    about, quota, waiting = text.split("\n\n")
    assert about.splitlines()[0] == "Queue:         team/nightly (active)"
    assert quota.splitlines()[1].split() == ["cpu", "spot", "64", "62", "12"]
    assert [line.split(maxsplit=5) for line in waiting.splitlines()[1:]] == [
        ["4", "first", "MxJob", "0", "60s", "WaitingForQuota: 4 more needed"],
        ["-", "second", "MxJob", "0", "-", "WaitingForQuota: 4 more needed"],
        ["and", "3", "more"],
    ]


def test_a_queue_of_a_cohort_has_what_is_free_in_it() -> None:
    text = queue_text(made(cohort="ml", resources=[SPOT | {"cohortFree": "40"}, FIXED]), NOW)
    about, quota, _ = text.split("\n\n")
    assert about.splitlines()[1] == "ClusterQueue:  research (cohort ml)"
    assert [line.split() for line in quota.splitlines()[1:]] == [
        ["cpu", "spot", "64", "62", "12", "40"],
        ["cpu", "fixed", "64", "-", "12", "-"],
    ]


def test_an_empty_queue_that_is_not_active() -> None:
    assert queue_text(made(active=False, message=""), NOW).splitlines()[0].endswith("(not active)")
    assert (
        queue_text(made(active=False, message="is stopped"), NOW).splitlines()[0].endswith("(not active: is stopped)")
    )
    assert queue_text(made(), NOW).endswith("\n\nno job waits")


@pytest.mark.parametrize(
    ("jobs", "omitted", "expected"),
    [
        ([a_queued_job("x"), a_queued_job("y", position=7)], 0, "position 7 in the ClusterQueue research"),
        ([a_queued_job("x"), a_queued_job("y")], 3, "position 2 of 5 in this queue, by priority and age"),
        ([a_queued_job("x")], 3, "after the first 1"),
        ([a_queued_job("x")], 0, ""),
    ],
)
def test_the_position_of_a_job(jobs: list[Any], omitted: int, expected: str) -> None:
    assert position_text(made(pendingJobs=jobs, pendingJobsOmitted=omitted), "uid-of-y") == expected
