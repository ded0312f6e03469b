"""What of a job the autoscaler may touch, and when it may not."""

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from app.domain.kinds.generic_job import GenericJobKind
from app.domain.planning import Planner
from app.domain.scaling.candidates import Live, Shape, TaskWaits, can_scale, candidate, shape_of, waiting
from app.domain.scaling.values import Verdict, WaitingJob
from app.domain.vocabulary import JobPhase
from tests.domain.scaling.cases import amount
from tests.support.kinds.elastic import ElasticKind, elastic_manifest

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
FREEZE = timedelta(seconds=60)


def shape(manifest: dict[str, Any] | None = None, **spec: Any) -> Shape | None:
    manifest = manifest or elastic_manifest(2, 1, 4, cpu="200m")
    accepted = ElasticKind().read({**manifest, "spec": manifest["spec"] | spec})
    return shape_of(accepted, partial(Planner(installation="here").plan, uid="u"))


def shaped(**spec: Any) -> Shape:
    found = shape(**spec)
    assert found is not None
    return found


def test_a_shape_is_read_off_the_elastic_task() -> None:
    found = shaped(nodeSelector={"disk": "ssd"})
    assert (found.task, found.size, found.least, found.most) == ("worker", 2, 1, 4)
    assert (found.need, found.selector, found.opted_out) == (amount(200), {"disk": "ssd"}, False)


def test_the_total_of_a_job_bounds_its_elastic_task() -> None:
    assert shaped(total=3).most == 2


def test_a_task_without_replicas_is_shaped_by_those_that_it_would_have() -> None:
    assert shaped(size=0, least=0).need == amount(200)


def test_a_task_that_only_clients_resize_has_no_shape() -> None:
    assert shape(byHand=True) is None


def test_whether_a_kind_can_scale_follows_from_its_methods() -> None:
    assert can_scale(ElasticKind())
    assert not can_scale(GenericJobKind())


@pytest.mark.parametrize(
    ("annotations", "live", "verdict", "message"),
    [
        ({}, {}, None, ""),
        ({"jobgate.dev/autoscale": "true"}, {}, None, ""),
        (
            {"jobgate.dev/autoscale": "false"},
            {},
            Verdict.OPTED_OUT,
            "the annotation jobgate.dev/autoscale is false",
        ),
        ({}, {"phase": JobPhase.PAUSED}, Verdict.PAUSED, "the job is paused"),
        ({}, {"scaled_at": NOW - FREEZE}, None, ""),
        (
            {},
            {"scaled_at": NOW - timedelta(seconds=20)},
            Verdict.FROZEN,
            "frozen until 2030-01-01T12:00:40Z, after its last change of size",
        ),
    ],
)
def test_jobs_that_the_autoscaler_does_not_resize(
    annotations: dict[str, str], live: dict[str, Any], verdict: Verdict | None, message: str
) -> None:
    found = shape(elastic_manifest(annotations=annotations))
    assert found is not None
    values: dict[str, Any] = {"uid": "u", "namespace": "team", "name": "n", "phase": JobPhase.RUNNING}
    job = candidate(found, Live(**{**values, "seen": True, "scaled_at": None, **live}), NOW, FREEZE)
    assert ((job.excuse.verdict, job.excuse.message) if job.excuse else (None, "")) == (verdict, message)


@pytest.mark.parametrize(
    ("phase", "seen", "settling"),
    [
        (JobPhase.RUNNING, True, False),
        (JobPhase.RUNNING, False, True),
        (JobPhase.SCALING, True, True),
        (JobPhase.CREATING, True, True),
        (JobPhase.RESTARTING, True, False),
    ],
)
def test_a_job_settles_until_its_pods_follow_its_size(phase: JobPhase, seen: bool, settling: bool) -> None:  # noqa: FBT001
    live = Live(uid="u", namespace="team", name="n", phase=phase, seen=seen, scaled_at=None)
    assert candidate(shaped(), live, NOW, FREEZE).settling is settling


A, B = (WaitingJob(uid=name, namespace="team", name=name) for name in "ab")


@pytest.mark.parametrize(
    ("tasks", "expected"),
    [
        pytest.param([(A, "leader", True), (A, "worker", False)], [A], id="what must be there has no room"),
        pytest.param([(A, "leader", False), (A, "worker", True)], [], id="what may shrink can wait"),
        pytest.param([(A, "worker", True)], [A], id="it is all there is"),
        pytest.param([(A, "worker", False)], [], id="some of it runs"),
        pytest.param([(B, "ps", False), (B, "worker", True)], [B], id="a job that is not elastic"),
        pytest.param([(A, "leader", True), (B, "worker", True)], [A, B], id="both"),
        pytest.param([], [], id="nobody"),
    ],
)
def test_a_job_waits_when_a_task_that_it_needs_has_no_room(
    tasks: list[tuple[WaitingJob, str, bool]], expected: list[WaitingJob]
) -> None:
    found = [TaskWaits(job=job, task=task, wholly=wholly) for job, task, wholly in tasks]
    assert waiting(found, {"a": "worker"}) == expected
