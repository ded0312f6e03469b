"""No native status grows without a bound with the replicas of its job."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
import pytest

from app.domain.kinds.generic_job.native import LISTED_REPLICAS
from app.domain.kinds.job_kind import Limits, StatusFacts
from app.domain.plan import Manifest
from app.domain.status.observed import ObservedContainer
from app.domain.status.records import Attempt, JobStatus, Replica
from app.domain.vocabulary import JobPhase, Outcome, Reason, ReplicaPhase
from tests.support.kinds.variations import KINDS, accepted, kind_of
from tests.support.model.kind_world import plan_of
from tests.support.plans import GIVEN

MANY: Final = 10_000
FEWER: Final = 1000
MOST_BYTES: Final = 512 * 1024
AT: Final = datetime(2026, 1, 1, tzinfo=UTC)


def _generic(spec: Any) -> None:
    spec["replicaSpecs"][0]["replicas"] = MANY


def _training(spec: Any) -> None:
    spec["trainer"].update({"min-instance": MANY, "max-instance": MANY})


def _mx(spec: Any) -> None:
    spec["replicaSpecs"][-1]["replicas"] = MANY


def _di(spec: Any) -> None:
    spec["tasks"][-1]["replicas"] = FEWER  # their names have room in DI_NODES


LARGE: Final[dict[str, tuple[str, Callable[[Any], None]]]] = {
    "GenericJob": ("GenericJob", _generic),
    "TrainingJob": ("TrainingJob plain", _training),
    "MxJob": ("MxJob dist", _mx),
    "DIJob": ("DIJob without restarts", _di),
}


def failed(number: int) -> Attempt:
    container = ObservedContainer(name="main", state="terminated", exit_code=17, message="m" * 500)
    return Attempt(
        number=number,
        pod_uid="u" * 36,
        phase=ReplicaPhase.FAILED,
        outcome=Outcome.FAILED,
        exit_code=17,
        message="m" * 4000,
        finished_at=AT,
        containers=(container,),
    )


def large(kind: str) -> Manifest:
    job, enlarge = LARGE[kind]
    manifest = msgspec.json.decode(msgspec.json.encode(accepted(job)))
    enlarge(manifest["spec"])
    posted = {key: manifest[key] for key in ("apiVersion", "kind", "spec")} | {"metadata": {"name": "job"}}
    return kind_of(posted).accept(posted, Limits(max_replicas=2 * MANY), GIVEN).manifest


@pytest.mark.parametrize("phase", [JobPhase.RUNNING, JobPhase.FAILED])
@pytest.mark.parametrize("name", sorted(KINDS))
def test_a_native_status_of_many_failed_replicas_is_short(name: str, phase: JobPhase) -> None:
    manifest = large(name)
    kind = kind_of(manifest)
    keys = list(plan_of(manifest, 1, resumed=False).replicas)
    assert len(keys) >= FEWER
    replicas = [Replica(key=key, attempt=failed(1), settled=True) for key in keys]
    status = JobStatus(
        phase=phase, reason=Reason.RULE_FULFILLED, message="failureRules[0]", aggregate={ReplicaPhase.FAILED: MANY}
    )
    facts = StatusFacts(status=status, replicas=replicas, attempts=[(*key, failed(1)) for key in keys], created_at=AT)
    native = kind.native_status(kind.read(manifest), facts)
    assert len(msgspec.json.encode(native)) < MOST_BYTES


@pytest.mark.parametrize(
    ("sizes", "listed"),
    [
        ([LISTED_REPLICAS], [LISTED_REPLICAS]),
        ([LISTED_REPLICAS - 1, 1], [LISTED_REPLICAS - 1, 1]),
        ([LISTED_REPLICAS + 1], [LISTED_REPLICAS]),
        ([MANY, 4], [LISTED_REPLICAS // 2, 4]),
        ([2] * (LISTED_REPLICAS + 1), [1] * (LISTED_REPLICAS + 1)),
    ],
)
def test_a_generic_job_lists_the_first_replicas_of_each_task_and_counts_the_others(
    sizes: list[int], listed: list[int]
) -> None:
    manifest = large("GenericJob")
    one = manifest["spec"]["replicaSpecs"][0]
    manifest["spec"]["replicaSpecs"] = [
        {**one, "type": f"t{number}", "replicas": size} for number, size in enumerate(sizes)
    ]
    kind = kind_of(manifest)
    status = JobStatus(phase=JobPhase.QUEUED, reason=Reason.SUBMITTED, message="", aggregate={})
    native = kind.native_status(kind.read(manifest), StatusFacts(status=status, replicas=[], created_at=AT))
    assert [len(task["replicas"]) for task in native["tasks"]] == listed
    omitted = [task.get("replicasOmitted", 0) for task in native["tasks"]]
    assert [shown + left for shown, left in zip(listed, omitted, strict=True)] == sizes
    assert all(task.get("replicasOmitted", 1) > 0 for task in native["tasks"])
    assert native["tasks"][0]["replicas"][-1]["name"].endswith(f"-t0-{listed[0] - 1}")
