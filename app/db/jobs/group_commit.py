"""Group commit: submissions that arrive together share a transaction, and so one write to the disk.

Submissions that arrive during a commit share the next one. Before each, the committer lets the event loop finish the
submissions that it is working on.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeAlias

from app.base.batching import Batcher, WaitingItem
from app.base.faultpoints import FaultPoint, reach
from app.db.jobs.submit import MAX_TRIES, NewJob, Undecided, submit, submit_together
from app.db.objects.idempotency import KeyInFlight
from app.db.objects.submission import Answer
from app.db.postgres import metrics
from app.db.postgres.engine import Database
from app.db.postgres.errors import DatabaseContended, DatabaseUnavailable, KeyContended
from app.domain.reservations.pod_limits import DEFAULT_LIMITS, PodLimits
from app.telemetry import trace_context
from app.telemetry.trace_context import TraceContext
from app.telemetry.tracing import shared_span

# What waits is committed after this number of iterations of the event loop, or seconds, without another submission. A
# request takes several iterations from its first byte until it waits here.
_QUIET_ITERATIONS: Final = 12
_QUIET_SECONDS: Final = 0.003
# The first of them waits for at most this number of seconds.
_GATHER_SECONDS: Final = 0.05
_MAX_JOBS: Final = 256  # in a transaction
_SPAN: Final = "commit"
_SPAN_JOBS: Final = "jobgate.commit.jobs"


@dataclass(frozen=True, slots=True, eq=False)
class _Submission:
    job: NewJob
    trace: TraceContext | None = field(default_factory=trace_context.current)


_Waiting: TypeAlias = WaitingItem[_Submission, Answer]


class GroupCommit:
    """Collects jobs from `submit` and stores them in `run`, which is a task of the owner."""

    def __init__(self, db: Database, limits: PodLimits = DEFAULT_LIMITS) -> None:
        self._db = db
        self._limits = limits
        # One transaction at a time: several would wait for each other's rows, and each holds a connection.
        self._turn = asyncio.Lock()
        self._submissions = Batcher[_Submission, Answer](
            self._commit,
            max_items=_MAX_JOBS,
            stopped=partial(DatabaseUnavailable, "this process stopped before the job was known to be stored"),
            gather=self._gather,
        )

    async def submit(self, job: NewJob) -> Answer:
        """Store one job durably. The cancellation of the caller does not revoke it.

        Raises:
            NotStorable: PostgreSQL cannot store the job.
            DatabaseUnavailable: the job may or may not be stored. The client repeats it with the same idempotency key.
        """
        return await self._submissions.ask(_Submission(job))

    async def submit_together(self, jobs: Sequence[NewJob]) -> Mapping[int, Answer]:
        """Store all jobs durably in a transaction of their own, or none.

        Return the refusals by position; there are none if all are stored. The cancellation of the caller may revoke it.

        Raises:
            NotStorable: PostgreSQL cannot store one of the jobs.
            DatabaseUnavailable: as for `submit`.
        """
        async with self._turn:
            with shared_span(_SPAN, [trace_context.current()], {_SPAN_JOBS: len(jobs)}), _transaction(len(jobs)):
                try:
                    return await submit_together(self._db, jobs, self._limits)
                except KeyContended:
                    return {0: KeyInFlight()}  # the service waits for the end of the other request and tries again

    async def run(self) -> None:
        """Commit until cancelled, then refuse the waiting jobs. It may run again after it has ended."""
        await self._submissions.run()

    async def _gather(self) -> None:
        """Wait while the event loop works on submissions that have arrived, so that they share the commit.

        A transaction costs several times as much as a job in it.
        """
        loop, submissions = asyncio.get_running_loop(), self._submissions
        began = since = loop.time()
        known = quiet = 0
        while (
            len(submissions.waiting) < _MAX_JOBS and quiet < _QUIET_ITERATIONS and loop.time() - began < _GATHER_SECONDS
        ):
            if len(submissions.waiting) > known:
                known, quiet, since = len(submissions.waiting), 0, loop.time()
            elif loop.time() - since > _QUIET_SECONDS:
                break
            quiet += 1
            await asyncio.sleep(0)

    async def _commit(self, batch: Sequence[_Waiting]) -> None:
        async with self._turn:
            # Once for each transaction, not for each submission, which shares the time of the event loop with requests.
            metrics.COMMIT_WAIT.observe(asyncio.get_running_loop().time() - batch[0].since)
            with shared_span(_SPAN, [waiting.item.trace for waiting in batch], {_SPAN_JOBS: len(batch)}):
                await self._commit_shared(batch)

    async def _commit_shared(self, batch: Sequence[_Waiting]) -> None:
        """Store all jobs in one transaction. If that fails, store each in its own, so that only the bad one fails.

        Jobs that the transaction leaves undecided are stored in transactions of their own, too.
        """
        try:
            with _transaction(len(batch)):
                answers = await submit(self._db, [waiting.item.job for waiting in batch], self._limits)
        except DatabaseUnavailable as error:
            if isinstance(error, DatabaseContended):
                # Nothing was written. Alone, only the job that is in conflict waits or fails.
                await self._commit_each(batch)
            else:
                # The commit may have succeeded. A second try would find its own names in use.
                for waiting in batch:
                    waiting.refuse(error)
        except Exception:  # noqa: BLE001  the error is reported below to the job that causes it
            await self._commit_each(batch)
        else:
            undecided = []
            for waiting, answer in zip(batch, answers, strict=True):
                if isinstance(answer, Undecided):
                    undecided.append(waiting)
                else:
                    waiting.answer(answer)
            await self._commit_each(undecided)

    async def _commit_each(self, batch: Sequence[_Waiting]) -> None:
        for waiting in batch:
            try:
                waiting.answer(await self._submit_until_decided(waiting.item.job))
            except KeyContended:
                waiting.answer(KeyInFlight())
            except Exception as error:  # noqa: BLE001  the error concerns only this caller
                waiting.refuse(error)

    async def _submit_until_decided(self, job: NewJob) -> Answer:
        for _ in range(MAX_TRIES):
            (answer,) = await submit(self._db, [job], self._limits)
            if not isinstance(answer, Undecided):
                return answer
        raise DatabaseContended("the names of this job change hands too fast")


@contextmanager
def _transaction(count: int) -> Iterator[None]:
    """Count and time the transaction of this number of jobs."""
    reach(FaultPoint.SUBMISSION_ARRIVED)
    metrics.COMMIT_JOBS.observe(count)
    with metrics.COMMIT_DURATION.time():
        yield
    reach(FaultPoint.SUBMISSION_STORED)
