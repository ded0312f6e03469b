"""The pass over jobs: take what is due from the queue, load it, decide, persist, and only then act.

Jobs that are due together share a load and a transaction; a batch that Postgres refuses is repeated job by job, so that
one job that cannot be written does not hold the others up.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

import structlog

from app.db import controller
from app.db.controller import StoredJob
from app.db.errors import DatabaseUnavailable, NotStorable
from app.domain.decision import Decision
from app.domain.inputs import Inputs
from app.domain.plan import Rank
from app.domain.reconcile import reconcile
from app.domain.status.records import HistoryEntry
from app.domain.vocabulary import JobPhase, Reason
from app.faultpoints import FaultPoint, reached
from app.loops import metrics
from app.loops.creator import Creator, Work
from app.loops.facts import FactBook
from app.loops.hands import Hands
from app.loops.leadership import Leadership
from app.loops.mirror import Mirror
from app.loops.parts import Parts
from app.loops.plans import PlanCache
from app.loops.workqueue import WorkQueue

log = structlog.get_logger()

BATCH = 64
ACTING = 64  # jobs whose actions are under way at once
DATABASE_PAUSE = 1.0  # seconds before a batch is tried again while Postgres is away
LONGEST_SLEEP = 3600.0
UNWRITABLE_PAUSE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """A job with what was concluded about it."""

    job: StoredJob
    decision: Decision
    work: Work


class Reconciler:
    """Works for as long as it holds the lease; LeaseLost ends it."""

    def __init__(
        self,
        parts: Parts,
        leadership: Leadership,
        mirror: Mirror,
        creator: Creator,
        hands: Hands,
        plans: PlanCache,
        queue: WorkQueue,
    ) -> None:
        self._db = parts.db
        self._publisher = parts.publisher
        self._clock = parts.clock
        self._timing = parts.timing
        self._served = parts.settings.served
        self._leadership = leadership
        self._mirror = mirror
        self._creator = creator
        self._hands = hands
        self._plans = plans
        self._queue = queue
        self._facts = FactBook()
        self._acting = asyncio.Semaphore(ACTING)

    async def run(self) -> None:
        """Take batches until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                keys = await self._queue.get_batch(BATCH)
                try:
                    decided = await self._decide_and_persist(keys)
                except DatabaseUnavailable as error:
                    log.warning("reconcile.database_unavailable", error=str(error))
                    await asyncio.sleep(DATABASE_PAUSE)
                    self._retry(keys)
                    continue
                for item in decided:
                    await self._acting.acquire()
                    group.create_task(self._act(item))

    def _retry(self, keys: Sequence[str]) -> None:
        for key in keys:
            self._queue.add(key)
            self._queue.done(key)

    async def _decide_and_persist(self, keys: Sequence[str]) -> list[Decided]:
        """The decisions that stand. Keys with nothing to do are released here, the others by whoever acts."""
        jobs = await controller.load(self._db, [UUID(key) for key in keys], self._served)
        for key in keys:
            if UUID(key) not in jobs:
                self._finish(key)
        gang_available = await self._creator.has_gang_api() if jobs else False
        decided = [self._decide(job, gang_available=gang_available) for job in jobs.values()]
        reached(FaultPoint.DECIDED)
        rejected = await self._persist([item for item in decided if _must_be_written(item)])
        self._publisher.hint()
        reached(FaultPoint.PERSISTED)
        for uid in rejected:
            metrics.REJECTED.inc()
            self._retry([str(uid)])
        return [item for item in decided if item.job.uid not in rejected]

    def _decide(self, job: StoredJob, *, gang_available: bool) -> Decided:
        metrics.PASSES.inc()
        uid = str(job.uid)
        plan = self._plans.plan(job)
        facts = self._facts.of(uid)
        observed = self._mirror.observe(uid, facts, gang_available=gang_available)
        decision = reconcile(
            Inputs(
                plan=plan,
                intent=job.intent,
                recorded=job.recorded,
                observed=observed,
                now=self._clock.now(),
                timing=self._timing,
            )
        )
        work = Work(
            plan=plan,
            actions=decision.actions,
            facts=facts,
            learnt_before=facts.learnt,
            established=job.recorded.had_pods,
        )
        return Decided(job=job, decision=decision, work=work)

    async def _persist(self, decided: Sequence[Decided]) -> set[UUID]:
        if not decided:
            return set()
        try:
            return set(await controller.persist(self._db, self._leadership.lease, [_write(item) for item in decided]))
        except NotStorable:
            rejected: set[UUID] = set()
            for item in decided:
                rejected |= await self._persist_alone(item)
            return rejected

    async def _persist_alone(self, item: Decided) -> set[UUID]:
        """A job that cannot be written turns Unknown with the error, and is not acted upon."""
        lease = self._leadership.lease
        try:
            return set(await controller.persist(self._db, lease, [_write(item)]))
        except NotStorable as error:
            log.error("reconcile.not_storable", job=str(item.job.uid), error=str(error))  # noqa: TRY400 - no trace needed
            metrics.UNWRITABLE.inc()
            unknown = _unwritable(item, str(error), self._clock.now())
            await controller.persist(self._db, lease, [_write(replace(item, decision=unknown))])
            return set()

    async def _act(self, item: Decided) -> None:
        key = str(item.job.uid)
        try:
            done = not item.work.actions or await self._hands.perform(item.work)
        except DatabaseUnavailable as error:
            log.warning("act.database_unavailable", job=key, error=str(error))
            done = False
        finally:
            self._acting.release()
        if not done:
            self._queue.add_rate_limited(key)
        else:
            self._queue.forget(key)
            self._schedule(key, item)
        self._finish(key)
        if item.decision.status.quiet:
            self._facts.forget(key)

    def _schedule(self, key: str, item: Decided) -> None:
        """Come back when the decision says so, when acting has taught something, or when a refused create is due."""
        decision, facts = item.decision, item.work.facts
        if decision.again or _has_learnt(item):
            self._queue.add(key)
        if facts.retry_at:
            self._queue.add_after(key, max(0.0, min(facts.retry_at.values()) - self._clock.monotonic()))
        if decision.wake_at is not None:
            wait = (decision.wake_at - self._clock.now()) / timedelta(seconds=1)
            self._queue.add_after(key, min(max(wait, 0.0), LONGEST_SLEEP))

    def _finish(self, key: str) -> None:
        self._queue.done(key)


