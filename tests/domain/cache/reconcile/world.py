"""A model of cluster, runtime servers and controller, in which answers are lost and the controller dies at any step."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import count

from app.domain.cache.reconcile.cache_status import RuntimePod
from app.domain.cache.reconcile.needs import needs
from app.domain.cache.reconcile.sample_jobs import reconcile_job
from app.domain.cache.reconcile.sample_sets import STORAGE, reconcile_set
from app.domain.cache.reconcile.values import (
    CacheAction,
    Create,
    Delete,
    JobInputs,
    JobObserved,
    JobRecord,
    LabelNode,
    PostOptions,
    RuntimeStatus,
    Scale,
    ServerAnswer,
    SetInputs,
    SetObserved,
    SetRecord,
    Terminate,
)
from app.domain.cache.vocabulary import Found, Need, SampleJobPhase, ServerJobState, SetPart, SetPhase
from app.domain.kinds.samples.edits import frozen_changes
from app.domain.kinds.samples.specs.sample_job import SampleJobSpec
from app.domain.kinds.samples.specs.sample_set import SampleSetSpec
from tests.domain.cache.made import job_spec, set_spec
from tests.domain.cache.reconcile.made import summary

UID = "the-set"
_QUIET = 5  # turns without a change
_FOLLOWED = (SampleJobPhase.PENDING, SampleJobPhase.RUNNING)


@dataclass(slots=True)
class Server:
    """The server in one pod. A replacement of the pod starts without jobs."""

    index: int
    running: bool = False
    answers: bool = True
    jobs: dict[str, ServerJobState] = field(default_factory=dict)
    options: dict[str, str] = field(default_factory=dict)

    def answer(self, job: str) -> ServerAnswer:
        status = self.jobs.get(job, ServerJobState.NOT_POSTED) if self.answers else ServerJobState.UNKNOWN
        return ServerAnswer(index=self.index, status=status, message="as told")

    def step(self, broken: set[str]) -> None:
        """Run one job at a time, in their order."""
        for job, status in self.jobs.items():
            if status is ServerJobState.WAITING:
                self.jobs[job] = ServerJobState.RUNNING
                return
            if status is ServerJobState.RUNNING:
                self.jobs[job] = ServerJobState.FAIL if self.options[job] in broken else ServerJobState.SUCCESS
                return


@cache
def _spec(kind: str, terminate: bool) -> SampleJobSpec:  # noqa: FBT001 - a key
    return job_spec(kind, terminate=terminate)


@dataclass(slots=True)
class Job:
    """A SampleJob. `edits` counts how often its options have changed."""

    kind: str
    terminate: bool
    record: JobRecord = field(default_factory=JobRecord)
    edits: int = 0

    def digest(self, number: int) -> str:
        return f"job-{number}-{self.edits}"


@dataclass(slots=True)
class World:
    spec: SampleSetSpec = field(default_factory=set_spec)
    record: SetRecord = field(default_factory=SetRecord)
    deleted: bool = False
    gone: bool = False
    jobs: list[Job] = field(default_factory=list)
    objects: set[SetPart] = field(default_factory=set)
    replicas: int = 0
    servers: dict[int, Server] = field(default_factory=dict)
    labelled: dict[str, str] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    posted: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    """How often a server accepted new options, by options, job name and server."""
    lost: Counter[int] = field(default_factory=Counter)
    """How often a server has lost its jobs, by its index."""
    names: "count[int]" = field(default_factory=count)

    # what people do

    def edit(self, *, partitions: int | None = None, source: str | None = None) -> None:
        """Edit the spec, except for fields that are frozen now."""
        new = self.spec.model_copy(update={"partitions": partitions or self.spec.partitions})
        if source is not None:
            assert new.source is not None
            new = new.model_copy(update={"source": new.source.model_copy(update={"uri": source})})
        if not self.deleted and not frozen_changes(self.record, self.spec, new):
            self.spec = new

    @property
    def digest(self) -> str:
        return self.spec.source_uri

    # what the cluster does

    def step(self) -> None:
        for server in self.servers.values():
            if server.running:
                server.step(self.broken)
        wanted = self.replicas if SetPart.RUNTIME in self.objects else 0
        for server in self.servers.values():
            if not server.running:
                server.running = True
                return
        if len(self.servers) < wanted:
            index = min(set(range(wanted)) - self.servers.keys())
            self.servers[index] = Server(index)
        elif surplus := [index for index in self.servers if index >= wanted]:
            self.lose(max(surplus))

    def lose(self, index: int) -> None:
        """Lose a pod with its jobs."""
        if self.servers.pop(index, None) is not None:
            self.lost[index] += 1

    def _is_bound(self) -> bool:
        return all(part in self.objects for part in STORAGE)

    # what the controller sees

    def look(self) -> SetObserved:
        found = dict.fromkeys(self.objects, Found.OURS)
        has_runtime = SetPart.RUNTIME in self.objects
        ready = sum(server.running for server in self.servers.values()) if has_runtime else 0
        watched = SetObserved(
            found=found,
            volume_bound=self._is_bound(),
            runtime=RuntimeStatus(spec_replicas=self.replicas if has_runtime else 0, ready_replicas=ready),
            pods=tuple(
                RuntimePod(index=index, name=f"pod-{index}", node=f"n{index}", is_running=server.running)
                for index, server in sorted(self.servers.items())
            ),
            labelled=dict(self.labelled),
        )
        wanted = needs(self.spec, self.record, watched, deleted=self.deleted)
        first = self.servers.get(0)
        if Need.SYNC_OPTIONS in wanted:
            watched = replace(watched, digest=self.digest)
        if Need.SYNC_RESULT in wanted and first is not None and first.running:
            watched = replace(watched, sync=first.answer(self.record.sync_job))
        if Need.CACHE in wanted and self.servers and all(s.running and s.answers for s in self.servers.values()):
            watched = replace(watched, cache=summary())
        return watched

    def _look_for(self, job: Job, number: int) -> JobObserved:
        if self.gone:
            return JobObserved()
        running = [server for server in self.servers.values() if server.running]
        seen = JobObserved(set_uid=UID, is_leaving=self.deleted)
        if job.record.phase in _FOLLOWED:
            answers = [server.answer(job.record.job) for server in running if server.index in job.record.servers]
            has_runtime = SetPart.RUNTIME in self.objects
            return replace(seen, replicas=self.replicas if has_runtime else None, answers=tuple(answers))
        return replace(seen, running=tuple(server.index for server in running), digest=job.digest(number))

    # what the controller does

    def over_set(self, done: int | None = None) -> None:
        """Reconcile. The controller dies before the write (-1) or after this number of actions."""
        if self.gone:
            return
        inputs = SetInputs(
            spec=self.spec, deleted=self.deleted, record=self.record, observed=self.look(), fresh_name=self._name()
        )
        decision = reconcile_set(inputs)
        if done == -1:
            return
        self.record, self.gone = decision.record, decision.gone
        self._act(decision.actions[:done], self.digest)

    def over_job(self, number: int, done: int | None = None) -> None:
        job = self.jobs[number]
        inputs = JobInputs(
            spec=_spec(job.kind, job.terminate),
            record=job.record,
            observed=self._look_for(job, number),
            fresh_name=self._name(),
        )
        decision = reconcile_job(inputs)
        if done == -1:
            return
        job.record = decision.record
        self._act(decision.actions[:done], job.digest(number))

    def _name(self) -> str:
        return f"name-{next(self.names)}"

    def _act(self, actions: Sequence[CacheAction], options: str) -> None:
        """Perform an action as the actuator does: posts after a Terminate wait until all servers have answered."""
        posts = [action.job for action in actions if isinstance(action, PostOptions)]
        for action in actions:
            if isinstance(action, Terminate):
                assert not any(server.jobs.get(job) for server in self.servers.values() for job in posts)
                if not self._terminate():
                    return
            else:
                self._do(action, options)

    def _do(self, action: CacheAction, options: str) -> None:
        match action:
            case Create(part=part):
                if part is SetPart.RUNTIME and part not in self.objects:
                    self.replicas = self.spec.partitions
                self.objects.add(part)
            case Delete(part=part):
                self.objects.discard(part)
            case Scale(replicas=replicas):
                self.replicas = replicas
            case LabelNode(node=node, value=value):
                self.labelled.pop(node, None)
                self.labelled |= {node: value} if value else {}
            case PostOptions(job=job, servers=servers):
                for index in servers:
                    self._post(index, job, options)

    def _post(self, index: int, job: str, options: str) -> None:
        server = self.servers.get(index)
        if server is None or not server.running or not server.answers or job in server.jobs:
            return
        server.jobs[job], server.options[job] = ServerJobState.WAITING, options
        self.posted[options, job, index] += 1

    def _terminate(self) -> bool:
        running = [server for server in self.servers.values() if server.running]
        for server in running:
            for job, status in server.jobs.items():
                if server.answers and status in (ServerJobState.WAITING, ServerJobState.RUNNING):
                    server.jobs[job] = ServerJobState.FAIL
        return all(server.answers for server in running)

    # how it ends

    def heal(self, rounds: int = 200) -> None:
        """Continue without faults, with repairs by the user, until nothing changes any more."""
        for server in self.servers.values():
            server.answers = True
        quiet = 0
        for turn in range(rounds):
            before = self._state()
            self.turn(turn)
            quiet = quiet + 1 if before == self._state() else 0
            if quiet == _QUIET:
                return
        raise AssertionError(f"it does not come to rest: {self}")

    def _state(self) -> tuple[object, ...]:
        jobs = [job.record for job in self.jobs]
        servers = [(index, dict(server.jobs), server.running) for index, server in self.servers.items()]
        return self.record, jobs, servers, set(self.objects), dict(self.labelled), self.replicas, self.gone

    def turn(self, turn: int) -> None:
        """Run without faults."""
        self.step()
        self.over_set()
        if self.record.phase is SetPhase.SYNC_FAILED:
            self.edit(source=f"s3://mended-{turn}.example.com/x")
        for number, job in enumerate(self.jobs):
            self.over_job(number)
            if job.record.phase is SampleJobPhase.FAILED and not self.deleted:
                job.edits += 1
