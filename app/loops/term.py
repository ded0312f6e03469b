"""One term: verify the cluster, list it, reconcile every live job once, then follow the cluster and the intents."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from app.base.cancellation import TaskGroup, rounds
from app.base.instruments import ComputedMetric, Values, ValueSource, expose
from app.db.installation import heartbeats
from app.db.installation.heartbeats import ControllerLoad, Heartbeat
from app.db.jobs import controller
from app.db.jobs.controller import LiveJob
from app.db.postgres.errors import DatabaseContended, DatabaseUnavailable
from app.db.reservations import pod_room
from app.db.usage import writes as usage_writes
from app.domain.kubernetes import labels
from app.k8s.errors import KubeError, public_message, summarize
from app.k8s.watching.reflector import ObjectSink, ObjectSource, Pace, Reflector
from app.loops import metrics
from app.loops.autoscaling.autoscaler import Autoscaler
from app.loops.cache.reconciler import SampleReconciler
from app.loops.cluster_namespaces import ClusterNamespaces
from app.loops.context import ControllerContext
from app.loops.first_pass import FirstPass
from app.loops.intents import Intents
from app.loops.jobs.actions.actuator import Actuator
from app.loops.jobs.actions.captures import Captures
from app.loops.jobs.actions.creator import Creator
from app.loops.jobs.actions.pods import PodActions
from app.loops.jobs.actions.remover import Remover
from app.loops.jobs.actions.workloads import WorkloadActions
from app.loops.jobs.evidence.attempts import EvidenceCapture
from app.loops.jobs.evidence.event_lists import EventLists
from app.loops.jobs.evidence.pending_pods import EventReader
from app.loops.jobs.evidence.whole_logs import WholeLogs
from app.loops.jobs.measuring import ChangeLag
from app.loops.jobs.mirror import GuardedSource, Mirror
from app.loops.jobs.plan_cache import PlanCache
from app.loops.jobs.queues import QueueMirror
from app.loops.jobs.reconcile_intervals import ReconcileIntervals
from app.loops.jobs.reconciler import Hooks, Reconciler
from app.loops.jobs.room_turns import RoomTurns
from app.loops.leadership.cluster_contact import ClusterContact
from app.loops.leadership.controller_state import ControllerState
from app.loops.leadership.lease import Leadership
from app.loops.leadership.own_cluster import OwnCluster
from app.loops.maintenance.janitor import Janitor
from app.loops.maintenance.statistics import Statistics
from app.loops.maintenance.sweeper import Sweeper
from app.loops.queues.recorder import QueueRecorder
from app.loops.workqueue import WorkQueue

QUEUES_WITHIN = 5.0  # seconds of a start in which Kueue's objects are awaited
# Objects of Kueue in one page of a list. kube-apiserver 1.31 and newer has the first page in memory. When no Workload
# has changed for some minutes, it reads further pages from etcd, with the Workloads of others: seconds for ten thousand
# of them. A page takes twice its size of memory: 181 MiB for 3 000 Workloads of 33 kB.
KUEUE_PAGE = 3000
DUE_BATCH = 1000  # jobs in one query; the next poll returns the others
# Jobs in one query, each second. An upgrade can find a million such jobs, and live ones must not wait for them.
EXPIRED_BATCH = 20


class Term:
    """Runs all loops of the controller until one fails or it is cancelled. It reports in `state` for /readyz.

    `reached` is called again and again while the term has contact with the cluster.
    """

    def __init__(
        self, context: ControllerContext, leadership: Leadership, state: ControllerState, reached: Callable[[], None]
    ) -> None:
        settings, clock = context.settings, context.clock
        self._context = context
        self._settings = settings
        self._leadership = leadership
        self._state = state
        self._reached = reached
        # Of the jobs that are not quiet, so that a long term does not collect all jobs that ever ran.
        self._namespaces: dict[str, str] = {}
        self._queue = WorkQueue(clock, group_of=lambda uid: self._namespaces.get(uid, ""))
        # None once the loops run. Until then the namespaces of the jobs are not known, and the queue is fair only
        # between namespaces.
        self._changed_early: set[str] | None = set()
        self._first_pass = FirstPass()
        self._former: Heartbeat | None = None
        self._identity = context.build_identity(leadership)
        self._kueue_changed = asyncio.Event()
        self._queues = QueueMirror(
            context.api,
            str(context.installation_id),
            clock,
            mode=settings.queues,
            namespaces=settings.namespaces,
            reflect=self._reflect,
            on_change=self._workload_changed,
            on_state=self._kueue_changed.set,
        )
        self._mirror = Mirror(
            context.api,
            str(context.installation_id),
            clock,
            namespaces=settings.namespaces,
            pace=Pace.within(settings.stale_after),
            guard=self._guard,
            on_change=self._changed,
            queues=self._queues,
        )
        self._intervals = ReconcileIntervals(clock, self._mirror.count, least=settings.coalesce)
        self._lag = ChangeLag(clock)
        self._event_lists = EventLists(context.api, clock)
        self._event_reader = EventReader(self._event_lists, clock, self._queue.add_after)
        self._room_turns = RoomTurns(context, leadership, self._queue.add)
        self._reconciler = self._wire_reconciler()
        self._intents = Intents(context, self._queue, self._enqueue)
        self._janitor = self._wire_janitor()
        self._sweeper = Sweeper(context.db, clock, settings.keeping, archive=context.archive, note=self._note)
        self._statistics = Statistics(context.db, clock)
        self._autoscaler = Autoscaler(context, leadership, self._identity.verify)
        self._samples = SampleReconciler(context, leadership, self._identity.verify)
        self._cluster_namespaces = ClusterNamespaces(
            context.api,
            context.db,
            leadership,
            clock,
            verify=self._identity.verify,
            stale_after=settings.stale_after,
        )
        self._queue_recorder = QueueRecorder(context, leadership, self._queues, self._cluster_namespaces.labels_of)

    def _note(self, message: str) -> None:
        """Report something that an operator should know, and that does not keep the controller from its work."""
        if self._state.state == "Running":
            self._state.set("Running", message)

    def _guard(self, source: ObjectSource[Any]) -> ObjectSource[Any]:
        return GuardedSource(source, self._identity.verify, self._identity.doubt)

    def _reflect(self, source: ObjectSource[Any], sink: ObjectSink[Any]) -> Reflector[Any]:
        pace = Pace.within(self._settings.stale_after)
        return Reflector(self._guard(source), sink, self._context.clock, pace=pace, page_size=KUEUE_PAGE)

    def _wire_janitor(self) -> Janitor:
        settings = self._settings
        return Janitor(
            self._context.api,
            self._context.db,
            self._leadership,
            self._mirror,
            self._queues,
            timeout=settings.request_timeout,
            served=settings.served,
        )

    def _wire_reconciler(self) -> Reconciler:
        context, clock = self._context, self._context.clock
        timeout = context.settings.request_timeout
        cluster = OwnCluster(
            api=context.api, leadership=self._leadership, verify=self._identity.verify, timeout=timeout
        )
        captures = Captures(context.api, self._queues, clock, timeout=timeout)
        creator = Creator(cluster, clock, captures=captures, adopt=self._mirror.adopt)
        actuator = self._wire_actuator(cluster, creator)
        plans = PlanCache(context.planner, context.installation_key)
        return Reconciler(
            context,
            self._leadership,
            self._mirror,
            creator,
            actuator,
            plans,
            self._queue,
            hooks=Hooks(
                begins=self._intervals.note_reconcile,
                observes=self._lag.observed,
                stored=self._stored,
                failed=self._first_pass.done,
                quiet=self._forget,
                ended=self._room_turns.note_end,
            ),
        )

    def _wire_actuator(self, cluster: OwnCluster, creator: Creator) -> Actuator:
        context, clock, db, mirror = self._context, self._context.clock, self._context.db, self._mirror
        evidence = EvidenceCapture(
            cluster.api, db, cluster.leadership, clock, context.evidence, self._event_lists, verify=cluster.verify
        )
        whole_logs = WholeLogs(db, clock, context.evidence.whole_logs_deadline)
        return Actuator(
            creator,
            Remover(cluster, db),
            PodActions(cluster, mirror, whole_logs),
            evidence,
            self._event_reader,
            WorkloadActions(cluster, clock, creator, mirror, self._queues),
        )

    async def run(self) -> None:
        """Run the term. No job is reconciled before every resource has been listed.

        Raises:
            WrongCluster, KubeError, DatabaseUnavailable, LeaseLost: in an exception group.
        """
        self._state.set("Syncing", "listing the cluster")
        self._former = await heartbeats.read(self._context.db)
        # First of all: on another cluster, the pods of every job would seem to be gone.
        await self._identity.bind()
        contact = ClusterContact(timedelta(seconds=self._settings.stale_after), self._context.clock.now())
        with expose(self._gauges(contact)):
            await self._run_loops(contact)

    async def _run_loops(self, contact: ClusterContact) -> None:
        async with TaskGroup() as group:
            group.create_task(self._mirror.run())
            group.create_task(self._queues.run())
            group.create_task(self._cluster_namespaces.run())
            group.create_task(self._identity.keep())
            # Six probes within `stale_after`, so that a single lost answer does not make the status stale.
            group.create_task(self._repeat(self._settings.stale_after / 6, partial(self._probe, contact)))
            group.create_task(self._repeat(self._settings.heartbeat_every, partial(self._beat, contact)))
            # What former controllers have left in PostgreSQL, while the cluster is listed.
            await self._recount_pods()
            await usage_writes.forget_ended(self._context.db)
            # Invariant: no loop below runs before every resource is listed. Until then a missing pod proves nothing.
            await self._mirror.wait_synced()
            await self._wait_for_queues()
            # Every live job once: the former controller may have died between a decision and its actions.
            self._begin_first_pass(await controller.read_live(self._context.db, self._settings.served))
            group.create_task(self._report_first_pass(contact))
            group.create_task(self._queue.run())
            group.create_task(self._event_reader.run())
            group.create_task(self._reconciler.run())
            group.create_task(self._room_turns.run())
            group.create_task(self._follow_kueue())
            group.create_task(self._intents.follow())
            group.create_task(self._repeat(self._settings.poll_every, self._enqueue_due))
            group.create_task(self._autoscale())
            group.create_task(self._samples.run())
            group.create_task(self._maintain())

    async def _wait_for_queues(self) -> None:
        """Wait for what Kueue has decided. Without it, jobs wait or run on as recorded, so an outage ends this wait."""
        with suppress(TimeoutError):
            async with asyncio.timeout(QUEUES_WITHIN):
                await self._queues.known.wait()
        self._kueue_changed.clear()

    async def _follow_kueue(self) -> None:
        """Reconcile all live jobs after Kueue was installed, or its objects can be read."""
        for _ in rounds():
            await self._kueue_changed.wait()
            self._kueue_changed.clear()
            try:
                self._enqueue(await controller.read_live(self._context.db, self._settings.served))
            except DatabaseUnavailable:
                # Nothing else queues a job that waits for Kueue.
                self._kueue_changed.set()
                await asyncio.sleep(self._settings.poll_every)

    def _gauges(self, contact: ClusterContact) -> Mapping[ComputedMetric, ValueSource]:
        mirror, clock = self._mirror, self._context.clock

        def age(time: datetime | None) -> Values:
            return {} if time is None else {(): (clock.now() - time).total_seconds()}

        def last_contact() -> datetime | None:
            watched_at = mirror.last_contact
            return None if watched_at is None else min(watched_at, contact.answered_at)

        return {
            metrics.CONTACT_AGE: lambda: age(last_contact()),
            metrics.MIRROR_LIST_AGE: lambda: age(mirror.listed_at),
            metrics.MIRROR_LISTS: lambda: {(): mirror.relists},
            metrics.MIRROR_PODS: lambda: {(): mirror.size},
        }

    async def _recount_pods(self) -> None:
        with suppress(DatabaseContended):  # the next term tries again
            await pod_room.recount(self._context.db)

    def _begin_first_pass(self, live: list[LiveJob]) -> None:
        self._state.set("Syncing", "reconciling each live job for the first time")
        self._enqueue(live)
        self._first_pass.begin(str(job.uid) for job in live)
        early, self._changed_early = self._changed_early or set(), None
        for uid in early:
            self._changed(uid)

    async def _report_first_pass(self, contact: ClusterContact) -> None:
        await self._first_pass.wait()
        if self._state.state == "Syncing":
            self._state.set("Running")
        # At once: until this heartbeat is stored, API processes report every status as stale.
        with suppress(DatabaseUnavailable):
            await self._beat(contact)

    async def _autoscale(self) -> None:
        # The autoscaler decides on recorded phases, which can be those of an older term until the first pass is over.
        # Its list of all pods would also delay the first pass.
        await self._first_pass.wait()
        await self._autoscaler.run()

    async def _maintain(self) -> None:
        # Maintenance is not urgent, and examines all jobs and pods: it would delay the first pass.
        await self._first_pass.wait()
        async with TaskGroup() as group:
            group.create_task(self._janitor.run(self._settings.clean_every))
            group.create_task(self._sweeper.run(self._settings.sweep_every))
            group.create_task(self._statistics.run(self._settings.count_every))
            group.create_task(self._queue_recorder.run())

    def _workload_changed(self, uid: str) -> None:
        if labels.is_job_uid(uid):
            self._changed(uid)

    def _changed(self, uid: str) -> None:
        if self._changed_early is not None:
            self._changed_early.add(uid)
            return
        self._lag.changed(uid)
        self._queue.add_after(uid, self._intervals.delay(uid))

    def _enqueue(self, jobs: Sequence[LiveJob]) -> None:
        for job in jobs:
            self._namespaces[str(job.uid)] = job.namespace
            self._queue.add(str(job.uid))

    def _stored(self, uid: str) -> None:
        self._first_pass.done(uid)
        self._lag.stored(uid)

    def _forget(self, uid: str) -> None:
        self._first_pass.done(uid)
        self._namespaces.pop(uid, None)
        self._intervals.forget(uid)
        self._lag.forget(uid)

    async def _enqueue_due(self) -> None:
        now, db, served = self._context.clock.now(), self._context.db, self._settings.served
        self._enqueue(await controller.read_overdue(db, now, DUE_BATCH, served))
        kept_for = self._context.timing.ttl_after_finished
        if kept_for is not None:
            ended_before = now - timedelta(seconds=kept_for)
            self._enqueue(await controller.read_expired(db, ended_before, EXPIRED_BATCH, served))

    async def _probe(self, contact: ClusterContact) -> None:
        try:
            await self._identity.probe()
        # WrongCluster is no KubeError: it ends the term.
        except KubeError as error:
            contact.failures.note("probe.failed", error)
            contact.record_probe(self._context.clock.now(), public_message(error))
        else:
            contact.failures.note("probe.failed", None)
            contact.record_probe(self._context.clock.now())

    async def _beat(self, contact: ClusterContact) -> None:
        # The watches, not the probes, show how old the recorded status is: the server can answer while a watch is cut.
        watched_at = self._mirror.last_contact
        now = self._context.clock.now()
        # A list of a large cluster takes long, and answers to probes prove the contact meanwhile.
        error = self._mirror.last_error
        # Only the log has the whole error: /readyz shows the message of the state without a token.
        contact.failures.note("watch.failed", error)
        silence = contact.silence(now, watched_at or now, "" if error is None else summarize(error))
        if silence is None:
            self._reached()
        if watched_at is None:
            return
        if silence is not None:
            self._state.set("Unreachable", silence)
        # Only this state ends here: Syncing must not become Running before the end of the first pass.
        elif self._state.state == "Unreachable":
            self._state.set("Running" if self._first_pass.is_over else "Syncing")
        # Until each live job has been reconciled once, statuses are as old as the last observation of an earlier term.
        former = None if self._first_pass.is_over else self._former
        observed_at = watched_at if former is None else former.observed_at
        lease, state = self._leadership.lease, self._state
        await heartbeats.beat(self._context.db, lease, observed_at, state.state, state.message, load=self._load(now))

    def _load(self, now: datetime) -> ControllerLoad:
        waited, times = self._queue.longest_wait, self._context.api.call_times
        return ControllerLoad(
            queued=len(self._queue),
            queued_since=None if waited is None else now - timedelta(seconds=waited),
            call_p50=times.quantile(0.5),
            call_p99=times.quantile(0.99),
        )

    async def _repeat(self, every: float, action: Callable[[], Awaitable[None]]) -> None:
        for _ in rounds():
            with suppress(DatabaseUnavailable):  # the reconciler logs the outage
                await action()
            await asyncio.sleep(every)
