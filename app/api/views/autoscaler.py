"""The views of the autoscaler's runs and dry runs, limited to the namespaces that the caller may see."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from app.api.views.base import Int32, NextPageToken, View
from app.db.jobs.autoscaler_runs import AutoscalerRun, StoredRun
from app.domain.access.namespaces import NamespaceSet
from app.domain.scaling.values import Inventory, NodeCapacity, ResourceAmount, ScalableJob, ScalingDecision, Verdict
from app.domain.vocabulary import JobPhase
from app.services.reading.autoscaling import AutoscalerDryRun

# The message of the cluster may name hosts and namespaces.
_UNREADABLE: Final = "the cluster could not be read"


class AmountView(View):
    """An amount of resources."""

    cpu_milli: int
    memory_mega: int
    """Units of 10^6 bytes."""
    gpu: int


class NodeRoomView(View):
    """The free capacity of a node."""

    name: str
    free: AmountView
    """Allocatable resources minus the requests of its pods."""
    slots: Int32
    """The number of further pods that fit."""
    closed: str | None
    """Why the autoscaler plans no pods for this node; null if it does."""


class CapacityView(View):
    """Total and requested resources of the nodes that accept pods."""

    total: AmountView
    requested: AmountView
    """Requests of the pods on these nodes, and of pods without a node."""
    nodes: Int32
    open_nodes: Int32
    unbound_pods: Int32
    namespaces: list[str]
    """The namespaces whose pods the controller observes; empty means all."""


class ScalingDecisionView(View):
    """A decision about one job, and the values that it is based on."""

    uid: UUID
    namespace: str
    name: str
    phase: JobPhase
    task: str
    from_replicas: Int32
    to_replicas: Int32
    min_replicas: Int32
    max_replicas: Int32
    request: AmountView
    """The requests of one replica."""
    verdict: Verdict
    message: str
    applied: bool
    """Whether the job was resized."""
    refusal: str | None
    """Why an intended resize was not applied; null otherwise."""


class WaitingJobView(View):
    """A job that waits for free capacity."""

    namespace: str
    name: str
    uid: UUID


class AutoscalerSettingsView(View):
    """The controller's autoscaler settings at the time of the run."""

    enabled: bool
    """If false, the autoscaler only records its decisions and resizes no job."""
    max_load: float
    period_seconds: float
    freeze_seconds: float


class AutoscalerRunView(View):
    """One run: the cluster and the jobs as observed, and the decisions."""

    id: int
    at: datetime
    settings: AutoscalerSettingsView
    error: str | None
    """Why the run made no decision; null otherwise. Only admins of all namespaces get the message of the cluster."""
    capacity: CapacityView | None
    """Null if the cluster could not be read, or if the caller is not an admin of all namespaces."""
    waiting: list[WaitingJobView]
    """Jobs that do not start because the cluster has too little free capacity."""
    decisions: list[ScalingDecisionView]


class AutoscalerPage(View):
    """A page of the autoscaler's runs."""

    enabled: bool
    """Whether the autoscaler resizes jobs, according to the newest run on this page; false if the page is empty."""
    settings: AutoscalerSettingsView | None
    items: list[AutoscalerRunView]
    """Newest first."""
    next_page_token: NextPageToken


class RehearsalView(View):
    """The decisions of a dry run on the last observed cluster and jobs. A dry run changes nothing."""

    observed_at: datetime
    age_seconds: float
    max_load: float
    capacity: CapacityView
    nodes: list[NodeRoomView]
    waiting: list[WaitingJobView]
    decisions: list[ScalingDecisionView]


def page_view(
    runs: Sequence[StoredRun], seen: NamespaceSet, next_page_token: str | None, *, administers: bool
) -> AutoscalerPage:
    """Return the page. Only a caller that `administers` all namespaces gets the capacity and whole errors."""
    settings = _settings(runs[0].run) if runs else None
    return AutoscalerPage(
        enabled=settings is not None and settings.enabled,
        settings=settings,
        items=[_run(stored, seen, administers=administers) for stored in runs],
        next_page_token=next_page_token,
    )


def _run(stored: StoredRun, seen: NamespaceSet, *, administers: bool) -> AutoscalerRunView:
    run = stored.run
    error = run.error if administers or not run.error else _UNREADABLE
    return AutoscalerRunView(
        id=stored.id,
        at=run.at,
        settings=_settings(run),
        error=error or None,
        capacity=_capacity(run.inventory) if run.inventory is not None and administers else None,
        waiting=_waiting(run, seen),
        decisions=_decisions(run, seen),
    )


def rehearsal_view(found: AutoscalerDryRun, seen: NamespaceSet) -> RehearsalView:
    inventory = found.run.inventory or Inventory()
    return RehearsalView(
        observed_at=found.observed_at,
        age_seconds=found.age,
        max_load=found.run.max_load,
        capacity=_capacity(inventory),
        nodes=[_node(node) for node in inventory.nodes],
        waiting=_waiting(found.run, seen),
        decisions=_decisions(found.run, seen),
    )


def _waiting(run: AutoscalerRun, seen: NamespaceSet) -> list[WaitingJobView]:
    return [
        WaitingJobView(namespace=job.namespace, name=job.name, uid=UUID(job.uid))
        for job in run.pending
        if job.namespace in seen
    ]


def _decisions(run: AutoscalerRun, seen: NamespaceSet) -> list[ScalingDecisionView]:
    jobs = {job.uid: job for job in run.jobs}
    return [_decision(decision, jobs[decision.uid]) for decision in run.decisions if decision.namespace in seen]


def _decision(decision: ScalingDecision, job: ScalableJob) -> ScalingDecisionView:
    return ScalingDecisionView(
        uid=UUID(decision.uid),
        namespace=decision.namespace,
        name=decision.name,
        phase=job.phase,
        task=decision.task,
        from_replicas=decision.from_replicas,
        to_replicas=decision.to_replicas,
        min_replicas=job.least,
        max_replicas=job.most,
        request=_amount(job.need),
        verdict=decision.verdict,
        message=decision.message,
        applied=decision.applied,
        refusal=decision.refusal or None,
    )


def _settings(run: AutoscalerRun) -> AutoscalerSettingsView:
    return AutoscalerSettingsView(
        enabled=run.enabled, max_load=run.max_load, period_seconds=run.period_seconds, freeze_seconds=run.freeze_seconds
    )


def _capacity(found: Inventory) -> CapacityView:
    return CapacityView(
        total=_amount(found.total),
        requested=_amount(found.requested),
        nodes=len(found.nodes),
        open_nodes=sum(node.open for node in found.nodes),
        unbound_pods=found.unbound_pods,
        namespaces=list(found.namespaces),
    )


def _node(node: NodeCapacity) -> NodeRoomView:
    return NodeRoomView(name=node.name, free=_amount(node.free), slots=node.slots, closed=node.closed or None)


def _amount(found: ResourceAmount) -> AmountView:
    return AmountView(cpu_milli=found.cpu, memory_mega=found.memory, gpu=found.gpu)
