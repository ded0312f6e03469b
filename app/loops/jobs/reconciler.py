"""Reconciles jobs: take jobs from the queue, load them, reconcile, store the decisions, and only then act.

Jobs that are ready together share one load and one transaction, as far as their memory allows
(`app/loops/jobs/loader.py`). If Postgres refuses a batch, its decisions are stored one by one, so that a job
whose decision cannot be stored does not block the others. A job whose reconcile raises an error does not block them
either.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

import structlog
from structlog.contextvars import bound_contextvars

from app.base.cancellation import TaskGroup, rounds
from app.base.faultpoints import FaultPoint, reach
from app.db.jobs import controller
from app.db.jobs.controller import StoredJob
from app.db.postgres.errors import DatabaseUnavailable, LeaseLost, NotStorable
from app.domain.reconcile.actions import CheckGroup, DeletePod
from app.domain.reconcile.reconcile import reconcile
from app.domain.reconcile.values import Inputs
from app.domain.vocabulary import Reason
from app.k8s.errors import KubeError
from app.loops.context import ControllerContext
from app.loops.jobs.actions.actuator import Actuator, Performed
from app.loops.jobs.actions.creator import Creator
from app.loops.jobs.actions.work import Work
from app.loops.jobs.decided_jobs import DecidedJob, StoredWork, must_be_written, record_span, stored_work, write_for
from app.loops.jobs.expectations import ExpectationsByJob
from app.loops.jobs.loader import LoadedJobs, Loader
from app.loops.jobs.measuring import measure
from app.loops.jobs.memory_budget import ACTING_BYTES, MemoryBudget
from app.loops.jobs.mirror import Mirror
from app.loops.jobs.plan_cache import PlanCache
from app.loops.jobs.start_turns import TURN_SECONDS, StartTurns
from app.loops.jobs.unknown import UNKNOWN_PAUSE, unknown
from app.loops.leadership.identity import WrongCluster
from app.loops.leadership.lease import Leadership
from app.loops.metrics import ReconcileMetrics
from app.loops.workqueue import WorkQueue
from app.telemetry.trace_context import continue_trace

log = structlog.get_logger(__name__)

DECIDED_AT_ONCE = 4  # jobs between two turns of other tasks: about 1 ms
BUDGET_PATIENCE = 0.5  # seconds that a batch waits for room to act; the jobs of all namespaces wait with it
BUDGET_PAUSE = 0.5  # seconds before a job that had no room is tried again
DATABASE_PAUSE = 1.0  # seconds before a batch is tried again while Postgres does not answer
LONGEST_SLEEP = 3600.0  # seconds; `wake_at` is stored, and the poll for due jobs finds later ones


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """Called with uids of jobs: `begins` when a reconcile begins, `observes` when it reads the mirror, `stored` when
    its decision is stored, `failed` when none can be made for now, `quiet` once the job does not change any more or is
    not found. `ended` is called with the namespace of a job whose end is stored.
    """

    begins: Callable[[str], None]
    observes: Callable[[str], None]
    stored: Callable[[str], None]
    failed: Callable[[str], None]
    quiet: Callable[[str], None]
    ended: Callable[[str], None]


class Reconciler:
    """Reconciles jobs while this process holds the lease. LeaseLost and WrongCluster end it."""

    def __init__(
        self,
        context: ControllerContext,
        leadership: Leadership,
        mirror: Mirror,
        creator: Creator,
        actuator: Actuator,
        plans: PlanCache,
        queue: WorkQueue,
        *,
        hooks: Hooks,
    ) -> None:
        self._db = context.db
        self._publisher = context.publisher
        self._clock = context.clock
        self._timing = context.timing
        self._leadership = leadership
        self._mirror = mirror
        self._creator = creator
        self._actuator = actuator
        self._plans = plans
        self._queue = queue
        self._hooks = hooks
        self._expectations = ExpectationsByJob()
        self._usage_labels = context.settings.usage_labels
        self._turns = StartTurns(self._clock, queue.add, longest=2 * (self._timing.start_deadline or TURN_SECONDS))
        self._budget = MemoryBudget(ACTING_BYTES)
        self._metrics = ReconcileMetrics("jobs")
        self._loader = Loader(
            context.db,
            context.settings.served,
            context.settings.pod_limits,
            context.clock,
            queue,
            quiet=hooks.quiet,
            pause=self._pause,
        )

    async def run(self) -> None:
        """Reconcile batches of queued jobs until cancelled."""
        async with TaskGroup() as group:
            following: asyncio.Task[LoadedJobs] | None = None
            for _ in rounds():
                following = await self._next_batch(following, group)

    async def _next_batch(
        self, loading: asyncio.Task[LoadedJobs] | None, group: TaskGroup
    ) -> asyncio.Task[LoadedJobs] | None:
        """Reconcile the batch that is loading, or the next one. Return the load of the one after it, if it has begun.

        That load waits for PostgreSQL while this process decides. Without a backlog it would have few jobs, whose
        decisions then would not share the transaction of the jobs that are queued meanwhile.
        """
        batch = await (loading if loading is not None else self._loader.next())
        following = group.create_task(self._loader.next()) if self._loader.has_full_batch else None
        await self._reconcile(batch, group)
        self._loader.release(batch)
        return following

    async def _reconcile(self, batch: LoadedJobs, group: TaskGroup) -> None:
        """Reconcile these jobs. Their actions continue in the group after this returns."""
        try:
            tasks = await self._decide_and_persist(batch)
        except DatabaseUnavailable as error:
            await self._pause([str(uid) for uid in batch.jobs], error)
            return
        until = asyncio.get_running_loop().time() + BUDGET_PATIENCE
        for task in tasks:
            if not task.work.actions or await self._budget.take(task.memory, task.namespace, until):
                group.create_task(self._act(task))
            else:
                # The decision is stored, and the next reconcile computes its actions again.
                self._queue.add_after(task.key, BUDGET_PAUSE)
                self._queue.done(task.key)

    async def _pause(self, keys: Sequence[str], error: DatabaseUnavailable) -> None:
        log.warning("reconcile.database_unavailable", error=str(error))
        self._metrics.unavailable.inc(len(keys))
        self._metrics.failed.inc(len(keys))
        # This stops the loop or the load of the next batch: no other job could be stored either.
        await asyncio.sleep(DATABASE_PAUSE)
        self._retry(keys)

    def _retry(self, keys: Sequence[str]) -> None:
        for key in keys:
            # `add` before `done`: the queue still counts the key as in work, so it becomes ready only once.
            self._queue.add(key)
            self._queue.done(key)

    async def _decide_and_persist(self, batch: LoadedJobs) -> list[StoredWork]:
        """Return the work of the stored decisions. Every other job is given back to the queue here."""
        decided = await self._decide_all(batch)
        reach(FaultPoint.DECIDED)
        # Invariant: no request is sent to the cluster before the decision that requires it is stored.
        stored = await self._persist(decided)
        self._publisher.hint()
        reach(FaultPoint.PERSISTED)
        # A job whose row changed since it was loaded has a newer intent or status, so its decision is outdated.
        outdated = {item.job.uid for item in decided} - {item.job.uid for item in stored}
        self._retry([str(uid) for uid in outdated])
        for item in stored:
            self._hooks.stored(str(item.job.uid))
            self._metrics.duration.observe(self._clock.monotonic() - batch.began)
        self._metrics.done.inc(len(stored))
        self._metrics.outdated.inc(len(outdated))
        return [stored_work(item, batch.sizes[item.job.uid]) for item in stored]

    async def _decide_all(self, batch: LoadedJobs) -> list[DecidedJob]:
        gang_apis = await self._creator.gang_apis() if batch.jobs else frozenset[str]()
        decided: list[DecidedJob] = []
        for index, (uid, job) in enumerate(list(batch.jobs.items())):
            if index % DECIDED_AT_ONCE == 0:
                await asyncio.sleep(0)  # the next batch loads, and actions run
            self._hooks.begins(str(uid))
            decision = await self._try_to_decide(job, gang_apis)
            if decision is not None:
                decided.append(decision)
            else:
                # The next batch can have the job already. If Postgres fails, it must not be given back once more.
                del batch.jobs[uid]
        return decided

    async def _try_to_decide(self, job: StoredJob, gang_apis: frozenset[str]) -> DecidedJob | None:
        """Return the decision, or None if the job is queued for later."""
        with bound_contextvars(job=str(job.uid)), continue_trace(job.trace):
            try:
                return await self._decide_with_anchor(job, gang_apis)
            except DatabaseUnavailable:
                raise
            except Exception as error:
                # An error that left the loop would end the term, and the next term would meet the same job: one job
                # would stop the jobs of all tenants.
                if _ends_term(error):
                    raise
                log.exception("reconcile.failed")
                self._metrics.failed.inc()
                self._metrics.unexpected.inc()
                await self._store_failure(job, error)
                return None

    async def _store_failure(self, job: StoredJob, error: Exception) -> None:
        """Store the phase Unknown for a job whose reconcile raised an error, and queue the job for later.

        The message has the type of the error only, because its text can repeat values of the manifest.
        """
        key = str(job.uid)
        message = (
            f"jobgate cannot reconcile this job: {type(error).__name__}; the log of the controller has the details"
        )
        decision = unknown(job, Reason.NOT_RECONCILABLE, message, self._clock.now())
        write = job.write(decision, observed_at=decision.status.observed_at, pod_names={})
        try:
            await controller.persist(self._db, self._leadership.lease, [write])
        except NotStorable:
            log.exception("reconcile.not_storable")
        self._hooks.failed(key)
        self._queue.add_after(key, UNKNOWN_PAUSE / timedelta(seconds=1))
        self._queue.done(key)

    async def _decide_with_anchor(self, job: StoredJob, gang_apis: frozenset[str]) -> DecidedJob | None:
        """Return the decision. If it depends on the unknown uid of the job's anchor, read that first."""
        decided = self._decide(job, gang_apis)
        if decided is None and await self._finds_anchor(job):
            return self._decide(job, gang_apis)
        return decided

    async def _finds_anchor(self, job: StoredJob) -> bool:
        """Read the uid of the job's anchor, which determines whether a pod belongs to the job.

        This happens after a controller died between the creation of a job's first pods and its next write. If the
        cluster does not answer, the job is queued for later and the result is False.
        """
        key = str(job.uid)
        try:
            await self._creator.find_anchor(self._plans.plan(job), self._expectations.of(key))
        except KubeError as error:
            log.warning("reconcile.anchor_unknown", error=str(error))
            self._metrics.unavailable.inc()
            self._metrics.failed.inc()
            self._hooks.failed(key)
            self._queue.add_rate_limited(key)
            self._queue.done(key)
            return False
        return True

    def _decide(self, job: StoredJob, gang_apis: frozenset[str]) -> DecidedJob | None:
        """Return the decision, or None if it depends on the unknown uid of the job's anchor."""
        uid = str(job.uid)
        plan = self._plans.plan(job, gang_apis)
        expectations = self._expectations.of(uid)
        observed = self._mirror.observe(plan, job.recorded, expectations)
        if observed is None:
            return None
        self._hooks.observes(uid)
        now = self._clock.now()
        decision = reconcile(
            Inputs(
                plan=plan,
                intent=job.intent,
                recorded=job.recorded,
                observed=observed,
                now=now,
                timing=self._timing,
                may_start=self._turns.may_start(uid, plan.identity.namespace, job.recorded.status.partial_start, now),
                room_wait=job.room_wait,
            )
        )
        self._turns.follow(uid, plan.identity.namespace, decision.status.partial_start, now)
        work = Work(
            plan=plan,
            actions=decision.actions,
            expectations=expectations,
            # Read together with the observation: what the cluster answers later calls for another reconcile.
            revision_before=expectations.revision,
            established=job.recorded.had_pods,
            anchors=decision.status.anchors,
            queueing=decision.status.queueing,
        )
        return DecidedJob(job=job, decision=decision, decided_at=now, work=work)

    async def _persist(self, decided: Sequence[DecidedJob]) -> list[DecidedJob]:
        """Store the decisions that change a job. Return those to act on, without jobs that changed since their load."""
        unchanged = [item for item in decided if not must_be_written(item)]
        new = [item for item in decided if must_be_written(item)]
        try:
            return unchanged + await self._store(new)
        except NotStorable:
            return unchanged + [stored for item in new for stored in await self._store_alone(item)]

    async def _store(self, decided: Sequence[DecidedJob]) -> list[DecidedJob]:
        if not decided:
            return []
        writes = [write_for(item, self._usage_labels) for item in decided]
        rejected = await controller.persist(self._db, self._leadership.lease, writes)
        stored = [item for item in decided if item.job.uid not in rejected]
        for item in stored:
            measure(item.job, item.decision.status)
            if item.decision.status.phase.is_terminal and not item.job.recorded.status.phase.is_terminal:
                self._hooks.ended(item.job.namespace)
        return stored

    async def _store_alone(self, item: DecidedJob) -> list[DecidedJob]:
        """Store one decision. If Postgres cannot hold it, store the phase Unknown with the error, and drop its actions.

        An action must not run before its decision is stored: after a crash, no process would know of it. Only the
        pods of a cancelled or deleted job are still deleted, because that intent is stored.
        """
        try:
            return await self._store([item])
        except NotStorable as error:
            log.error("reconcile.not_storable", job=str(item.job.uid), error=str(error))  # noqa: TRY400 - no trace needed
            self._metrics.not_storable.inc()
            decision = unknown(item.job, Reason.NOT_WRITABLE, str(error), self._clock.now())
            is_to_end = item.job.intent.cancel or item.job.intent.remove
            kept = tuple(action for action in item.work.actions if is_to_end and isinstance(action, DeletePod))
            return await self._store([replace(item, decision=decision, work=replace(item.work, actions=kept))])

    async def _act(self, task: StoredWork) -> None:
        with bound_contextvars(job=task.key), record_span(task):
            await self._act_and_requeue(task)

    async def _act_and_requeue(self, task: StoredWork) -> None:
        try:
            performed = await self._actuator.perform(task.work) if task.work.actions else Performed.ALL
        except DatabaseUnavailable as error:
            log.warning("act.database_unavailable", error=str(error))
            performed = Performed.FAILED
        except Exception as error:
            # As in `_try_to_decide`: one job must not end the term.
            if _ends_term(error):
                raise
            log.exception("act.failed")
            self._metrics.unexpected.inc()
            performed = Performed.FAILED
        finally:
            # The memory is returned even if the term ends here with LeaseLost.
            if task.work.actions:
                self._budget.release(task.memory, task.namespace)
        if performed is Performed.FAILED:
            self._queue.add_rate_limited(task.key)
        else:
            self._queue.forget(task.key)
            self._schedule(task, again=task.again or performed is Performed.LEFT)
        self._queue.done(task.key)
        # A quiet job is not reconciled again until its intent changes, so nothing about it needs to stay in memory.
        if task.quiet:
            self._expectations.forget(task.key)
            self._hooks.quiet(task.key)

    def _schedule(self, task: StoredWork, *, again: bool) -> None:
        """Queue the job again: for `wake_at`, changed expectations, refused creates, and the read of its PodGroup."""
        expectations = task.work.expectations
        if again or expectations.revision != task.work.revision_before:
            self._queue.add(task.key)
        if expectations.retry_at:
            self._queue.add_after(task.key, max(0.0, min(expectations.retry_at.values()) - self._clock.monotonic()))
        if expectations.group_due is not None and any(isinstance(action, CheckGroup) for action in task.work.actions):
            self._queue.add_after(task.key, max(0.0, expectations.group_due - self._clock.monotonic()))
        if task.wake_at is not None:
            wait = (task.wake_at - self._clock.now()) / timedelta(seconds=1)
            if wait <= LONGEST_SLEEP:
                self._queue.add_after(task.key, max(wait, 0.0))


def _ends_term(error: Exception) -> bool:
    """Return whether the error concerns all jobs: the lease is lost, or another cluster answers."""
    # The actuator runs actions in a TaskGroup, which wraps their errors in a group.
    return ExceptionGroup("", [error]).subgroup((LeaseLost, WrongCluster)) is not None
