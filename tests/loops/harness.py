"""The classes of the controller on real Postgres and the embedded API server, with a kubelet that the test drives.

test ── jobs ────────────▶ Postgres ◀─────── Reconciler, Creator, EvidenceCapture, Janitor, Term
  └──── Kubelet, faults ─▶ API server ◀──────┘
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from typing_extensions import override

from app.base.backoff import ExponentialBackoff
from app.base.clock import InstallationClock, SystemClock
from app.db.feed.publisher import Publisher
from app.db.installation.timekeeper import Timekeeper
from app.db.jobs.controller import StoredJob
from app.db.postgres.engine import Database
from app.db.postgres.notifications import Listener, Notifier
from app.db.postgres.timeouts import DatabaseTimeouts
from app.domain.kubernetes import labels
from app.domain.manifests.rendered import reserved_names
from app.domain.planning import Planner
from app.domain.reconcile.actions import Action
from app.domain.reconcile.timing import Timing
from app.k8s.api import KubeApi
from app.k8s.connection import connect as connect_api
from app.k8s.watching.reflector import Pace, Reflector
from app.loops.cache.runtime_servers import PodProxyAccess, RuntimeServers
from app.loops.context import ControllerContext
from app.loops.controller_settings import ControllerSettings, EvidenceSettings, QueueMode, SampleSettings
from app.loops.jobs.actions.actuator import Actuator
from app.loops.jobs.actions.captures import Captures
from app.loops.jobs.actions.creator import Creator
from app.loops.jobs.actions.pods import PodActions
from app.loops.jobs.actions.remover import Remover
from app.loops.jobs.actions.work import Work
from app.loops.jobs.actions.workloads import WorkloadActions
from app.loops.jobs.evidence.attempts import EvidenceCapture
from app.loops.jobs.evidence.event_lists import EventLists
from app.loops.jobs.evidence.pending_pods import EventReader
from app.loops.jobs.evidence.whole_logs import WholeLogs
from app.loops.jobs.expectations import Expectations
from app.loops.jobs.mirror import GuardedSource, Mirror
from app.loops.jobs.plan_cache import PlanCache
from app.loops.jobs.queues import QueueMirror
from app.loops.jobs.reconciler import Hooks, Reconciler
from app.loops.leadership.lease import Leadership
from app.loops.leadership.own_cluster import OwnCluster
from app.loops.workqueue import WorkQueue
from tests.db.factories import new_job, stored, submitted
from tests.loops.kubelet import Kubelet, a_kubelet
from tests.support.clusters.kube import Cluster, KubeClient, connect
from tests.support.gateways.gateway import manifest
from tests.support.waiting import until

KEY = b"k" * 32
WITHIN = 90.0  # seconds until a condition that a test waits for must hold, on a busy machine
LEASE_SECONDS = 600.0
LOG_BYTES = 64


class SkippingClock(SystemClock):
    """The machine's clock, and what the test has skipped."""

    def __init__(self) -> None:
        self._skipped = 0.0

    def skip(self, seconds: float) -> None:
        self._skipped += seconds

    @override
    def now(self) -> datetime:
        return super().now() + timedelta(seconds=self._skipped)

    @override
    def monotonic(self) -> float:
        return super().monotonic() + self._skipped