def _must_be_written(item: Decided) -> bool:
    decision, job = item.decision, item.job
    return decision.dirty or job.intent_is_new or decision.wake_at != job.wake_at


def _has_learnt(item: Decided) -> bool:
    return item.work.facts.learnt != item.work.learnt_before


def _write(item: Decided) -> controller.JobWrite:
    names: Mapping[Rank, str] = {key: replica.pod_name for key, replica in item.work.plan.replicas.items()}
    return item.job.write(item.decision, observed_at=item.decision.status.observed_at, pod_names=names)


def _unwritable(item: Decided, error: str, now: datetime) -> Decision:
    """What is recorded instead of a decision that Postgres cannot hold."""
    recorded = item.job.recorded
    status = recorded.status
    history: tuple[HistoryEntry, ...] = ()
    if not status.phase.is_terminal and status.reason != Reason.NOT_WRITABLE:
        status = replace(status, phase=JobPhase.UNKNOWN, reason=Reason.NOT_WRITABLE, message=error)
        history = (HistoryEntry(at=now, phase=status.phase, reason=status.reason, message=error),)
    return Decision(
        status=status,
        replicas=recorded.replicas,
        changed=(),
        ended=(),
        history=history,
        actions=(),
        wake_at=now + UNWRITABLE_PAUSE,
        again=False,
        dirty=True,
    )
