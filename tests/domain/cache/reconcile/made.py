"""Short calls of the reconcile, and a cluster that performs every action."""

from dataclasses import dataclass, field, replace
from typing import Any

from app.domain.cache.reconcile.cache_status import CacheStatus, CacheSummary, RuntimePod
from app.domain.cache.reconcile.sample_jobs import reconcile_job
from app.domain.cache.reconcile.sample_sets import reconcile_set
from app.domain.cache.reconcile.values import (
    CacheAction,
    Create,
    Delete,
    JobDecision,
    JobInputs,
    JobObserved,
    JobRecord,
    LabelNode,
    PostOptions,
    RuntimeStatus,
    Scale,
    ServerAnswer,
    SetDecision,
    SetInputs,
    SetObserved,
    SetRecord,
    Terminate,
)
from app.domain.cache.vocabulary import Found, SampleJobPhase, ServerJobState, SetPart, SetPhase
from app.domain.kinds.samples.specs.sample_set import SampleSetSpec
from tests.domain.cache.made import job_spec, set_spec

ALL = frozenset(SetPart)
STORAGE = frozenset({SetPart.PV, SetPart.PVC})


def found(*parts: SetPart) -> dict[SetPart, Found]:
    return dict.fromkeys(parts or ALL, Found.OURS)


def summary(total: int = 100, cached: int = 10) -> CacheSummary:
    return CacheSummary(status=CacheStatus(disk_usage_rate="1.0%"), total_bytes=total, cached_bytes=cached)


def pods(*nodes: str, running: bool = True) -> tuple[RuntimePod, ...]:
    return tuple(
        RuntimePod(index=index, name=f"imagenet-runtime-{index}", node=node, is_running=running)
        for index, node in enumerate(nodes)
    )


def at_work(nodes: int = 2, **more: Any) -> SetObserved:
    """Return the observation of a set whose servers all run, each on a node of its own."""
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


def decide_set(
    phase: SetPhase, observed: SetObserved, *, deleted: bool = False, spec: dict[str, Any] | None = None, **record: Any
) -> SetDecision:
    kept = SetRecord(**{"phase": phase, "made": ALL, **record})
    return reconcile_set(
        SetInputs(spec=set_spec(**(spec or {})), deleted=deleted, record=kept, observed=observed, fresh_name="fresh")
    )


def decide_job(
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


def answers(*statuses: ServerJobState) -> tuple[ServerAnswer, ...]:
    return tuple(ServerAnswer(index=index, status=status, message=str(status)) for index, status in enumerate(statuses))


@dataclass(slots=True)
class Cluster:
    """A cluster that performs each action at once. A sync takes one reconcile."""

    observed: SetObserved = field(default_factory=SetObserved)
    posted: set[str] = field(default_factory=set)
    log: list[CacheAction] = field(default_factory=list)
    fails: bool = False

    def do(self, action: CacheAction) -> None:
        self.log.append(action)
        match action:
            case Create(part=part):
                self._found(part, Found.OURS)
                if part is SetPart.RUNTIME:
                    self._run(1)
            case Delete(part=part):
                self._found(part, Found.ABSENT)
                if part is SetPart.RUNTIME:
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
        bound = all(self.observed.of(part) is Found.OURS for part in STORAGE)
        has, good = record.sync_job in self.posted, ServerJobState.FAIL if self.fails else ServerJobState.SUCCESS
        sync = ServerAnswer(index=0, status=good if has else ServerJobState.NOT_POSTED)
        cache = summary() if self.observed.pods else None
        return replace(self.observed, volume_bound=bound, sync=sync, cache=cache, digest="d1")

    def _found(self, part: SetPart, what: Found) -> None:
        self.observed = replace(self.observed, found={**self.observed.found, part: what})

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