@dataclass(slots=True, kw_only=True)
class Harness:
    """One installation in a namespace of its own.

    `verify_error` is raised instead of verifying the cluster. `quiet` has the uids that the reconciler reported.
    """

    context: ControllerContext
    leadership: Leadership
    kube: KubeClient
    kubelet: Kubelet
    namespace: str
    clock: SkippingClock
    queue: WorkQueue
    mirror: Mirror
    queues: QueueMirror
    creator: Creator
    evidence: EvidenceCapture
    actuator: Actuator
    reconciler: Reconciler
    plans: PlanCache
    verify_error: list[Exception] = field(default_factory=list)
    quiet: list[str] = field(default_factory=list)

    @property
    def db(self) -> Database:
        return self.context.db

    @property
    def installation(self) -> str:
        return str(self.context.installation_id)

    @property
    def path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}"

    async def submit(self, name: str = "train", **spec: Any) -> UUID:
        """Store an accepted GenericJob, and queue it."""
        planner = Planner(installation=self.installation)
        draft = planner.draft(manifest(name, **spec), self.namespace, str)
        job = new_job(
            name,
            namespace=self.namespace,
            manifest=draft.manifest,
            created_at=self.clock.now(),
            names=tuple(reserved_names(planner.plan(draft.accepted, ""))),
        )
        (uid,) = await submitted(self.db, job)
        self.queue.add(str(uid))
        return uid

    def reconcile_with(self, db: Database) -> None:
        """Give the reconciler another way to the database."""
        context = replace(self.context, db=db)
        self.reconciler = Reconciler(
            context,
            self.leadership,
            self.mirror,
            self.creator,
            self.actuator,
            self.plans,
            self.queue,
            hooks=hooks(self.quiet.append),
        )

    async def work(
        self, uid: UUID, *actions: Action, expectations: Expectations | None = None, established: bool = False
    ) -> Work:
        """What the reconciler would give to the actuator."""
        plan = self.plans.plan(await stored(self.db, uid))
        return Work(
            plan=plan,
            actions=actions,
            expectations=expectations or Expectations(),
            revision_before=0,
            established=established,
            anchors=(),
        )

    @asynccontextmanager
    async def reconciling(self) -> AsyncIterator[None]:
        """Follow the cluster and reconcile what is queued while the block runs."""
        async with asyncio.TaskGroup() as group:
            loops = [group.create_task(run()) for run in (self.mirror.run, self.queue.run)]
            await self.mirror.wait_synced()
            loops.append(group.create_task(self.reconciler.run()))
            try:
                yield
            finally:
                for loop in loops:
                    loop.cancel()

    async def job_until(self, uid: UUID, wanted: Callable[[StoredJob], object]) -> StoredJob:
        return await until(lambda: stored(self.db, uid), wanted, what="the job is as wanted", within=WITHIN)

    async def phase(self, uid: UUID, phase: str) -> StoredJob:
        return await self.job_until(uid, lambda job: job.recorded.status.phase == phase)

    async def pods(self) -> dict[str, dict[str, Any]]:
        """The pods of the namespace by name."""
        return {pod["metadata"]["name"]: pod for pod in (await self.kube.get(f"{self.path}/pods")).ok()["items"]}

    async def pods_until(self, wanted: Callable[[list[str]], object]) -> list[str]:
        """The names of the pods, once they are as wanted."""

        def names(body: Any) -> list[str]:
            return sorted(pod["metadata"]["name"] for pod in body["items"])

        return names(await self.kube.eventually(f"{self.path}/pods", lambda body: wanted(names(body)), within=WITHIN))

    async def make_pod(self, name: str, **metadata: Any) -> dict[str, Any]:
        """Create a pod as somebody else would."""
        pod = {"metadata": {"name": name} | metadata, "spec": {"containers": [{"name": "main", "image": "busybox"}]}}
        made: dict[str, Any] = (await self.kube.post(f"{self.path}/pods", pod)).ok()
        return made

    async def make_anchor(self, uid: UUID) -> list[dict[str, Any]]:
        """Create a job's anchor; returns the owner references of what it owns."""
        name = labels.anchor_name(str(uid))
        body = {"metadata": {"name": name, "labels": self.labels(uid)}}
        anchor = (await self.kube.post(f"{self.path}/configmaps", body)).ok()["metadata"]
        return [{"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": anchor["uid"], "controller": True}]

    def labels(self, uid: UUID, **more: str) -> dict[str, str]:
        """Labels by which an object of the job is found."""
        return {labels.INSTALLATION: self.installation, labels.JOB_UID: str(uid)} | more

    async def inject(self, **rule: Any) -> None:
        """Add a fault rule for this namespace; see devcluster/testing/faults.py."""
        (await self.kube.post("/devcluster/faults", {"namespace": self.namespace} | rule)).ok()

    async def hits(self, wanted: int = 1) -> None:
        """Wait until the fault rules have hit so many requests."""

        def hit(body: Any) -> bool:
            return bool(sum(rule["hits"] for rule in body["items"]) >= wanted)

        await self.kube.eventually("/devcluster/faults", hit, within=WITHIN)

    async def heal(self) -> None:
        (await self.kube.delete("/devcluster/faults")).ok()


