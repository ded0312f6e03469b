"""DIJob's native status through lives on a model of cluster and controller: tests/data/di_job_native/<story>.json."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest

from app.domain.kinds.job_kind import Site, StatusFacts
from app.domain.plan import JobPlan, Manifest, Rank
from app.domain.status.failures import summarize_failures
from app.domain.status.observed import ObservedContainer
from app.domain.status.records import JobStatus, Replica, ScaleRecord, Transition
from app.domain.vocabulary import JobPhase, Outcome, Reason, ReplicaPhase
from tests.domain.kinds.di_job.test_golden import DATA, KIND, accept, identity
from tests.domain.kinds.di_job.test_validation import a_manifest, a_task
from tests.support.model.cluster import World
from tests.support.model.pods import ModelPod
from tests.support.model.reconcile_checks import check_reconcile
from tests.support.plans import T0, an_attempt
from tests.support.plugins.golden import Golden

MANIFEST = accept(a_manifest(a_task(type="learner"), a_task(type="collector", replicas=2), backoffLimit=1))
LEARNER, FIRST, SECOND, THIRD = Rank("learner", 0), *(Rank("collector", rank) for rank in range(3))


def ready(replica: Replica) -> Replica:
    """The model's containers have no readiness of their own: they are ready while they run."""
    containers = tuple(replace(one, ready=one.state == "running") for one in replica.attempt.containers)
    return replace(replica, attempt=replace(replica.attempt, containers=containers))


@dataclass
class Life:
    """A job's life step by step, a minute each, and the native status after each."""

    manifest: Manifest = field(default_factory=lambda: MANIFEST)
    generation: int = 1
    steps: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.world = World(plan=self._plan(), check=check_reconcile)
        self.steps.append({"after": "the submission", "status": self.status()})

    def _plan(self) -> JobPlan:
        who = replace(identity(self.manifest), generation=self.generation)
        return KIND.plan(KIND.read(self.manifest), who, resumed=False, site=Site())

    def status(self) -> dict[str, Any]:
        recorded = self.world.recorded
        replicas = [ready(replica) for replica in recorded.replicas.values()]
        facts = StatusFacts(
            status=recorded.status, replicas=replicas, created_at=recorded.created_at, reported={"fps": 120}
        )
        return KIND.native_status(KIND.read(self.manifest), facts)

    def then(self, after: str) -> dict[str, Any]:
        """The controller sees what has happened, and has done what follows from it within the minute."""
        for seconds in (30, 30):
            for _ in range(4):
                self.world.reconcile()
            self.world.advance(seconds)
        shown = self.status()
        self.steps.append({"after": after, "status": shown})
        return shown

    def pod(self, key: Rank) -> ModelPod:
        return next(pod for pod in self.world.pods.values() if pod.key == key)

    def kubelets(self, phase: ReplicaPhase) -> None:
        """Every pod comes at least as far as this."""
        order = [ReplicaPhase.CREATING, ReplicaPhase.PENDING, ReplicaPhase.RUNNING]
        for pod in list(self.world.pods.values()):
            while not pod.deleting and pod.phase in order and order.index(pod.phase) < order.index(phase):
                self.world.kubelet(pod)

    def run(self, after: str = "all pods have started") -> dict[str, Any]:
        self.kubelets(ReplicaPhase.RUNNING)
        return self.then(after)

    def resize(self, task: str, size: int) -> None:
        before = self.manifest["assigned"]["ranks"]
        self.manifest = KIND.resize(KIND.read(self.manifest), {task: size}).manifest
        self.generation += 1
        self.world.plan = self._plan()
        recorded = self.world.recorded
        record = ScaleRecord(
            seq=self.generation,
            task=task,
            from_replicas=len(before[task]),
            to_replicas=size,
            actor="somebody",
            reason="",
            requested_at=self.world.now,
        )
        self.world.recorded = replace(recorded, scaling=[*recorded.scaling, record])
        self.world.intent = replace(self.world.intent, generation=self.generation)


