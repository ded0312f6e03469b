"""The passes over SampleSets and SampleJobs: load, look, decide, persist, and only then act.

    a change of a pod, a StatefulSet or a claim ─┐
    what people ask for                          ├─▶ queue ─▶ one pass a time of each, several side by side
    what is due, and what another pass asks for ─┘

Nothing is concluded from what only a watch has said: it wakes a pass, and the pass reads for itself. Nothing is watched
before there is a set.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Final
from uuid import UUID, uuid4

import structlog

from app.cancellation import TaskGroup, rounds
from app.db import sample_controller
from app.db.errors import DatabaseUnavailable, LeaseLost
from app.db.notifications import INTENT
from app.db.sample_controller import LiveSample, SamplePass
from app.db.sample_rows import SampleRow
from app.domain.cache.reconcile.values import JobDecision, SetDecision, SetRecord
from app.domain.cache.vocabulary import SetPhase
from app.faultpoints import FaultPoint, reached
from app.k8s.errors import KubeError
from app.loops import metrics
from app.loops.cache.actuator import SampleHands, SampleWork
from app.loops.cache.decisions import Looked, SamplePasses
from app.loops.cache.watches import reflectors
from app.loops.identity import WrongCluster
from app.loops.leadership import Leadership
from app.loops.parts import Parts
from app.loops.workqueue import WorkQueue

log = structlog.get_logger()

WORKERS: Final = 16
BATCH: Final = 1000
COALESCE: Final = 0.1  # seconds for which changes of one set are gathered
FRESH_SECONDS: Final = 45.0  # servers look at their caches every 30 s: for so long after a job, figures may be old
FRESH_PAUSE: Final = 10.0
SETTLED_PAUSE: Final = 300.0
LONGEST_SLEEP: Final = 3600.0


class SampleSets:
    """`verify` raises when another cluster than ours answers."""

    def __init__(self, parts: Parts, leadership: Leadership, verify: Callable[[], Awaitable[None]]) -> None:
        self._parts = parts
        self._db = parts.db
        self._clock = parts.clock
        self._settings = parts.settings
        self._leadership = leadership
        self._verify = verify
        self._namespaces: dict[str, str] = {}
        self._queue = WorkQueue(parts.clock, group_of=lambda uid: self._namespaces.get(uid, ""))
        self._passes = SamplePasses(parts)
        self._hands = SampleHands(
            parts.api,
            parts.runtimes,
            leadership,
            parts.samples,
            verify=verify,
            timeout=parts.settings.request_timeout,
        )
        self._fresh_until: dict[str, float] = {}
        self._has_sets = asyncio.Event()

    async def run(self) -> None:
        """Until cancelled. What is wrong with one set ends nobody's term.

        Raises:
            LeaseLost, WrongCluster: in an exception group.
        """
        async with TaskGroup() as group:
            group.create_task(self._queue.run())
            group.create_task(self._begin())
            group.create_task(self._follow_intent())
            group.create_task(self._follow_time())
            group.create_task(self._follow_cluster())
            for _ in range(WORKERS):
                group.create_task(self._work())

    async def _begin(self) -> None:
        for _ in rounds():
            try:
                self._enqueue(await sample_controller.live(self._db, self._settings.served))
            except DatabaseUnavailable as error:
                log.warning("samples.database_unavailable", error=str(error))
                await asyncio.sleep(self._settings.poll_every)
            else:
                return

    async def _follow_intent(self) -> None:
        """Look for what people want on every hint, and now and then without one."""
        with self._parts.listener.subscribe(INTENT) as hints:
            for _ in rounds():
                try:
                    wanted = await sample_controller.pending_intents(self._db, BATCH, self._settings.served)
                    self._enqueue_unfailed(wanted)
                except DatabaseUnavailable:
                    await asyncio.sleep(self._settings.poll_every)
                await hints.wait(self._settings.poll_every)

    async def _follow_time(self) -> None:
        for _ in rounds():
            with suppress(DatabaseUnavailable):
                now = self._clock.now()
                self._enqueue_unfailed(await sample_controller.due(self._db, now, BATCH, self._settings.served))
            await asyncio.sleep(self._settings.poll_every)

    async def _follow_cluster(self) -> None:
        await self._has_sets.wait()
        installation, namespaces = str(self._parts.installation_id), self._settings.namespaces
        async with TaskGroup() as group:
            for reflector in reflectors(self._parts.api, self._clock, installation, namespaces, self._changed):
                group.create_task(reflector.run())

    def _changed(self, uid: str) -> None:
        """A label may say anything: only sets that are known are looked at."""
        if uid in self._namespaces:
            self._queue.add_after(uid, COALESCE)

    def _enqueue(self, samples: Iterable[LiveSample]) -> None:
        for sample in samples:
            self._namespaces[str(sample.uid)] = sample.namespace
            self._queue.add(str(sample.uid))

    def _enqueue_unfailed(self, samples: Iterable[LiveSample]) -> None:
        """What fails again and again is wanted all the while; it comes when its pause is over."""
        self._enqueue(sample for sample in samples if not self._queue.failures(str(sample.uid)))

    async def _work(self) -> None:
        for _ in rounds():
            key = await self._queue.get()
            try:
                outcome = await self._attempt(key)
            finally:
                self._queue.done(key)
            metrics.SAMPLE_PASSES.labels(outcome).inc()

    async def _attempt(self, key: str) -> str:
        """One pass; how it ended."""
        try:
            done = await self._pass(key)
        except (LeaseLost, WrongCluster):
            raise
        except (DatabaseUnavailable, KubeError) as error:
            log.warning("sample.pass_failed", sample=key, error=str(error))
            done = False
        except Exception:
            log.exception("sample.pass_failed", sample=key)
            done = False
        if done is None:
            self._queue.add(key)
            return "again"
        if not done:
            self._queue.add_rate_limited(key)
            return "failed"
        self._queue.forget(key)
        return "done"

    async def _pass(self, key: str) -> bool | None:
        """Whether all was done; None when people wanted something else meanwhile."""
        row = await sample_controller.load(self._db, UUID(key), self._settings.served)
        if row is None:
            self._forget(key)
            return True
        self._has_sets.set()
        name = uuid4().hex
        looked = await (
            self._passes.over_set(row, name) if isinstance(row.record, SetRecord) else self._passes.over_job(row, name)
        )
        await self._verify()
        looked = replace(looked, decision=self._paced(key, row, looked))
        if not await self._persist(row, looked):
            return None
        done = looked.work is None or await self._act(key, looked.work)
        await self._wake(key, row, looked)
        return done

    def _paced(self, key: str, row: SampleRow, looked: Looked) -> SetDecision | JobDecision:
        pause = self._pause(key, row, looked.decision)
        return replace(looked.decision, wake_after=None if pause is None else pause * self._parts.samples.pause_factor)

    def _pause(self, key: str, row: SampleRow, decision: SetDecision | JobDecision) -> float | None:
        """A settled set is looked at for a while longer, since what its servers tell may be half a minute old, and
        seldom for ever, since not all that it is made of is watched.
        """
        if not isinstance(decision, SetDecision) or decision.record.phase is not SetPhase.READY:
            return decision.wake_after
        if row.delete_requested_at is not None:
            return decision.wake_after
        until = self._fresh_until.setdefault(key, self._clock.monotonic() + FRESH_SECONDS)
        longest = FRESH_PAUSE if self._clock.monotonic() < until else SETTLED_PAUSE
        return longest if decision.wake_after is None else min(decision.wake_after, longest)

    async def _persist(self, row: SampleRow, looked: Looked) -> bool:
        decision, now = looked.decision, self._clock.now()
        record = decision.record
        complaint = record.complaint
        message = complaint.message if complaint else getattr(record, "message", "")
        done = SamplePass(
            uid=row.uid,
            intent_version=row.intent_version,
            generation=row.generation,
            phase=str(record.phase),
            record=record,
            reason=complaint.reason if complaint else "",
            message=message,
            events=decision.events,
            wake_at=None if decision.wake_after is None else now + timedelta(seconds=decision.wake_after),
            observed_at=now if looked.observed else None,
            cache_observed_at=now if looked.cache_observed else None,
            gone=isinstance(decision, SetDecision) and decision.gone,
        )
        reached(FaultPoint.SAMPLE_DECIDED)
        written = await sample_controller.persist(self._db, self._leadership.lease, done, now)
        self._parts.publisher.hint()
        reached(FaultPoint.SAMPLE_PERSISTED)
        return written

    async def _act(self, key: str, work: SampleWork) -> bool:
        """What the cluster has refused, or accepts again, is for the next pass to tell."""
        before = dict(work.refusals)
        done = await self._hands.perform(work)
        if work.refusals != before:
            self._queue.add(key)
        return done

    async def _wake(self, key: str, row: SampleRow, looked: Looked) -> None:
        """Come back when the decision says so, and look at what depends on it."""
        decision, before = looked.decision, row.record
        if decision.wake_after is not None:
            self._queue.add_after(key, min(decision.wake_after, LONGEST_SLEEP))
        if isinstance(decision, JobDecision):
            if decision.refreshes_set and looked.set_uid is not None:
                self._fresh_until[str(looked.set_uid)] = self._clock.monotonic() + FRESH_SECONDS
                self._enqueue([LiveSample(looked.set_uid, row.namespace)])
            return
        assert isinstance(before, SetRecord)
        after = decision.record
        if decision.gone or (before.phase, before.runtime) != (after.phase, after.runtime):
            uids = await sample_controller.jobs_of_set(self._db, row.namespace, row.set_name)
            self._enqueue(LiveSample(uid, row.namespace) for uid in uids)

    def _forget(self, key: str) -> None:
        self._fresh_until.pop(key, None)
        self._namespaces.pop(key, None)
        self._passes.forget(key)
