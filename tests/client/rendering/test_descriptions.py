"""The text of `jobgate describe`."""

from datetime import UTC, datetime
from itertools import takewhile
from typing import Any

import msgspec
import pytest

from jobgate.cli.rendering.descriptions import describe_text
from jobgate.cli.rendering.queues import Surroundings
from jobgate.cli.rendering.tables import clock
from jobgate.client.types import Dependents, Event, History, Job, Replica, SampleJob, SampleSet
from tests.client.scripted import EVENT, job

NOW = datetime(2026, 1, 31, 12, 5, tzinfo=UTC)


def typed(kind: type[Any], value: Any) -> Any:
    return msgspec.convert(value, kind)


REPLICA = {
    "name": "tour-worker-0",
    "task": "worker",
    "rank": 0,
    "phase": "Failed",
    "attempt": 2,
    "restartCount": 1,
    "restartsInPlace": 0,
    "disruptions": 0,
    "leaving": False,
    "node": "n1",
    "exitCode": 127,
    "message": "pyhton: not found",
    "containers": [],
    "attempts": [
        {
            "number": number,
            "phase": "Failed",
            "evidence": "Captured",
            "node": "n2",
            "exitCode": 137,
            "reason": "OOMKilled",
            "containers": [],
        }
        for number in (2, 1)
    ],
}
ROW = {"seq": 1, "at": "2026-01-31T12:00:00Z", "phase": "Failed", "reason": "R", "message": "m", "actor": "controller"}


def test_a_description_has_the_cause_replicas_events_and_history() -> None:
    text = describe_text(
        typed(Job, job("Failed", message="worker[0]: exit code 127")),
        [typed(Replica, REPLICA)],
        [typed(Event, EVENT | {"reason": "BackOff"})],
        [typed(History, ROW)],
        NOW,
    )
    assert "Cause:     worker[0]: exit code 127\n" in text
    lines = [line.split() for line in text.splitlines()]
    assert ["worker[0]", "Failed", "2", "1", "n1", "127", "-", "pyhton:", "not", "found"] in lines
    assert ["Failed", "1", "n2", "137", "-", "OOMKilled"] in lines, "an earlier attempt"
    assert any(line[:1] == ["Events:"] for line in lines)
    assert any("BackOff" in line for line in lines)
    assert any(line[-2:] == ["controller", "m"] for line in lines)


def test_the_description_of_a_sample_set_has_its_cache_and_its_users() -> None:
    wire = job("Ready", "imagenet")
    wire |= {"nodes": []}
    wire["status"] |= {"cache": None, "runtime": {"ready": 1, "wanted": 2}}
    users = {
        "jobs": [{"uid": "u", "name": "train", "kind": "GenericJob", "phase": "Running"}],
        "sampleJobs": [{"uid": "u", "name": "warm", "type": "warmup", "phase": "Running", "progress": None}],
    }
    text = describe_text(typed(SampleSet, wire), [], [], [], NOW, dependents=typed(Dependents, users))
    assert "Cache:     1/2 servers ready\n" in text
    assert "Used by:   train, samplejob/warm" in text


def test_the_description_of_a_sample_job_has_its_operation() -> None:
    wire = job("Running", "warm")
    wire["status"] |= {"type": "warmup", "sampleSet": "imagenet"}
    assert "Operation: warmup of sampleset/imagenet" in describe_text(typed(SampleJob, wire), [], [], [], NOW)


WAITS = {"name": "team", "admitted": False, "queuedAt": "2026-01-31T12:02:00Z", "admittedAt": None, "eviction": None}
EVICTED = {"reason": "Preempted", "message": "for another", "at": "2026-01-31T12:04:30Z", "preemptedBy": "u-2"}


@pytest.mark.parametrize(
    ("queue", "preemptor", "expected"),
    [
        (None, None, []),
        (WAITS, None, ["team (not admitted, waits for 3m)"]),
        (WAITS | {"queuedAt": None}, None, ["team (not admitted)"]),
        (WAITS | {"admitted": True}, None, ["team (admitted)"]),
        (
            WAITS | {"eviction": EVICTED},
            None,
            ["team (not admitted, waits for 3m)", "evicted 30s ago: Preempted: for another"],
        ),
        (
            WAITS | {"admitted": True, "eviction": EVICTED | {"at": None}},
            job("Running", "urgent"),
            ["team (admitted)", "evicted: Preempted: for another", "preempted by GenericJob team/urgent"],
        ),
    ],
)
def test_a_description_has_the_queue_and_what_it_did(queue: Any, preemptor: Any, expected: list[str]) -> None:
    around = Surroundings(preemptor=None if preemptor is None else typed(Job, preemptor))
    text = describe_text(typed(Job, job("Queued", queue=queue)), [], [], [], NOW, around=around)
    _, _, found = text.partition("\nQueue:")
    assert [line.strip() for line in takewhile(lambda line: line.startswith(" "), found.splitlines())] == expected


def test_the_time_of_an_admission_is_shown() -> None:
    admitted = typed(Job, job("Running", queue=WAITS | {"admitted": True, "admittedAt": "2026-01-31T12:03:00Z"}))
    text = describe_text(admitted, [], [], [], NOW)
    assert f"team (admitted {clock(admitted.status.queue.admitted_at)})" in text