def started() -> Life:
    life = Life()
    life.then("the first passes")
    life.kubelets(ReplicaPhase.PENDING)
    life.then("all pods have a node")
    life.run()
    return life


def scaled() -> Life:
    life = started()
    life.resize("collector", 3)
    life.then("a request for a third collector")
    life.run("it has started")
    life.resize("collector", 1)
    life.then("a request for but one collector")
    for key in (SECOND, THIRD):
        life.world.kubelet(life.pod(key))
    life.then("the highest ranks have left")
    for key in (LEARNER, FIRST):
        life.pod(key).end(0, life.world.now)
    life.then("the others have succeeded")
    return life


def restarted() -> Life:
    life = started()
    life.pod(FIRST).end(1, life.world.now)
    life.then("a collector has failed")
    life.run("it runs again")
    life.world.evict(life.pod(SECOND))
    life.then("another has been evicted")
    life.run("it runs again")
    life.pod(LEARNER).end(3, life.world.now)
    life.then("the learner has failed, and the budget is spent")
    return life


STORIES: dict[str, Callable[[], Life]] = {"scaled": scaled, "restarted": restarted}


@pytest.mark.parametrize("story", STORIES)
def test_a_life(story: str, golden: Golden) -> None:
    golden(DATA.parent / "di_job_native" / f"{story}.json", STORIES[story]().steps)


@pytest.mark.parametrize("story", STORIES)
def test_the_condition_of_the_phase_is_the_only_one_that_is_true(story: str) -> None:
    for step in STORIES[story]().steps:
        status = step["status"]
        types = [condition["type"] for condition in status["conditions"]]
        holds = [condition["type"] for condition in status["conditions"] if condition["status"] == "True"]
        assert holds == [status["phase"]] == types[-1:]
        assert len(set(types)) == len(types)


def phases(life: Life) -> list[str]:
    return [step["status"]["phase"] for step in life.steps]


def test_restarts_and_reschedules_are_counted_apart() -> None:
    life = restarted()
    assert phases(life) == [
        "Pending",
        "Starting",
        "Starting",
        "Running",
        "Starting",
        "Running",
        "Starting",
        "Running",
        "Failed",
    ]
    types = [condition["type"] for condition in life.steps[-1]["status"]["conditions"]]
    assert types == ["Pending", "Restarting", "Rescheduling", "Starting", "Running", "Failed"]
    last = life.steps[-1]["status"]
    assert (last["restarts"], last["reschedules"]) == (1, 1)


def test_a_change_of_size_is_a_reschedule() -> None:
    life = scaled()
    assert phases(life)[3:] == ["Running", "Starting", "Running", "Rescheduling", "Running", "Succeeded"]
    last = life.steps[-1]["status"]
    assert (last["restarts"], last["reschedules"]) == (0, 2)


def test_an_ended_job_has_no_pods_to_count() -> None:
    last = scaled().steps[-1]["status"]
    assert "taskStatus" not in last
    assert (last["readyReplicas"], last["replicas"]) == (0, 2)
    assert last["completionTimestamp"].startswith("2030-01-01T")


def native(phase: JobPhase, reason: str = "", replicas: Sequence[Replica] = (), **more: Any) -> dict[str, Any]:
    seconds = [Transition(at=T0 + timedelta(seconds=1), phase=phase, reason=reason, message="words")]
    ended_by = summarize_failures(replica for replica in replicas if not replica.leaving)
    status = JobStatus(phase=phase, reason=reason, transitions=tuple(seconds), ended_by=ended_by, **more)
    return KIND.native_status(KIND.read(MANIFEST), StatusFacts(status=status, replicas=replicas, created_at=T0))


