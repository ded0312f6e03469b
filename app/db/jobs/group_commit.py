"""Group commit: submissions that arrive together share a transaction, and so one write to the disk.

Submissions that arrive during a commit share the next one. Before each, the committer lets the event loop finish the
submissions that it is working on.
"""

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from app.cancellation import rounds
from app.db import metrics
from app.db.engine import Database
from app.db.errors import DatabaseContended, DatabaseUnavailable, KeyContended
from app.db.idempotency import KeyInFlight
from app.db.jobs.submit import MAX_TRIES, Answer, NewJob, Undecided, submit, submit_together
from app.domain.reservations.pod_limits import DEFAULT_LIMITS, PodLimits
from app.faultpoints import FaultPoint, reached
from app.telemetry import trace_context
from app.telemetry.trace_context import TraceContext
from app.telemetry.tracing import shared_span

# What waits is committed after this number of iterations of the event loop, or seconds, without another submission. A
# request takes several iterations from its first byte until it waits here.
_QUIET_ITERATIONS: Final = 12
_QUIET_SECONDS: Final = 0.003
# The first of them waits for at most this number of seconds.
_GATHER_SECONDS: Final = 0.05
_SPAN: Final = "commit"
_SPAN_JOBS: Final = "jobgate.commit.jobs"


@dataclass(frozen=True, slots=True)
class _Waiting:
    job: NewJob
    answer: asyncio.Future[Answer]
    since: float
    trace: TraceContext | None = field(default_factory=trace_context.current)


@dataclass(frozen=True, slots=True)
class _Together:
    """Jobs that are stored all or none, in a transaction of their own."""

    jobs: Sequence[NewJob]
    answer: asyncio.Future[Mapping[int, Answer]]
    trace: TraceContext | None = field(default_factory=trace_context.current)