@asynccontextmanager
async def a_harness(cluster: Cluster, database_url: str, directory: Path) -> AsyncIterator[Harness]:
    namespace = f"loops-{secrets.token_hex(5)}"
    db = await Database.open(database_url, pool_size=6)
    api = await connect_api(kubeconfig=str(cluster.kubeconfig), context=None)
    try:
        async with api, connect(cluster) as kube:
            (await kube.post("/api/v1/namespaces", {"metadata": {"name": namespace}})).ok()
            await kube.eventually(f"/api/v1/namespaces/{namespace}/serviceaccounts/default", bool)
            async with a_kubelet(kube, namespace, directory) as kubelet:
                made = await _assembled(api, db, database_url, kubelet)
                yield made
                await made.heal()
                await kube.delete(f"/api/v1/namespaces/{namespace}")
    finally:
        await db.close()


def ignore(*_uid: str) -> None:
    """No test observes this hook."""


def hooks(quiet: Callable[[str], None]) -> Hooks:
    """Hooks of which only `quiet` is observed."""
    return Hooks(begins=ignore, observes=ignore, stored=ignore, failed=ignore, quiet=quiet, ended=ignore)


async def _assembled(api: KubeApi, db: Database, database_url: str, kubelet: Kubelet) -> Harness:
    """The controller's classes, wired as a term does it."""
    namespace, clock = kubelet.namespace, SkippingClock()
    context = _parts(api, db, database_url, clock, (namespace,))
    leadership = Leadership(db, SystemClock(), ttl=LEASE_SECONDS, renew_every=1.0)
    await leadership.acquire()
    verify_error: list[Exception] = []

    async def verify() -> None:
        if verify_error:
            raise verify_error[0]

    queue = WorkQueue(clock, backoff=ExponentialBackoff(first=0.05, longest=1.0))
    installation = str(context.installation_id)
    queues = QueueMirror(
        api,
        installation,
        clock,
        mode=QueueMode.OFF,
        namespaces=(namespace,),
        reflect=lambda source, sink: Reflector(source, sink, clock),
        on_change=queue.add,
        on_state=lambda: None,
    )
    mirror = Mirror(
        api,
        installation,
        clock,
        namespaces=(namespace,),
        pace=Pace(),
        guard=lambda source: GuardedSource(source, verify, lambda: None),
        on_change=queue.add,
        queues=queues,
    )
    timeout = context.settings.request_timeout
    captures = Captures(api, queues, clock, timeout=timeout)
    cluster = OwnCluster(api=api, leadership=leadership, verify=verify, timeout=timeout)
    creator = Creator(cluster, clock, captures=captures, adopt=mirror.adopt)
    event_lists = EventLists(api, clock)
    evidence = EvidenceCapture(api, db, leadership, clock, context.evidence, event_lists, verify=verify)
    event_reader = EventReader(event_lists, clock, queue.add_after)
    actuator = Actuator(
        creator,
        Remover(cluster, db),
        PodActions(cluster, mirror, WholeLogs(db, clock, None)),
        evidence,
        event_reader,
        WorkloadActions(cluster, clock, creator, mirror, queues),
    )
    plans = PlanCache(context.planner, KEY)
    quiet: list[str] = []
    return Harness(
        context=context,
        leadership=leadership,
        kube=kubelet.kube,
        kubelet=kubelet,
        namespace=namespace,
        clock=clock,
        queue=queue,
        mirror=mirror,
        queues=queues,
        creator=creator,
        evidence=evidence,
        actuator=actuator,
        reconciler=Reconciler(
            context,
            leadership,
            mirror,
            creator,
            actuator,
            plans,
            queue,
            hooks=hooks(quiet.append),
        ),
        plans=plans,
        verify_error=verify_error,
        quiet=quiet,
    )


def _parts(api: KubeApi, db: Database, url: str, clock: SystemClock, namespaces: Sequence[str]) -> ControllerContext:
    installation = uuid4()
    return ControllerContext(
        api=api,
        db=db,
        lease_db=db,
        listener=Listener(url, DatabaseTimeouts()),
        publisher=Publisher(db, Notifier(db)),
        clock=clock,
        timekeeper=Timekeeper(db, InstallationClock()),
        installation_id=installation,
        installation_key=KEY,
        settings=ControllerSettings(
            namespaces=tuple(namespaces), request_timeout=30.0, poll_every=0.05, heartbeat_every=0.05, stale_after=3.0
        ),
        timing=Timing(restart_backoff=0.0),
        evidence=EvidenceSettings(log_bytes=LOG_BYTES),
        planner=Planner(installation=str(installation)),
        samples=SampleSettings(),
        runtimes=RuntimeServers(PodProxyAccess(api), timeout=30.0),
    )