@pytest.mark.parametrize(
    ("phase", "reason", "word"),
    [
        (JobPhase.QUEUED, Reason.SUBMITTED, "Pending"),
        (JobPhase.CREATING, Reason.CREATING, "Pending"),
        (JobPhase.PENDING, Reason.CREATING, "Pending"),
        (JobPhase.RUNNING, Reason.STARTED, "Running"),
        (JobPhase.SCALING, Reason.SCALING, "Rescheduling"),
        (JobPhase.RESTARTING, Reason.RESTARTING, "Restarting"),
        (JobPhase.RESTARTING, Reason.DISRUPTED, "Rescheduling"),
        (JobPhase.PAUSED, Reason.PAUSED, "Pending"),
        (JobPhase.RESUMING, Reason.RESUMING, "Starting"),
        (JobPhase.SUCCEEDED, Reason.RULE_FULFILLED, "Succeeded"),
        (JobPhase.FAILED, Reason.RULE_FULFILLED, "Failed"),
        (JobPhase.TIMED_OUT, Reason.DEADLINE_EXCEEDED, "Failed"),
        (JobPhase.CANCELLED, Reason.CANCELLED, "Failed"),
        (JobPhase.UNKNOWN, Reason.NODE_LOST, "Unknown"),
    ],
)
def test_phase(phase: JobPhase, reason: str, word: str) -> None:
    shown = native(phase, reason)
    assert shown["phase"] == word
    assert shown["conditions"][-1]["type"] == word
    assert shown["conditions"][-1]["reason"] == f"Job{word}"


@pytest.mark.parametrize("phase", [JobPhase.CREATING, JobPhase.PENDING, JobPhase.QUEUED])
@pytest.mark.parametrize("seconds", [0, 1, 2])
def test_once_all_pods_are_created_the_job_is_starting(phase: JobPhase, seconds: int) -> None:
    shown = native(phase, initialized_at=T0 + timedelta(seconds=seconds))
    assert shown["phase"] == "Starting"
    assert [(condition["type"], condition["status"]) for condition in shown["conditions"]] == [
        ("Pending", "False"),
        ("Starting", "True"),
    ]
    assert shown["conditions"][1]["message"] == "job is starting since all pods are created."


@pytest.mark.parametrize(
    ("phase", "reason", "seconds", "word"),
    [
        (JobPhase.RESTARTING, Reason.RESTARTING, None, "Restarting"),
        (JobPhase.RESTARTING, Reason.RESTARTING, 0, "Restarting"),  # that was an earlier restart
        (JobPhase.RESTARTING, Reason.RESTARTING, 1, "Starting"),
        (JobPhase.RESTARTING, Reason.DISRUPTED, 2, "Starting"),
        (JobPhase.SCALING, Reason.SCALING, None, "Rescheduling"),
        (JobPhase.SCALING, Reason.SCALING, 2, "Starting"),
        (JobPhase.RUNNING, Reason.STARTED, 2, "Running"),
        (JobPhase.UNKNOWN, Reason.NODE_LOST, 2, "Unknown"),
        # Before the job first ran.
        (JobPhase.PENDING, Reason.RESTARTING, None, "Restarting"),
        (JobPhase.CREATING, Reason.DISRUPTED, None, "Rescheduling"),
        (JobPhase.PENDING, Reason.WAITING_FOR_PODS, None, "Starting"),
    ],
)
def test_once_all_pods_are_created_again_the_job_is_starting(
    phase: JobPhase, reason: str, seconds: int | None, word: str
) -> None:
    restored = None if seconds is None else T0 + timedelta(seconds=seconds)
    shown = native(phase, reason, initialized_at=T0, restored_at=restored)
    assert shown["phase"] == word
    held = [condition["type"] for condition in shown["conditions"] if condition["status"] == "True"]
    assert held == [word]