class GroupCommit:
    """Collects jobs from `submit` and stores them in `run`, which is a task of the owner."""

    def __init__(self, db: Database, limits: PodLimits = DEFAULT_LIMITS, max_jobs: int = 256) -> None:
        self._db = db
        self._limits = limits
        self._max_jobs = max_jobs
        self._waiting: deque[_Waiting | _Together] = deque()
        self._arrived = asyncio.Event()
        self._closed = False

    async def submit(self, job: NewJob) -> Answer:
        """Store one job durably. The cancellation of the caller does not revoke it.

        Raises:
            NotStorable: PostgreSQL cannot store the job.
            DatabaseUnavailable: the job may or may not be stored. The client repeats it with the same idempotency key.
        """
        loop = asyncio.get_running_loop()
        waiting = _Waiting(job, loop.create_future(), loop.time())
        self._enqueue(waiting)
        return await waiting.answer

    async def submit_together(self, jobs: Sequence[NewJob]) -> Mapping[int, Answer]:
        """Store all jobs durably, or none. Return the refusals by position; there are none if all are stored.

        Raises:
            as `submit`.
        """
        together = _Together(jobs, asyncio.get_running_loop().create_future())
        self._enqueue(together)
        return await together.answer

    def _enqueue(self, waiting: _Waiting | _Together) -> None:
        if self._closed:
            raise DatabaseUnavailable("this process is stopping and takes no more jobs")
        self._waiting.append(waiting)
        self._arrived.set()

    async def run(self) -> None:
        """Commit until cancelled, then refuse the waiting jobs. It may run again after it has ended."""
        self._closed = False
        batch: list[_Waiting | _Together] = []
        try:
            for _ in rounds():
                await self._arrived.wait()
                await self._gather()
                batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), self._max_jobs))]
                if not self._waiting:
                    self._arrived.clear()
                if alone := [waiting for waiting in batch if isinstance(waiting, _Waiting)]:
                    with shared_span(_SPAN, [waiting.trace for waiting in alone], {_SPAN_JOBS: len(alone)}):
                        await self._commit(alone)
                for waiting in batch:
                    if isinstance(waiting, _Together):
                        with shared_span(_SPAN, [waiting.trace], {_SPAN_JOBS: len(waiting.jobs)}):
                            await self._commit_together(waiting)
        finally:
            self._closed = True
            stopping = DatabaseUnavailable("this process stopped before the job was known to be stored")
            # A refused job must not be stored by a later run, because its client submits it again.
            left = [*batch, *self._waiting]
            self._waiting.clear()
            self._arrived.clear()
            _refuse(left, stopping)

    async def _gather(self) -> None:
        """Wait while the event loop works on submissions that have arrived, so that they share the commit.

        A transaction costs several times as much as a job in it.
        """
        loop = asyncio.get_running_loop()
        began = since = loop.time()
        known = quiet = 0
        while (
            len(self._waiting) < self._max_jobs
            and quiet < _QUIET_ITERATIONS
            and loop.time() - began < _GATHER_SECONDS
            # What is stored all or none has a transaction of its own.
            and not isinstance(self._waiting[0], _Together)
        ):
            if len(self._waiting) > known:
                known, quiet, since = len(self._waiting), 0, loop.time()
            elif loop.time() - since > _QUIET_SECONDS:
                break
            quiet += 1
            await asyncio.sleep(0)

    async def _commit(self, batch: Sequence[_Waiting]) -> None:
        """Store all jobs in one transaction. If that fails, store each in its own, so that only the bad one fails.

        Jobs that the transaction leaves undecided are stored in transactions of their own, too.
        """
        reached(FaultPoint.SUBMISSION_ARRIVED)
        # Once for each transaction, not for each submission, which shares the time of the event loop with requests.
        metrics.COMMIT_JOBS.observe(len(batch))
        metrics.COMMIT_WAIT.observe(asyncio.get_running_loop().time() - batch[0].since)
        try:
            with metrics.COMMIT_DURATION.time():
                answers = await submit(self._db, [waiting.job for waiting in batch], self._limits)
            reached(FaultPoint.SUBMISSION_STORED)
        except DatabaseUnavailable as error:
            if isinstance(error, DatabaseContended):
                # Nothing was written. Alone, only the job that is in conflict waits or fails.
                await self._commit_each(batch)
            else:
                # The commit may have succeeded. A second try would find its own names in use.
                _refuse(batch, error)
        except Exception:  # noqa: BLE001  the error is reported below to the job that causes it
            await self._commit_each(batch)
        else:
            undecided = []
            for waiting, answer in zip(batch, answers, strict=True):
                if isinstance(answer, Undecided):
                    undecided.append(waiting)
                else:
                    _answer(waiting, answer)
            await self._commit_each(undecided)

    async def _commit_together(self, together: _Together) -> None:
        reached(FaultPoint.SUBMISSION_ARRIVED)
        metrics.COMMIT_JOBS.observe(len(together.jobs))
        try:
            with metrics.COMMIT_DURATION.time():
                refused = await submit_together(self._db, together.jobs, self._limits)
            reached(FaultPoint.SUBMISSION_STORED)
            _answer(together, refused)
        except KeyContended:
            _answer(together, {0: KeyInFlight()})  # the service waits for the end of the other request and tries again
        except Exception as error:  # noqa: BLE001  the error concerns only this caller
            _refuse([together], error)

    async def _commit_each(self, batch: Sequence[_Waiting]) -> None:
        for waiting in batch:
            await self._commit_alone(waiting)

    async def _commit_alone(self, waiting: _Waiting) -> None:
        try:
            _answer(waiting, await self._decided(waiting.job))
        except KeyContended:
            _answer(waiting, KeyInFlight())
        except Exception as error:  # noqa: BLE001  the error concerns only this caller
            _refuse([waiting], error)

    async def _decided(self, job: NewJob) -> Answer:
        for _ in range(MAX_TRIES):
            (answer,) = await submit(self._db, [job], self._limits)
            if not isinstance(answer, Undecided):
                return answer
        raise DatabaseContended("the names of this job change hands too fast")


def _answer(waiting: _Waiting | _Together, answer: Any) -> None:
    # The caller may have been cancelled meanwhile.
    if not waiting.answer.done():
        waiting.answer.set_result(answer)


def _refuse(batch: Sequence[_Waiting | _Together], error: Exception) -> None:
    for waiting in batch:
        if not waiting.answer.done():
            waiting.answer.set_exception(error)
