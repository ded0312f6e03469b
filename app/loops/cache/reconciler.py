"""The reconcile loop of SampleSets and SampleJobs: load, observe, reconcile, persist, and only then act.

    a changed pod, StatefulSet or claim ─┐
    a changed intent                     ├─▶ work queue ─▶ workers; each resource is reconciled by one at a time
    a due time, another reconcile        ─┘

A watch only triggers a reconcile, which then reads the cluster itself. Watches start with the first set, so an
installation without sets needs no permissions for them.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID, uuid4

import structlog
from prometheus_client import Counter

from app.base.cancellation import TaskGroup, rounds
from app.base.faultpoints import FaultPoint, reach
from app.db.postgres.errors import DatabaseUnavailable, LeaseLost
from app.db.postgres.notifications import SAMPLE_INTENT
from app.db.samples import controller as sample_controller
from app.db.samples.controller import LiveSample, SampleWrite
from app.db.samples.rows import SampleRow
from app.domain.cache.reconcile.values import JobDecision, SetDecision, SetRecord
from app.domain.cache.vocabulary import SampleJobPhase, SetPhase
from app.domain.kinds.samples.kinds import SAMPLE_JOB, SAMPLE_SET
from app.k8s.errors import KubeError
from app.loops.cache.actuator import SampleActuator, SampleWork
from app.loops.cache.decisions import ReconcileResult, SampleDecider
from app.loops.cache.watches import reflectors
from app.loops.context import ControllerContext
from app.loops.leadership.identity import WrongCluster
from app.loops.leadership.lease import Leadership
from app.loops.metrics import ReconcileMetrics
from app.loops.reconcile_span import reconcile_span
from app.loops.workqueue import WorkQueue
from app.telemetry.trace_context import continue_trace, set_current

log = structlog.get_logger(__name__)

WORKERS: Final = 16  # a reconcile mostly waits for the cluster and for servers
BATCH: Final = 1000  # rows in one query
COALESCE: Final = 0.1  # seconds in which changes of one set lead to one reconcile
# Runtime servers measure their caches every 30 s, so figures may be older than the last job for that long.
FRESH_SECONDS: Final = 45.0
FRESH_PAUSE: Final = 10.0  # between reconciles of a Ready set during FRESH_SECONDS
SETTLED_PAUSE: Final = 300.0  # and afterwards
LONGEST_SLEEP: Final = 3600.0
QUEUE: Final = "samples"  # the name of the work queue in metrics


class SampleReconciler:
    """Reconciles all SampleSets and SampleJobs. `verify` raises WrongCluster if the cluster is not the expected one.

    `queue` replaces the work queue in which namespaces take turns.
    """

    def __init__(
        self,
        context: ControllerContext,
        leadership: Leadership,
        verify: Callable[[], Awaitable[None]],
        *,
        queue: WorkQueue | None = None,
    ) -> None:
        self._context = context
        self._db = context.db
        self._clock = context.clock
        self._settings = context.settings
        self._leadership = leadership
        self._verify = verify
        self._namespaces: dict[str, str] = {}
        if queue is None:
            queue = WorkQueue(context.clock, name=QUEUE, group_of=lambda uid: self._namespaces.get(uid, ""))
        self._queue = queue
        self._decider = SampleDecider(context)
        # The reconcile step of each kind that has one.
        self._decisions: Mapping[str, Callable[[SampleRow, str], Awaitable[ReconcileResult]]] = {
            SAMPLE_SET.name: self._decider.decide_set,
            SAMPLE_JOB.name: self._decider.decide_job,
        }
        self._actuator = SampleActuator(
            context.api,
            context.runtimes,
            leadership,
            context.samples,
            verify=verify,
            timeout=context.settings.request_timeout,
        )
        self._fresh_until: dict[str, float] = {}
        self._has_sets = asyncio.Event()
        self._metrics = ReconcileMetrics(QUEUE)

    async def run(self) -> None:
        """Reconcile until cancelled. Errors with one set do not affect the others.

        Raises:
            LeaseLost, WrongCluster: in an exception group.
        """
        async with TaskGroup() as group:
            group.create_task(self._queue.run())
            group.create_task(self._enqueue_all())
            group.create_task(self._follow_intent())
            group.create_task(self._follow_time())
            group.create_task(self._follow_cluster())
            # The queue never gives one key to two workers, so two workers never reconcile the same object.
            for _ in range(WORKERS):
                group.create_task(self._work())

    async def _enqueue_all(self) -> None:
        """Enqueue everything once: the previous controller may have died after a decision and before its actions."""
        for _ in rounds():
            try:
                self._enqueue(await sample_controller.read_live(self._db, self._settings.served))
            except DatabaseUnavailable as error:
                log.warning("samples.database_unavailable", error=str(error))
                await asyncio.sleep(self._settings.poll_every)
            else:
                return

    async def _follow_intent(self) -> None:
        """Enqueue changed intents on every hint, and regularly, since hints can be lost."""
        with self._context.listener.subscribe(SAMPLE_INTENT) as hints:
            for _ in rounds():
                try:
                    wanted = await sample_controller.read_pending_intents(self._db, BATCH, self._settings.served)
                    self._enqueue_unfailed(wanted)
                except DatabaseUnavailable:
                    await asyncio.sleep(self._settings.poll_every)
                await hints.wait(self._settings.poll_every)

    async def _follow_time(self) -> None:
        """Enqueue objects when the time of their next reconcile has come."""
        for _ in rounds():
            with suppress(DatabaseUnavailable):
                now = self._clock.now()
                self._enqueue_unfailed(
                    await sample_controller.read_overdue(self._db, now, BATCH, self._settings.served)
                )
            await asyncio.sleep(self._settings.poll_every)

    async def _follow_cluster(self) -> None:
        """Watch the objects of sets, from the first set on."""
        await self._has_sets.wait()
        installation, namespaces = str(self._context.installation_id), self._settings.namespaces
        async with TaskGroup() as group:
            for reflector in reflectors(self._context.api, self._clock, installation, namespaces, self._changed):
                group.create_task(reflector.run())

    def _changed(self, uid: str) -> None:
        """Enqueue the set of a changed object. Any client can set the label, so unknown uids are ignored."""
        if uid in self._namespaces:
            self._queue.add_after(uid, COALESCE)

    def _enqueue(self, samples: Iterable[LiveSample]) -> None:
        for sample in samples:
            self._namespaces[str(sample.uid)] = sample.namespace
            self._queue.add(str(sample.uid))

    def _enqueue_unfailed(self, samples: Iterable[LiveSample]) -> None:
        """Enqueue without those that are in back-off after a failure. Their intent stays pending all that time."""
        self._enqueue(sample for sample in samples if not self._queue.failures(str(sample.uid)))

    async def _work(self) -> None:
        for _ in rounds():
            key = await self._queue.get()
            try:
                # The trace of one object must not reach the next.
                with continue_trace(None):
                    outcome = await self._reconcile_once(key)
            finally:
                self._queue.done(key)
            outcome.inc()

    async def _reconcile_once(self, key: str) -> Counter:
        """Reconcile one SampleSet or SampleJob, and return the counter of its outcome. A failure queues it again."""
        try:
            done = await self._reconcile(key)
        except (LeaseLost, WrongCluster):
            raise
        except (DatabaseUnavailable, KubeError) as error:
            log.warning("sample.reconcile_failed", sample=key, error=str(error))
            self._metrics.unavailable.inc()
            done = False
        # An error with one set must not end the term, which all sets and jobs share.
        except Exception:
            log.exception("sample.reconcile_failed", sample=key)
            self._metrics.unexpected.inc()
            done = False
        if done is None:
            self._queue.add(key)
            return self._metrics.outdated
        if not done:
            self._queue.add_rate_limited(key)
            return self._metrics.failed
        self._queue.forget(key)
        return self._metrics.done

    async def _reconcile(self, key: str) -> bool | None:
        """Reconcile. Return whether all actions are done, or None if the intent has changed meanwhile."""
        began = self._clock.monotonic()
        row = await sample_controller.load(self._db, UUID(key), self._settings.served)
        if row is None:
            self._forget(key)
            return True
        # For the rest of this reconcile, the lines about its failure included.
        set_current(row.trace)
        reconcile_kind = self._decisions.get(row.kind)
        if reconcile_kind is None:
            return await self._acknowledge(row)
        self._has_sets.set()
        decided_at = self._clock.now()
        # A set is read again and again as long as it lives, and these reads would fill its trace.
        with continue_trace(None):
            result = await reconcile_kind(row, uuid4().hex)
            # The reads may have gone to another cluster that replaced this one at its address. Do not record its state.
            await self._verify()
        result = replace(result, decision=self._with_pause(key, row, result))
        with _span(row, result.decision, decided_at):
            # Persist, then act: a decision that is lost is made again, but an action without a record would be
            # forgotten.
            if not await self._persist(row, result):
                return None
            self._metrics.duration.observe(self._clock.monotonic() - began)
            done = result.work is None or await self._act(key, result.work)
        await self._schedule(key, row, result)
        if _is_final(result.decision):
            self._forget(key)
        return done

    async def _acknowledge(self, row: SampleRow) -> bool | None:
        """Record that the intent is known. A kind without a reconcile step has nothing in the cluster."""
        write = SampleWrite(
            uid=row.uid,
            intent_version=row.intent_version,
            generation=row.generation,
            phase=row.phase,
            record=row.record,
            gone=row.delete_requested_at is not None,
        )
        written = await sample_controller.persist(self._db, self._leadership.lease, write, self._clock.now())
        self._context.publisher.hint()
        if not written:
            return None
        self._forget(str(row.uid))
        return True

    def _with_pause(self, key: str, row: SampleRow, result: ReconcileResult) -> SetDecision | JobDecision:
        pause = self._pause(key, row, result.decision)
        return replace(
            result.decision, wake_after=None if pause is None else pause * self._context.samples.pause_factor
        )

    def _pause(self, key: str, row: SampleRow, decision: SetDecision | JobDecision) -> float | None:
        """Return the seconds until the next reconcile, or None to wait for a change.

        A Ready set is reconciled often for a while, since the figures of its servers may be outdated. After that it is
        reconciled seldom but forever, since not all of its objects are watched.
        """
        if not isinstance(decision, SetDecision) or decision.record.phase is not SetPhase.READY:
            return decision.wake_after
        if row.delete_requested_at is not None:
            return decision.wake_after
        until = self._fresh_until.setdefault(key, self._clock.monotonic() + FRESH_SECONDS)
        longest = FRESH_PAUSE if self._clock.monotonic() < until else SETTLED_PAUSE
        return longest if decision.wake_after is None else min(decision.wake_after, longest)

    async def _persist(self, row: SampleRow, result: ReconcileResult) -> bool:
        """Write the decision. Return False, without a write, if the intent has changed since the row was loaded."""
        decision, now = result.decision, self._clock.now()
        record = decision.record
        complaint = record.complaint
        message = complaint.message if complaint else getattr(record, "message", "")
        write = SampleWrite(
            uid=row.uid,
            intent_version=row.intent_version,
            generation=row.generation,
            phase=str(record.phase),
            record=record,
            reason=complaint.reason if complaint else "",
            message=message,
            events=decision.events,
            wake_at=None if decision.wake_after is None else now + timedelta(seconds=decision.wake_after),
            observed_at=now if result.observed else None,
            cache_observed_at=now if result.cache_observed else None,
            gone=isinstance(decision, SetDecision) and decision.gone,
        )
        reach(FaultPoint.SAMPLE_DECIDED)
        written = await sample_controller.persist(self._db, self._leadership.lease, write, now)
        self._context.publisher.hint()
        reach(FaultPoint.SAMPLE_PERSISTED)
        return written

    async def _act(self, key: str, work: SampleWork) -> bool:
        """Perform the actions. If the cluster has refused or warned about a creation, reconcile again to record it."""
        before = dict(work.refusals), list(work.warnings)
        done = await self._actuator.perform(work)
        # The answer came after the record was written.
        if (work.refusals, work.warnings) != before:
            self._queue.add(key)
        return done

    async def _schedule(self, key: str, row: SampleRow, result: ReconcileResult) -> None:
        """Schedule the next reconcile, and those of resources that depend on this one."""
        decision, before = result.decision, row.record
        if decision.wake_after is not None:
            # Besides the timer there is wake_at in the row, for the next controller.
            self._queue.add_after(key, min(decision.wake_after, LONGEST_SLEEP))
        if isinstance(decision, JobDecision):
            if decision.refreshes_set and result.set_uid is not None:
                self._fresh_until[str(result.set_uid)] = self._clock.monotonic() + FRESH_SECONDS
                self._enqueue([LiveSample(result.set_uid, row.namespace)])
            return
        assert isinstance(before, SetRecord)
        after = decision.record
        # Jobs wait for servers of their set, and fail when it is gone.
        if decision.gone or (before.phase, before.runtime) != (after.phase, after.runtime):
            uids = await sample_controller.jobs_of_set(self._db, row.namespace, row.set_name)
            self._enqueue(LiveSample(uid, row.namespace) for uid in uids)

    def _forget(self, key: str) -> None:
        self._fresh_until.pop(key, None)
        self._namespaces.pop(key, None)
        self._decider.forget(key)


def _span(row: SampleRow, decision: SetDecision | JobDecision, decided_at: datetime) -> AbstractContextManager[object]:
    """Return the span of a reconcile. New figures of a cache are no effect: they change as long as a set lives."""
    word = row.of_kind.word
    about = {
        f"jobgate.{word}.uid": str(row.uid),
        f"jobgate.{word}.name": row.name,
        "k8s.namespace.name": row.namespace,
    }
    actions = len(decision.actions)
    has_effect = bool(actions or decision.events) or decision.record.phase != row.phase or _is_final(decision)
    return reconcile_span(row.trace, about, actions=actions, has_effect=has_effect, began_at=decided_at)


def _is_final(decision: SetDecision | JobDecision) -> bool:
    """Return whether nothing changes any more: the set is gone, or the job has succeeded."""
    if isinstance(decision, SetDecision):
        return decision.gone
    return decision.record.phase is SampleJobPhase.SUCCEEDED
