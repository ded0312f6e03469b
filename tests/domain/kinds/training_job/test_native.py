"""The native status through a job's life: tests/data/training_job_native/<step>.json, and the tables of words."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from app.domain.kinds.job_kind import Limits, Site, StatusFacts
from app.domain.kinds.training_job import TrainingJobKind
from app.domain.plan import Manifest, Rank
from app.domain.reconcile.rules import evaluate
from app.domain.status.failures import summarize_failures
from app.domain.status.records import JobStatus, Replica, ScaleRecord
from app.domain.vocabulary import JobPhase, Outcome, Reason, ReplicaPhase, ScaleOutcome
from tests.domain.kinds.training_job.test_golden import DATA, changed, identity, load
from tests.support.plans import GIVEN, T0, a_replica, an_attempt, at, by_rank, ended
from tests.support.plugins.golden import Golden

KIND = TrainingJobKind()
GOLDEN = DATA.parent / "training_job_native"
CREATING, PENDING, RUNNING = ReplicaPhase.CREATING, ReplicaPhase.PENDING, ReplicaPhase.RUNNING
MASTER, P0, P1 = Rank("master", 0), Rank("pserver", 0), Rank("pserver", 1)


def trainer(rank: int) -> Rank:
    return Rank("trainer", rank)


def pod(key: Rank, phase: ReplicaPhase = RUNNING, *, seen: bool = True, **more: Any) -> Replica:
    return a_replica(key, an_attempt(key=key, phase=phase, seen=seen, node="n1"), **more)


def scale(seq: int, before: int, after: int, outcome: ScaleOutcome | None = None, message: str = "") -> ScaleRecord:
    return ScaleRecord(
        seq=seq,
        task="trainer",
        from_replicas=before,
        to_replicas=after,
        actor="me",
        reason="",
        requested_at=at(60 * seq),
        outcome=outcome,
        message=message,
    )


@dataclass(frozen=True, kw_only=True)
class Step:
    """One moment: how large the job is, what is concluded of it, and what its pods do."""

    phase: JobPhase
    reason: str = ""
    message: str = ""
    trainers: int = 2
    replicas: Sequence[Replica] = ()
    records: Sequence[ScaleRecord] = ()
    started: bool = True
    more: dict[str, Any] = field(default_factory=dict)


SERVING = [pod(MASTER), pod(P0), pod(P1)]
STOPPED = [ended(key, Outcome.STOPPED, settled=False) for key in (MASTER, P0, P1)]
UP = scale(1, 2, 4, ScaleOutcome.REACHED)
LIFE = {
    "1_queued": Step(phase=JobPhase.QUEUED, started=False),
    "2_creating": Step(
        phase=JobPhase.CREATING,
        message="pods are being created",
        started=False,
        replicas=[pod(MASTER), pod(P0, PENDING), pod(P1, CREATING), pod(trainer(0), CREATING, seen=False)],
    ),
    "3_running": Step(phase=JobPhase.RUNNING, replicas=[*SERVING, pod(trainer(0)), pod(trainer(1))]),
    "4_scaling_up": Step(
        phase=JobPhase.SCALING,
        reason=Reason.SCALING,
        trainers=4,
        replicas=[*SERVING, *(pod(trainer(rank)) for rank in (0, 1)), pod(trainer(2), PENDING)],
        records=[scale(1, 2, 4)],
    ),
    "5_a_newer_request": Step(
        phase=JobPhase.SCALING,
        reason=Reason.SCALING,
        trainers=3,
        replicas=[*SERVING, *(pod(trainer(rank)) for rank in range(4)), pod(trainer(5), leaving=True)],
        records=[
            UP,
            scale(2, 4, 6, ScaleOutcome.REPLACED, "replaced by a request for 3"),
            scale(3, 6, 3),
        ],
    ),
    "6_a_trainer_has_failed": Step(
        phase=JobPhase.RUNNING,
        trainers=3,
        replicas=[
            pod(MASTER),
            pod(P0, restarts=2),
            pod(P1, CREATING, seen=False),
            ended(trainer(0), Outcome.FAILED),
            ended(trainer(1), Outcome.SUCCEEDED),
            pod(trainer(2)),
        ],
        records=[UP, scale(2, 4, 6, ScaleOutcome.REFUSED, "quota"), scale(3, 6, 3, ScaleOutcome.REACHED)],
    ),
    "7_succeeded": Step(
        phase=JobPhase.SUCCEEDED,
        reason=Reason.RULE_FULFILLED,
        message="trainersDone is fulfilled",
        replicas=[*SERVING, *(ended(trainer(rank), Outcome.SUCCEEDED) for rank in (0, 1))],
    ),
    "8_released": Step(
        phase=JobPhase.SUCCEEDED,
        reason=Reason.RULE_FULFILLED,
        message="trainersDone is fulfilled",
        replicas=[*STOPPED, *(ended(trainer(rank), Outcome.SUCCEEDED) for rank in (0, 1))],
        records=[UP, scale(2, 4, 2, ScaleOutcome.JOB_ENDED)],
    ),
}


def accepted(manifest: Manifest) -> Manifest:
    return KIND.accept(manifest, Limits(), GIVEN).manifest


def facts(step: Step) -> StatusFacts:
    status = JobStatus(
        phase=step.phase,
        reason=step.reason,
        message=step.message,
        started_at=at(30) if step.started else None,
        ended_by=summarize_failures(replica for replica in step.replicas if replica.key.task == "trainer"),
        **step.more,
    )
    return StatusFacts(status=status, replicas=step.replicas, scale_records=step.records, created_at=T0)


def native(step: Step, manifest: Manifest | None = None) -> dict[str, Any]:
    stored = accepted(manifest or load("example_job"))
    return KIND.native_status(KIND.read({**stored, "assigned": {"trainers": step.trainers}}), facts(step))


@pytest.mark.parametrize("step", LIFE)
def test_a_life(step: str, golden: Golden) -> None:
    golden(GOLDEN / f"{step}.json", native(LIFE[step]))


@pytest.mark.parametrize(
    ("phase", "started", "word"),
    [
        (JobPhase.QUEUED, False, ""),
        (JobPhase.CREATING, False, "Creating"),
        (JobPhase.PENDING, False, "Creating"),
        (JobPhase.UNKNOWN, False, "Creating"),
        (JobPhase.CREATING, True, "Running"),
        (JobPhase.PENDING, True, "Running"),
        (JobPhase.RUNNING, True, "Running"),
        (JobPhase.RESTARTING, True, "Running"),
        (JobPhase.UNKNOWN, True, "Running"),
        (JobPhase.SCALING, True, "Scaling"),
        (JobPhase.SUCCEEDED, True, "Succeed"),
        (JobPhase.FAILED, False, "Failed"),
        (JobPhase.CANCELLED, True, "Failed"),
        (JobPhase.TIMED_OUT, True, "Timeout"),
    ],
)
def test_phase(phase: JobPhase, word: str, *, started: bool) -> None:
    assert native(Step(phase=phase, started=started))["phase"] == word


PLAIN = {"fault_tolerant": False, "trainer": {"min-instance": 7}, "pserver": {"min-instance": 1}}
RULE = Reason.RULE_FULFILLED


@pytest.mark.parametrize(
    ("step", "tolerant", "reason"),
    [
        (Step(phase=JobPhase.RUNNING), True, "all pods are running"),
        (Step(phase=JobPhase.RESTARTING, message="pserver[0] restarts"), True, "pserver[0] restarts"),
        (Step(phase=JobPhase.SCALING), True, "need scale"),
        (Step(phase=JobPhase.SUCCEEDED), False, "all trainer instances have done"),
        (Step(phase=JobPhase.TIMED_OUT, message="…"), True, "timeout!"),
        (Step(phase=JobPhase.CANCELLED, message="cancelled by me"), True, "cancelled by me"),
        (Step(phase=JobPhase.FAILED, reason=Reason.REFUSED_BY_CLUSTER, message="no"), True, "no"),
        (
            Step(phase=JobPhase.FAILED, reason=RULE, message="trainersFailed is fulfilled"),
            True,
            "all trainer instances have failed",
        ),
        (
            Step(phase=JobPhase.FAILED, reason=RULE, message="pserverRestartLimit is fulfilled"),
            True,
            "Pserver reached to restart limit!",
        ),
        (
            Step(
                phase=JobPhase.FAILED,
                reason=RULE,
                message="trainersFailed is fulfilled",
                replicas=[
                    ended(trainer(0), Outcome.SUCCEEDED),
                    ended(
                        trainer(1), Outcome.FAILED, how={"exit_code": 137, "reason": "OOMKilled", "last_lines": ("x",)}
                    ),
                    pod(P0),
                ],
            ),
            False,
            "trainer instances have failed: examplejob-trainer-1 on no node (exit code 137, OOMKilled): x",
        ),
        (
            Step(
                phase=JobPhase.FAILED,
                reason=RULE,
                message="trainersFailed is fulfilled",
                replicas=[ended(trainer(rank), Outcome.FAILED, how={"node": "n1"}) for rank in range(7)],
            ),
            False,
            "trainer instances have failed: "
            + ", ".join(f"examplejob-trainer-{rank} on n1" for rank in range(5))
            + ", and 2 more",
        ),
    ],
)
def test_reason(step: Step, reason: str, *, tolerant: bool) -> None:
    manifest = load("example_job") if tolerant else changed("example_job", **PLAIN)
    assert native(step, manifest)["reason"] == reason


def roles(step: Step, manifest: Manifest | None = None) -> dict[str, str]:
    statuses = native(step, manifest)["replica_statuses"]
    return {one["training_resource_type"]: one["state"] for one in statuses}


@pytest.mark.parametrize(
    ("replicas", "tolerant", "state"),
    [
        ([], True, ""),
        ([pod(trainer(0), CREATING)], True, "starting"),
        ([pod(trainer(0)), pod(trainer(1), ReplicaPhase.UNKNOWN)], True, "running"),
        ([pod(trainer(0)), ended(trainer(1), Outcome.FAILED)], True, "running"),
        ([pod(trainer(0)), ended(trainer(1), Outcome.FAILED)], False, "failed"),
        ([ended(trainer(0), Outcome.SUCCEEDED), ended(trainer(1), Outcome.FAILED)], True, "succeeded"),
        ([ended(trainer(0), Outcome.DISRUPTED), ended(trainer(1), Outcome.FAILED)], True, "failed"),
        ([ended(trainer(0), Outcome.SUCCEEDED), pod(trainer(1))], False, "running"),
    ],
)
def test_the_state_of_trainers(replicas: Sequence[Replica], state: str, *, tolerant: bool) -> None:
    step = Step(phase=JobPhase.RUNNING, replicas=replicas)
    manifest = None if tolerant else changed("example_job", fault_tolerant=False, trainer={"min-instance": 2})
    assert roles(step, manifest)["trainer"] == state


@pytest.mark.parametrize(
    ("phase", "replicas", "released"),
    [
        (JobPhase.RUNNING, [], False),
        (JobPhase.SUCCEEDED, [], True),
        (JobPhase.SUCCEEDED, [*STOPPED, ended(trainer(0), Outcome.SUCCEEDED)], True),
        (JobPhase.FAILED, [*SERVING, ended(trainer(0), Outcome.FAILED)], False),
        (JobPhase.FAILED, [*STOPPED, pod(trainer(5), leaving=True)], False),
        (JobPhase.FAILED, [*STOPPED, pod(trainer(0), ReplicaPhase.DELETED, seen=False)], True),
    ],
)
def test_released_is_when_no_pod_holds_resources(
    phase: JobPhase, replicas: Sequence[Replica], *, released: bool
) -> None:
    assert native(Step(phase=phase, replicas=replicas))["released"] is released


def finish_of(*replicas: Replica, tolerant: bool) -> tuple[JobPhase, str] | None:
    manifest = accepted(
        load("example_job") if tolerant else changed("example_job", **PLAIN | {"trainer": {"min-instance": 2}})
    )
    plan = KIND.plan(KIND.read(manifest), identity(manifest), resumed=False, site=Site())
    finish = evaluate(plan, by_rank(*replicas))
    return (finish.phase, finish.message.split()[0]) if finish else None


DONE, LOST = Outcome.SUCCEEDED, Outcome.FAILED
FAILED, SUCCEEDED = JobPhase.FAILED, JobPhase.SUCCEEDED


@pytest.mark.parametrize(
    ("tolerant", "trainers", "pserver", "finish"),
    [
        (True, (None, None), None, None),
        (True, (DONE, None), None, None),
        (True, (LOST, None), None, None),
        (True, (LOST, LOST), None, (FAILED, "trainersFailed")),
        (True, (DONE, DONE), None, (SUCCEEDED, "trainersDone")),
        (True, (DONE, LOST), None, (SUCCEEDED, "trainersDone")),
        (True, (None, None), LOST, (FAILED, "pserverRestartLimit")),
        (True, (DONE, DONE), LOST, (SUCCEEDED, "trainersDone")),
        (True, (LOST, LOST), LOST, (FAILED, "trainersFailed")),
        (False, (None, None), None, None),
        (False, (LOST, None), None, (FAILED, "trainersFailed")),
        (False, (DONE, LOST), None, (FAILED, "trainersFailed")),
        (False, (DONE, None), None, None),
        (False, (DONE, DONE), None, (SUCCEEDED, "trainersDone")),
        (False, (DONE, None), LOST, (FAILED, "pserverRestartLimit")),
    ],
)
def test_when_a_job_ends(
    trainers: tuple[Outcome | None, ...],
    pserver: Outcome | None,
    finish: tuple[JobPhase, str] | None,
    *,
    tolerant: bool,
) -> None:
    replicas = [ended(trainer(rank), how) if how else pod(trainer(rank)) for rank, how in enumerate(trainers)]
    serving = ended(P0, pserver) if pserver else pod(P0)
    assert finish_of(*replicas, serving, pod(P1), pod(MASTER), tolerant=tolerant) == finish
