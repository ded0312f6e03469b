"""Metrics of jobs count each stage once, whatever is repeated, and nothing of decisions that are not stored."""

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from prometheus_client import REGISTRY

from app.base.bounded_names import OTHERS, BoundedNames
from app.db.jobs import controller, edits
from app.domain.access.actors import Actor
from app.domain.queueing.admission import Queueing
from app.domain.vocabulary import JobPhase
from app.loops import metrics
from app.loops.jobs.measuring import measure
from tests.db.factories import stored
from tests.loops.harness import Harness
from tests.support.telemetry.metrics import value

KIND = {"kind": "GenericJob"}
STAGES = ("creation", "start", "run")


def ended(phase: str) -> float:
    """Return how many jobs of all namespaces have ended in the phase."""
    return sum(
        sample.value
        for metric in REGISTRY.collect()
        for sample in metric.samples
        if sample.name == "jobgate_jobs_ended_total" and sample.labels["phase"] == phase
    )


def measured() -> dict[str, float]:
    """How often each stage, and each end, was measured."""
    stages = {stage: value(f"jobgate_job_{stage}_duration_seconds_count", **KIND) for stage in STAGES}
    ends = {phase: ended(phase) for phase in ("Succeeded", "Cancelled")}
    return stages | ends


def change(before: dict[str, float]) -> dict[str, float]:
    return {name: now - before[name] for name, now in measured().items()}


async def test_each_stage_of_a_job_is_measured_once(harness: Harness) -> None:
    before, seconds = measured(), value("jobgate_job_run_duration_seconds_sum", **KIND)
    done = value("jobgate_reconciles_total", name="jobs", result="done")
    async with harness.reconciling():
        uid = await harness.submit(replicas=1)
        (name,) = await harness.pods_until(lambda found: len(found) == 1)
        await harness.kubelet.run(name)
        await harness.phase(uid, JobPhase.RUNNING)
        harness.clock.skip(100)
        await harness.kubelet.finish(name)
        await harness.job_until(uid, lambda job: job.recorded.status.quiet)
    assert change(before) == {"creation": 1, "start": 1, "run": 1, "Succeeded": 1, "Cancelled": 0}
    assert value("jobgate_job_run_duration_seconds_sum", **KIND) - seconds >= 100
    assert value("jobgate_reconciles_total", name="jobs", result="done") - done >= 3
    # Another controller, which knows only what is stored, reconciles the job again.
    harness.reconcile_with(harness.db)
    version = (await stored(harness.db, uid)).status_version
    async with harness.reconciling():
        await edits.request_deletion(harness.db, uid, actor=Actor("alice"), at=harness.clock.now())
        harness.queue.add(str(uid))
        await harness.job_until(uid, lambda job: job.status_version > version)
    assert change(before) == {"creation": 1, "start": 1, "run": 1, "Succeeded": 1, "Cancelled": 0}


async def test_an_outdated_decision_measures_nothing(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """The job is cancelled between the load and the write of the decision that first observes its pod."""
    before, load = measured(), controller.load
    outdated = value("jobgate_reconciles_total", name="jobs", result="outdated")

    async def load_and_cancel(*arguments: Any) -> Any:
        jobs = await load(*arguments)
        is_reconcile = len(arguments) > 2  # the test itself reads the job, too
        if is_reconcile and harness.mirror.count(str(uid)):
            monkeypatch.undo()
            await edits.request_cancel(harness.db, uid, actor=Actor("alice"), at=harness.clock.now())
        return jobs

    uid = await harness.submit(replicas=1)
    monkeypatch.setattr(controller, "load", load_and_cancel)
    async with harness.reconciling():
        await harness.phase(uid, JobPhase.CANCELLED)
    assert value("jobgate_reconciles_total", name="jobs", result="outdated") - outdated == 1
    assert change(before) == {"creation": 1, "start": 0, "run": 0, "Succeeded": 0, "Cancelled": 1}


async def test_waits_in_a_queue_and_evictions_are_measured(harness: Harness) -> None:
    job = await stored(harness.db, await harness.submit())
    labels = {"namespace": harness.namespace, "queue": "team"}
    waiting = Queueing(name="team", queued_at=harness.clock.now())
    admitted = replace(waiting, admission={}, admitted_at=harness.clock.now() + timedelta(seconds=15))
    evicted = replace(admitted, evicted="Preempted", evicted_at=harness.clock.now())
    evictions = value("jobgate_evictions_total", reason="Preempted")
    for before, after in pairwise((waiting, admitted, admitted, evicted)):
        recorded = replace(job.recorded, status=replace(job.recorded.status, queueing=before))
        measure(replace(job, recorded=recorded), replace(job.recorded.status, queueing=after))
    assert value("jobgate_queue_duration_seconds_count", **labels) == 1
    assert value("jobgate_queue_duration_seconds_sum", **labels) == pytest.approx(15, abs=1)
    assert value("jobgate_evictions_total", reason="Preempted") == evictions + 1


def test_the_queues_that_are_labels_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    # The other tests of this process need some of them.
    monkeypatch.setattr(metrics, "_QUEUES", BoundedNames(100))
    found = {metrics.queue_labels("bounded", f"queue-{number}") for number in range(200)}
    assert (OTHERS, OTHERS) in found
    assert len(found) <= 101
