"""Short ways to say a pass over a set or a job, and a cluster that does what it is told."""

from dataclasses import dataclass, field, replace
from typing import Any

from app.domain.cache.reconcile.sample_jobs import reconcile_job
from app.domain.cache.reconcile.sample_sets import reconcile_set
from app.domain.cache.reconcile.values import (
    Action,
    Create,
    Delete,
    JobDecision,
    JobInputs,
    JobObserved,
    JobRecord,
    LabelNode,
    PostOptions,
    RuntimePod,
    RuntimeStatus,
    Scale,
    ServerAnswer,
    SetDecision,
    SetInputs,
    SetObserved,
    SetRecord,
    Terminate,
)
from app.domain.cache.sample_set import SampleSetSpec
from app.domain.cache.status import CacheStatus, CacheSummary
from app.domain.cache.vocabulary import Found, Resource, ResultStatus, SampleJobPhase, SetPhase
from tests.domain.cache.made import job_spec, set_spec

ALL = frozenset(Resource)
STORAGE = frozenset({Resource.PV, Resource.PVC})


def found(*resources: Resource) -> dict[Resource, Found]:
    return dict.fromkeys(resources or ALL, Found.OURS)


def summary(total: int = 100, cached: int = 10) -> CacheSummary:
    return CacheSummary(status=CacheStatus(disk_usage_rate="1.0%"), total_bytes=total, cached_bytes=cached)


def pods(*nodes: str, running: bool = True) -> tuple[RuntimePod, ...]:
    return tuple(
        RuntimePod(index=index, name=f"imagenet-runtime-{index}", node=node, is_running=running)
        for index, node in enumerate(nodes)
    )


def at_work(nodes: int = 2, **more: Any) -> SetObserved:
    """A set whose servers all run, on as many nodes."""
    names = [f"n{index}" for index in range(nodes)]
    given: dict[str, Any] = {
        "found": found(),
        "volume_bound": True,
        "runtime": RuntimeStatus(spec_replicas=nodes, ready_replicas=nodes),
        "pods": pods(*names),
        "labelled": {name: f"imagenet-runtime-{index}" for index, name in enumerate(names)},
        "cache": summary(),
        "digest": "d1",
    }
    return SetObserved(**{**given, **more})


def a_pass(
    phase: SetPhase, observed: SetObserved, *, deleted: bool = False, spec: dict[str, Any] | None = None, **record: Any
) -> SetDecision:
    kept = SetRecord(**{"phase": phase, "made": ALL, **record})
    return reconcile_set(
        SetInputs(spec=set_spec(**(spec or {})), deleted=deleted, record=kept, observed=observed, fresh_name="fresh")
    )


def a_job_pass(
    kind: str,
    observed: JobObserved,
    phase: SampleJobPhase = SampleJobPhase.NONE,
    *,
    terminate: bool = False,
    **record: Any,
) -> JobDecision:
    kept = JobRecord(phase=phase, **{"set_uid": "u" if phase else "", **record})
    return reconcile_job(
        JobInputs(spec=job_spec(kind, terminate=terminate), record=kept, observed=observed, fresh_name="fresh")
    )


def answers(*statuses: ResultStatus) -> tuple[ServerAnswer, ...]:
    return tuple(ServerAnswer(index=index, status=status, message=str(status)) for index, status in enumerate(statuses))


@dataclass(slots=True)
class Cluster:
    """Does each action at once; servers sync in one pass, and all nodes are free."""

    observed: SetObserved = field(default_factory=SetObserved)
    posted: set[str] = field(default_factory=set)
    log: list[Action] = field(default_factory=list)
    fails: bool = False

    def do(self, action: Action) -> None:
        self.log.append(action)
        match action:
            case Create(resource=resource):
                self._found(resource, Found.OURS)
                if resource is Resource.RUNTIME:
                    self._run(1)
            case Delete(resource=resource):
                self._found(resource, Found.ABSENT)
                if resource is Resource.RUNTIME:
                    self._run(0)
            case Scale(replicas=replicas):
                self._run(replicas)
            case LabelNode(node=node, value=value):
                labelled = {name: pod for name, pod in self.observed.labelled.items() if name != node}
                self.observed = replace(self.observed, labelled=labelled | ({node: value} if value else {}))
            case PostOptions(job=job):
                self.posted.add(job)
            case Terminate():
                self.posted.clear()

    def look(self, record: SetRecord) -> SetObserved:
        bound = all(self.observed.of(resource) is Found.OURS for resource in STORAGE)
        has, good = record.sync_job in self.posted, ResultStatus.FAIL if self.fails else ResultStatus.SUCCESS
        sync = ServerAnswer(index=0, status=good if has else ResultStatus.NOT_POSTED)
        cache = summary() if self.observed.pods else None
        return replace(self.observed, volume_bound=bound, sync=sync, cache=cache, digest="d1")

    def _found(self, resource: Resource, what: Found) -> None:
        self.observed = replace(self.observed, found={**self.observed.found, resource: what})

    def _run(self, replicas: int) -> None:
        self.observed = replace(
            self.observed,
            runtime=RuntimeStatus(spec_replicas=replicas, ready_replicas=replicas),
            pods=pods(*(f"n{index}" for index in range(replicas))),
        )


def next_record(cluster: Cluster, record: SetRecord, spec: SampleSetSpec, name: str, *, deleted: bool) -> SetDecision:
    return reconcile_set(
        SetInputs(spec=spec, deleted=deleted, record=record, observed=cluster.look(record), fresh_name=name)
    )