@pytest.mark.parametrize(
    ("phase", "reason", "message"),
    [
        (JobPhase.FAILED, Reason.RULE_FULFILLED, "job failed: words"),
        (JobPhase.TIMED_OUT, Reason.DEADLINE_EXCEEDED, "job failed: words"),
        (JobPhase.SUCCEEDED, Reason.RULE_FULFILLED, "job succeeded since all the replicas are succeeded."),
        (JobPhase.SCALING, Reason.SCALING, "job is rescheduling since replicas changed: words"),
        (JobPhase.RESTARTING, Reason.DISRUPTED, "job is rescheduling since pods were taken away: words"),
        (JobPhase.RESTARTING, Reason.RESTARTING, "job is restarting since pods failed: words"),
    ],
)
def test_messages(phase: JobPhase, reason: str, message: str) -> None:
    assert native(phase, reason)["conditions"][-1]["message"] == message


@pytest.mark.parametrize(
    ("outcomes", "message"),
    [
        (
            [Outcome.FAILED, Outcome.SUCCEEDED, Outcome.FAILED],
            (
                "job failed since 2 pods failed. and exceed backoff limit: job-learner-0 failed in attempt 1; "
                "job-collector-1 failed in attempt 1"
            ),
        ),
        (
            [Outcome.DISRUPTED, Outcome.FAILED],
            (
                "job failed since 1 pods failed. and exceed backoff limit: "
                "job-learner-0 was taken away in attempt 1; job-collector-0 failed in attempt 1"
            ),
        ),
        ([Outcome.DISRUPTED], "job failed: job-learner-0 was taken away in attempt 1"),
    ],
)
def test_the_message_of_a_failure_has_the_number_and_names_of_pods(outcomes: list[Outcome], message: str) -> None:
    ended = [
        Replica(key=key, attempt=an_attempt(key=key, outcome=outcome), settled=True)
        for key, outcome in zip((LEARNER, FIRST, SECOND), outcomes, strict=False)
    ]
    left = Replica(key=THIRD, attempt=an_attempt(key=THIRD, outcome=Outcome.FAILED), settled=True, leaving=True)
    shown = native(JobPhase.FAILED, Reason.RULE_FULFILLED, replicas=[*ended, left])
    assert shown["conditions"][-1]["message"] == message


def container(name: str, *, is_ready: bool, init: bool = False) -> ObservedContainer:
    return ObservedContainer(name=name, state="running", ready=is_ready, init=init)


@pytest.mark.parametrize(
    ("containers", "counted"),
    [
        ([container("a", is_ready=True), container("b", is_ready=True)], 1),
        ([container("a", is_ready=True), container("b", is_ready=False)], 0),
        ([container("a", is_ready=True), container("i", is_ready=False, init=True)], 1),
        ([], 0),
    ],
)
def test_pods_are_counted_as_ready_not_containers(containers: list[ObservedContainer], counted: int) -> None:
    replica = Replica(key=LEARNER, attempt=an_attempt(key=LEARNER, containers=tuple(containers)))
    status = JobStatus(phase=JobPhase.RUNNING)
    shown = KIND.native_status(KIND.read(MANIFEST), StatusFacts(status=status, replicas=[replica], created_at=T0))
    assert shown["readyReplicas"] == counted
    assert shown["taskStatus"] == {"learner": {"Running": 1}, "collector": {}}


def test_an_ended_pod_of_a_removed_rank_is_not_counted() -> None:
    attempt = an_attempt(key=SECOND, phase=ReplicaPhase.SUCCEEDED, outcome=Outcome.SUCCEEDED)
    done = Replica(key=SECOND, attempt=attempt, settled=True)
    for replica, counted in ((done, {"Succeeded": 1}), (replace(done, leaving=True), {})):
        assert native(JobPhase.RUNNING, replicas=[replica])["taskStatus"]["collector"] == counted


def test_what_the_pods_have_reported_is_shown() -> None:
    assert Life().steps[0]["status"]["profilings"] == {"fps": 120}
    assert native(JobPhase.QUEUED)["profilings"] == {}
