"""Stores what users see of queues, so that API processes read it from PostgreSQL.

QueueMirror ─▶ status of each LocalQueue ─▶ what differs from the stored queues ─▶ PostgreSQL
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Final

from app.base.cancellation import rounds
from app.base.instruments import Values, expose
from app.db import queues
from app.db.postgres.errors import DatabaseUnavailable
from app.db.queues import KueueRecord, QueueKey, QueueRow
from app.domain.kubernetes.queueing import LocalQueue
from app.domain.queueing.cohorts import NO_COHORT, cohort_shares
from app.domain.queueing.queue_status import JobWorkload, QueueStatus, is_admitted, queue_status, waits
from app.domain.status.log_lines import one_line
from app.domain.status.observed import KueueState
from app.loops import metrics
from app.loops.context import ControllerContext
from app.loops.jobs.queues import QueueMirror
from app.loops.leadership.lease import Leadership
from app.loops.queues.owners import QueueOwners
from app.loops.queues.positions import QueuePositions

RECORD_EVERY: Final = 3.0  # seconds from the end of an iteration to the next one
_QUEUES_AT_ONCE: Final = 20  # after which the other tasks run: about ten milliseconds
_MOST_ROWS: Final = 2000  # in one transaction


class QueueRecorder:
    """Records the queues of the served namespaces while Kueue is listed, and otherwise why it is not.

    Queues stay stored while they cannot be read. They are deleted when they or Kueue are gone.
    """

    def __init__(
        self,
        context: ControllerContext,
        leadership: Leadership,
        mirror: QueueMirror,
        labels_of: Callable[[str], Mapping[str, str] | None],
    ) -> None:
        self._db = context.db
        self._leadership = leadership
        self._clock = context.clock
        self._mirror = mirror
        self._labels_of = labels_of
        self._owners = QueueOwners(context.db)
        self._positions = QueuePositions(context.api, context.clock, context.settings.request_timeout)
        self._served = context.settings.served
        self._stored: dict[QueueKey, QueueStatus] | None = None
        self._jobs: Counter[tuple[QueueKey, str]] = Counter()

    async def run(self) -> None:
        """Record until cancelled.

        Raises:
            LeaseLost: another controller holds the lease.
        """
        with expose({metrics.QUEUE_JOBS: self._job_counts}):
            for _ in rounds():
                with suppress(DatabaseUnavailable):  # the next iteration tries again
                    await self.record()
                await asyncio.sleep(RECORD_EVERY)

    def _job_counts(self) -> Values:
        found: Counter[tuple[str, ...]] = Counter()
        # Queues with many jobs first, so that these are among the labels.
        for (key, state), count in self._jobs.most_common():
            found[*metrics.queue_labels(*key), state] += count
        return found

    async def record(self) -> None:
        """Store the state of Kueue, and each queue that differs from its stored status; delete queues that are gone."""
        mirror = self._mirror
        # Read before the objects, which are therefore at least as new as this time.
        state, message, contact = mirror.state, one_line(mirror.message), mirror.last_contact
        if state is not KueueState.LISTED:
            self._jobs.clear()
        if self._stored is None:
            # A former controller may have stored queues that are gone.
            self._stored = {QueueKey(row.namespace, row.name): row.status for row in await queues.read_all(self._db)}
        match state:
            case KueueState.LISTED:
                known = KueueRecord(
                    state=state, message=message, observed_at=contact, most_pod_sets=mirror.most_pod_sets
                )
                await self._write(known, await self._statuses())
            case KueueState.ABSENT:
                await self._write(KueueRecord(state=state, message=message, observed_at=self._clock.now()), {})
            case KueueState.UNKNOWN | KueueState.DENIED:
                await queues.write(self._db, self._leadership.lease, KueueRecord(state=state, message=message))

    async def _write(self, known: KueueRecord, statuses: Mapping[QueueKey, QueueStatus]) -> None:
        # Another loop deletes the queues of a namespace that was created again.
        present, now = await queues.read_keys(self._db), self._clock.now()
        stored = {key: status for key, status in (self._stored or {}).items() if key in present}
        changed = [key for key, status in statuses.items() if stored.get(key) != status]
        rows = [
            QueueRow(namespace=key.namespace, name=key.name, observed_at=now, status=statuses[key]) for key in changed
        ]
        gone = present - statuses.keys()
        last = max(len(rows) - 1, 0) // _MOST_ROWS * _MOST_ROWS
        for first in range(0, last, _MOST_ROWS):
            # The time at which all rows are true is stored with the last ones.
            part = rows[first : first + _MOST_ROWS]
            await queues.write(self._db, self._leadership.lease, replace(known, observed_at=None), part)
        await queues.write(self._db, self._leadership.lease, known, rows[last:], gone)
        self._stored = {key: status for key, status in stored.items() if key not in gone}
        self._stored |= {key: statuses[key] for key in changed}

    async def _statuses(self) -> dict[QueueKey, QueueStatus]:
        waiting = await self._waiting()
        served = [local for local in self._mirror.local_queues() if local.metadata.namespace in self._served]
        used = {local.spec.cluster_queue for local in served if _key(local) in waiting}
        # A LocalQueue may name a ClusterQueue that nobody has made.
        positions = await self._positions.read([name for name in used if self._mirror.cluster_queue(name) is not None])
        cohorts = self._mirror.cohorts()
        shares = {} if cohorts is None else cohort_shares(self._mirror.cluster_queues(), cohorts)
        found: dict[QueueKey, QueueStatus] = {}
        for number, local in enumerate(served, 1):
            key = _key(local)
            cluster = self._mirror.cluster_queue(local.spec.cluster_queue)
            share = shares.get(local.spec.cluster_queue, NO_COHORT)
            labels = self._labels_of(key.namespace)
            found[key] = queue_status(local, cluster, waiting.get(key, ()), positions, share, labels)
            if number % _QUEUES_AT_ONCE == 0:
                await asyncio.sleep(0)
        return found

    async def _waiting(self) -> dict[QueueKey, list[JobWorkload]]:
        """Return the Workloads of the jobs that wait, by queue, and count the jobs of each queue."""
        found: dict[QueueKey, list[JobWorkload]] = {}
        admitted: Counter[QueueKey] = Counter()
        for job in await self._owners.select(list(self._mirror.workloads())):
            key = QueueKey(job.workload.metadata.namespace, job.workload.spec.queue_name)
            if waits(job.workload):
                found.setdefault(key, []).append(job)
            elif is_admitted(job.workload):
                admitted[key] += 1
        self._jobs = Counter({(key, "pending"): len(waiting) for key, waiting in found.items()})
        self._jobs |= Counter({(key, "admitted"): count for key, count in admitted.items()})
        return found


def _key(local: LocalQueue) -> QueueKey:
    return QueueKey(local.metadata.namespace, local.metadata.name)
