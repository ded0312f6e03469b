"""A cluster and a controller for one job, as values: API server, kubelets, PostgreSQL and the actuator, no I/O.

    disturb ─▶ cluster ─▶ view (may lag) ─▶ reconcile ─▶ record ─▶ (crash?) ─▶ act on the cluster

`tests.support.model.reconcile_checks` checks every reconcile.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from app.domain.plan import JobPlan, Rank, ReplicaPlan
from app.domain.reconcile.actions import (
    Action,
    CaptureEvidence,
    ConfirmGone,
    CreatePod,
    DeletePod,
    EnsureObjects,
    MarkAnchor,
    ReadEvents,
    ReleasePod,
    RemoveObjects,
    WorkloadAction,
    WriteHosts,
)
from app.domain.reconcile.reconcile import reconcile
from app.domain.reconcile.timing import Timing
from app.domain.reconcile.values import Decision, Inputs
from app.domain.status.observed import (
    NO_QUEUE,
    ClusterRefusal,
    ObservedJob,
    ObservedPod,
    PendingReason,
    RefusalVerdict,
)
from app.domain.status.records import Attempt, HistoryEntry, Intent, JobStatus, Recorded, ScaleRecord
from app.domain.vocabulary import Evidence, PendingCode, Reason, ReplicaPhase
from tests.support.model.faults import Exit, Expectations, Faults
from tests.support.model.kueue import ModelKueue
from tests.support.model.pods import ModelPod
from tests.support.plans import T0, an_elastic_plan, next_record

GRACE = 30.0  # seconds, the default of Kubernetes
NODES = ("n1", "n2")


@dataclass(slots=True, kw_only=True)
class World:
    """One job, its cluster and its controller. `check` gets each decision before it is recorded."""

    plan: JobPlan
    timing: Timing = field(default_factory=Timing)
    check: Callable[["World", Inputs, Decision], None] = lambda _world, _inputs, _decision: None
    now: datetime = T0
    pods: dict[str, ModelPod] = field(default_factory=dict)
    lost_nodes: set[str] = field(default_factory=set)
    anchor: bool = False
    view: dict[str, ObservedPod] = field(default_factory=dict)
    in_flight: list[CreatePod] = field(default_factory=list)
    faults: Faults = field(default_factory=Faults)
    expectations: Expectations = field(default_factory=Expectations)
    exits: Sequence[Exit] = (Exit(0), Exit(1), Exit(2))  # possible ends of containers
    intent: Intent = field(default_factory=lambda: Intent(generation=1))
    recorded: Recorded = field(default_factory=lambda: Recorded(status=JobStatus(), replicas={}, created_at=T0))
    attempts: dict[tuple[Rank, int], Attempt] = field(default_factory=dict)
    history: list[HistoryEntry] = field(default_factory=list)
    uids: dict[tuple[Rank, int], set[str]] = field(default_factory=dict)
    requested: int = 0  # requests for another size
    scaled: list[ScaleRecord] = field(default_factory=list)  # the settled ones of them
    wanted: dict[Rank, ReplicaPlan] = field(default_factory=dict)  # every rank that was ever planned, in its last form
    kueue: ModelKueue | None = None
    forgiven: dict[Rank, int] = field(
        default_factory=dict
    )  # restarts and disruptions of ranks before they left and returned

    # The controller

    def inputs(self) -> Inputs:
        if not self.faults.lagging:
            self.sync()
        observed = ObservedJob(
            pods=tuple(self.view.values()),
            gone=frozenset(self.expectations.gone),
            refusals=dict(self.expectations.refusals),
            lost_nodes=frozenset(self.lost_nodes),
            pending_events=dict(self.expectations.pending_events),
            objects_gone=self.expectations.objects_gone,
            anchor_marked=self.expectations.anchor_marked,
            hosts_generation=self.expectations.hosts_generation,
            queue=self.kueue.observed() if self.kueue is not None else NO_QUEUE,
        )
        self.wanted.update(self.plan.replicas)
        return Inputs(
            plan=self.plan,
            intent=self.intent,
            recorded=self.recorded,
            observed=observed,
            now=self.now,
            timing=self.timing,
        )

    def reconcile(self, *, crash: bool = False, times: int = 1) -> Decision:
        """Reconcile, record the decision, and act on it `times` times. With `crash`, the controller dies first."""
        inputs = self.inputs()
        decision = reconcile(inputs)
        self._forgive(decision)
        self.check(self, inputs, decision)
        if decision.dirty:
            self._record(decision)
        if crash:
            self.restart_controller()
            return decision
        for _ in range(times):
            for action in decision.actions:
                self.act(action)
        return decision

    def _forgive(self, decision: Decision) -> None:
        for key, before in self.recorded.replicas.items():
            if before.leaving and not decision.replicas[key].leaving:
                self.forgiven[key] = self.forgiven.get(key, 0) + before.restarts + before.disruptions

    def _record(self, decision: Decision) -> None:
        names = {key: self.wanted[key].pod_name for key in decision.replicas}
        self.recorded = replace(next_record(self.recorded, decision), pod_names=names)
        self.scaled.extend(decision.scaled)
        self.history.extend(decision.history)
        for key, attempt in decision.ended:
            self.attempts[key, attempt.number] = attempt

    def request_size(self, index: int) -> None:
        """Request another size, which `index` selects."""
        size = 1 + index % 3
        before = sum(key.task == "worker" for key in self.plan.replicas)
        if "worker" in self.plan.elastic and before != size:
            self.plan = an_elastic_plan(self.plan, "worker", size)
            self.record_scale_request("worker", before, size)

    def record_scale_request(self, task: str, before: int, after: int) -> None:
        self.requested += 1
        record = ScaleRecord(
            seq=self.requested,
            task=task,
            from_replicas=before,
            to_replicas=after,
            actor="a client",
            reason="",
            requested_at=self.now,
        )
        self.recorded = replace(self.recorded, scaling=[*self.recorded.scaling, record])

    def set_paused(self, *, paused: bool) -> None:
        identity = self.plan.identity
        # A resume also activates the job, if Kueue has paused it.
        if not paused and self.recorded.status.reason is Reason.DEACTIVATED:
            identity = replace(identity, generation=identity.generation + 1)
        self.plan = replace(self.plan, paused=paused, identity=identity)

    def restart_controller(self) -> None:
        self.expectations = Expectations()
        self.faults.lagging = False
        self.sync()

    def go_blind(self) -> None:
        """Empty the view; the watch reports nothing of this job until `sync`."""
        self.faults.lagging = True
        self.view = {}

    def sync(self) -> None:
        """Update the view, as a watch that catches up."""
        self.view = {pod.uid: pod.seen(self.lost_nodes) for pod in self.pods.values()}

    # The actuator and the API server

    def act(self, action: Action) -> None:
        match action:
            case CreatePod():
                self._create(action)
            case DeletePod():
                self._delete(action)
            case ReleasePod():
                self._release(action)
            case CaptureEvidence():
                self._capture(action)
            case ConfirmGone():
                self._confirm(action)
            case ReadEvents():
                reason = PendingReason(code=PendingCode.UNSCHEDULABLE, message="0/2 nodes are available")
                self.expectations.pending_events[action.uid] = reason
            case WorkloadAction() if self.kueue is not None:
                self.kueue.act(action, self.plan, _pod_sets(self.running()))
            case _:
                self._act_on_objects(action)

    def _act_on_objects(self, action: Action) -> None:
        match action:
            case EnsureObjects():
                self.anchor = True
                self.expectations.objects_gone = False
            case WriteHosts():
                self.expectations.hosts_generation = self.plan.identity.generation
            case MarkAnchor():
                self.expectations.anchor_marked = True
            case RemoveObjects():
                self.anchor = False
                self.expectations.objects_gone = True

    def running(self) -> set[str]:
        """The names of the pods with processes, or that can still start some."""
        return {name for name, pod in self.pods.items() if not (pod.ended or pod.forced)}

    def _create(self, action: CreatePod) -> None:
        if self.kueue is not None and self.recorded.status.queueing is not None:
            names = self.running() | {self.wanted[action.key].pod_name}
            self.kueue.check_quota(_pod_sets(names))
        refusal = self.faults.refusals.get(action.key)
        if refusal is not None:
            self.expectations.refusals[action.key] = refusal
            return
        fault, self.faults.create = self.faults.create, ""
        if fault == "late":
            self.in_flight.append(action)
            return
        pod = self.arrive(action)
        if fault == "lost":
            return
        if pod is None:
            self.expectations.refusals[action.key] = ClusterRefusal(
                verdict=RefusalVerdict.WAIT, code=PendingCode.NAME_TERMINATING, message="not gone yet", since=self.now
            )
            return
        self.expectations.refusals.pop(action.key, None)
        self.view[pod.uid] = pod.seen(self.lost_nodes)

    def arrive(self, action: CreatePod) -> ModelPod | None:
        """Handle a create at the API server. Return the pod of the attempt, or None if its name is in use."""
        wanted = self.wanted[action.key]
        found = self.pods.get(wanted.pod_name)
        if found is not None:
            return found if found.attempt == action.attempt and not found.deleting else None
        known = self.uids.setdefault((action.key, action.attempt), set())
        uid = f"{action.key.task}{action.key.rank}-{action.attempt}-{len(known)}"
        known.add(uid)
        pod = ModelPod(name=wanted.pod_name, uid=uid, key=action.key, attempt=action.attempt, created_at=self.now)
        if wanted.template:
            pod.containers = tuple(container["name"] for container in wanted.template["spec"]["containers"])
        self.pods[pod.name] = pod
        return pod

    def land(self) -> None:
        """Deliver the delayed creates.

        A create whose attempt already had a pod is dropped, because no request outlives the lease of its sender.
        """
        flying, self.in_flight = self.in_flight, []
        for action in flying:
            if not self.uids.get((action.key, action.attempt)):
                self.arrive(action)

    def _delete(self, action: DeletePod) -> None:
        pod = self.pods.get(action.name)
        if pod is None or pod.uid != action.uid:
            return
        if action.force:
            pod.forced = True
        self.begin_deletion(pod)
        self._collect(pod)

    def begin_deletion(self, pod: ModelPod) -> None:
        """Mark the pod for deletion. With a node, it remains until its kubelet confirms the end."""
        if pod.deleting:
            return
        grace = 0.0 if pod.node is None or pod.ended or pod.forced else GRACE
        pod.deadline = self.now + timedelta(seconds=grace)
        if pod.node is None:
            pod.ended = True

    def _release(self, action: ReleasePod) -> None:
        pod = self.pods.get(action.name)
        if pod is not None and pod.uid == action.uid:
            pod.held = False
            self._collect(pod)

    def _collect(self, pod: ModelPod) -> None:
        if pod.deleting and not pod.held and (pod.ended or pod.forced):
            self.pods.pop(pod.name, None)

    def _capture(self, action: CaptureEvidence) -> None:
        evidence = self.faults.evidence
        replica = self.recorded.replicas.get(action.key)
        if evidence is Evidence.NONE or replica is None or replica.attempt.number != action.attempt:
            return
        has_log = evidence is Evidence.CAPTURED and action.failed_container in action.containers
        attempt = replace(replica.attempt, evidence=evidence, last_lines=("the last line",) if has_log else None)
        replicas = {**self.recorded.replicas, action.key: replace(replica, attempt=attempt)}
        self.recorded = replace(self.recorded, replicas=replicas)
        self.attempts[action.key, action.attempt] = attempt

    def _confirm(self, action: ConfirmGone) -> None:
        pod = self.pods.get(action.name)
        if pod is None or pod.uid != action.uid:
            self.expectations.gone.add(action.uid)
            return
        self.view[pod.uid] = pod.seen(self.lost_nodes)

    # The kubelets and other clients

    def kubelet(self, pod: ModelPod, code: int = 0, reason: str | None = None, message: str | None = None) -> None:
        """Advance the pod by one step: bound, started, ended with `code`. A pod that is being deleted ends at once."""
        if pod.node in self.lost_nodes:
            return
        if pod.ended:
            self._collect(pod)
        elif pod.deleting:
            pod.end(code or 143, self.now)
            self._collect(pod)
        elif pod.phase is ReplicaPhase.CREATING:
            pod.phase, pod.node = ReplicaPhase.PENDING, NODES[pod.key.rank % len(NODES)]
        elif pod.phase is ReplicaPhase.PENDING:
            pod.phase, pod.started_at = ReplicaPhase.RUNNING, self.now
        else:
            pod.end(code, self.now, reason, message)

    def foreign_delete(self, pod: ModelPod) -> None:
        self.begin_deletion(pod)
        self._collect(pod)

    def force_delete(self, pod: ModelPod) -> None:
        """Delete the pod with a grace period of 0, so that the API server does not wait for the kubelet."""
        pod.forced = True
        self.foreign_delete(pod)

    def evict(self, pod: ModelPod) -> None:
        """End the pod because of node pressure. The kubelet reports the reason, and no client deletes the pod."""
        if pod.node is not None and pod.node not in self.lost_nodes and not pod.ended:
            pod.disruption = "TerminationByKubelet"
            pod.end(137, self.now)

    def snatch(self, pod: ModelPod) -> None:
        """Remove the pod and its finalizers by force, as another client can.

        This requires a recorded uid: without one, nothing distinguishes the pod from one that never existed.
        """
        replica = self.recorded.replicas.get(pod.key)
        if replica is not None and replica.attempt.pod_uid == pod.uid:
            self.pods.pop(pod.name, None)

    def advance(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


def _pod_sets(names: Iterable[str]) -> Mapping[str, int]:
    """Count pods by pod set, which has the name of the task."""
    return Counter(name.split("-")[1] for name in names)
