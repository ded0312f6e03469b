"""TrainingJobs through lives on a model of cluster and controller: tests/data/training_job_native/life_<story>.json."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from app.domain.kinds.job_kind import Limits, Site, StatusFacts
from app.domain.kinds.training_job import TrainingJobKind
from app.domain.plan import JobPlan, Manifest, Rank
from app.domain.status.records import ScaleRecord
from app.domain.vocabulary import JobPhase, ReplicaPhase
from tests.domain.kinds.training_job.test_golden import DATA, identity, load
from tests.support.model.cluster import World
from tests.support.model.pods import ModelPod
from tests.support.model.reconcile_checks import check_reconcile
from tests.support.plans import GIVEN
from tests.support.plugins.golden import Golden

KIND = TrainingJobKind()
TRAINERS = [Rank("trainer", rank) for rank in range(4)]
PSERVER = Rank("pserver", 1)
PASSES = 4  # more than one event leads to


def manifest_of(**spec: Any) -> Manifest:
    manifest = load("example_job")
    manifest["metadata"]["name"] = "job"
    return KIND.accept({**manifest, "spec": {**manifest["spec"], **spec}}, Limits(), GIVEN).manifest


@dataclass
class Life:
    """A job's life step by step, a minute each, and the native status after each."""

    manifest: Manifest
    generation: int = 1
    steps: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.world = World(plan=self._plan(), check=check_reconcile)
        self._add_step("the submission")

    def _plan(self) -> JobPlan:
        who = replace(identity(self.manifest), generation=self.generation)
        return KIND.plan(KIND.read(self.manifest), who, resumed=False, site=Site(pserver_restart_limit=3))

    def then(self, after: str) -> None:
        """The controller sees what has happened, and has done what follows from it within the minute."""
        for seconds in (30, 30):
            for _ in range(PASSES):
                self.world.reconcile()
            self.world.advance(seconds)
        self._add_step(after)

    def _add_step(self, after: str) -> None:
        recorded = self.world.recorded
        facts = StatusFacts(
            status=recorded.status,
            replicas=list(recorded.replicas.values()),
            scale_records=sorted([*self.world.scaled, *recorded.scaling], key=lambda one: one.seq),
            created_at=recorded.created_at,
        )
        self.steps.append({"after": after, "status": KIND.native_status(KIND.read(self.manifest), facts)})

    def pods(self, *keys: Rank) -> Iterator[ModelPod]:
        yield from [pod for pod in self.world.pods.values() if pod.key in keys]

    def start(self, after: str) -> None:
        for _ in range(2):
            for pod in list(self.world.pods.values()):
                if pod.phase is not ReplicaPhase.RUNNING and not pod.ended and not pod.deleting:
                    self.world.kubelet(pod)
        self.then(after)

    def stop(self, after: str) -> None:
        """The kubelets stop what was asked to go."""
        for pod in list(self.world.pods.values()):
            if pod.deleting:
                self.world.kubelet(pod)
        self.then(after)

    def end(self, code: int, *keys: Rank) -> None:
        for pod in self.pods(*keys):
            pod.end(code, self.world.now)

    def resize(self, size: int, after: str) -> None:
        before = self.manifest["assigned"]["trainers"]
        self.manifest = KIND.resize(KIND.read(self.manifest), {"trainer": size}).manifest
        self.generation += 1
        self.world.plan = self._plan()
        recorded = self.world.recorded
        record = ScaleRecord(
            seq=self.generation,
            task="trainer",
            from_replicas=before,
            to_replicas=size,
            actor="somebody",
            reason="",
            requested_at=self.world.now,
        )
        self.world.recorded = replace(recorded, scaling=[*recorded.scaling, record])
        self.world.intent = replace(self.world.intent, generation=self.generation)
        self.then(after)


def started(**spec: Any) -> Life:
    life = Life(manifest_of(**spec))
    life.then("the first passes")
    life.start("all pods have started")
    return life


def scaled() -> Life:
    life = started()
    life.resize(4, "a request for four trainers")
    life.resize(3, "a request for three, before the fourth has started")
    life.start("the third has started")
    life.stop("the fourth has left")
    life.end(0, *TRAINERS[:2])
    life.then("two trainers are done")
    life.end(0, TRAINERS[2])
    life.then("the last trainer is done")
    life.stop("the others have stopped")
    return life


def a_pserver_too_often() -> Life:
    life = started()
    for times in ("once", "twice", "three times"):
        life.end(1, PSERVER)
        life.then(f"a pserver has exited {times}")
        life.start("it is started again, if it may be")
    life.stop("the others have stopped")
    return life


def plain_failure() -> Life:
    life = started(fault_tolerant=False, trainer={"min-instance": 2})
    life.end(1, TRAINERS[1])
    life.then("a trainer has failed")
    life.stop("the others have stopped")
    return life


def walltime() -> Life:
    life = started(annotations={"walltime": "80"})
    life.then("the time is over")
    life.stop("the others have stopped")
    return life


def ended_while_scaling() -> Life:
    """Upstream's pending change of size hid every end of a job."""
    life = started()
    life.resize(4, "a request for four trainers")
    life.start("all four have started")
    life.resize(2, "a request for two, before the others have left")
    life.end(0, *TRAINERS[:2])
    life.then("the two are done")
    life.stop("the others have stopped")
    return life


def walltime_while_scaling() -> Life:
    life = started(annotations={"walltime": 130})
    life.resize(4, "a request for four trainers, for which there is no room")
    life.then("the time is over")
    life.stop("the others have stopped")
    return life


STORIES: dict[str, tuple[Callable[[], Life], JobPhase]] = {
    "scaled": (scaled, JobPhase.SUCCEEDED),
    "pserver_limit": (a_pserver_too_often, JobPhase.FAILED),
    "plain_failure": (plain_failure, JobPhase.FAILED),
    "walltime": (walltime, JobPhase.TIMED_OUT),
    "ended_while_scaling": (ended_while_scaling, JobPhase.SUCCEEDED),
    "walltime_while_scaling": (walltime_while_scaling, JobPhase.TIMED_OUT),
}


@pytest.mark.parametrize("story", STORIES)
def test_a_story(story: str, golden: Golden) -> None:
    play, end = STORIES[story]
    life = play()
    golden(DATA.parent / "training_job_native" / f"life_{story}.json", life.steps)
    assert life.world.recorded.status.phase is end
    assert life.steps[-1]["status"]["released"]


def test_scaling_does_not_change_the_remaining_trainers() -> None:
    life = started()
    before = {pod.key: pod.uid for pod in life.pods(*TRAINERS[:2])}
    life.resize(4, "more")
    life.start("they have started")
    life.resize(2, "fewer")
    life.stop("they have left")
    assert {pod.key: pod.uid for pod in life.world.pods.values() if pod.key.task == "trainer"} == before
