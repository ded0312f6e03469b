"""Keeps what no single job's pass looks after: pods that belong to no job, due wake-ups, and rows past their time."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from uuid import UUID

import structlog

from app.cancellation import rounds
from app.clock import Clock
from app.db import autoscaler_runs, controller, feed, idempotency
from app.db.engine import Database
from app.db.errors import DatabaseUnavailable
from app.domain import labels
from app.domain.namespaces import EVERY_NAMESPACE, NamespaceSet
from app.domain.objects import Pod
from app.k8s.api import KubeApi
from app.k8s.errors import Conflict, KubeError, NotFound
from app.k8s.finalizers import release
from app.k8s.resources import POD
from app.loops.leadership import Leadership
from app.loops.mirror import Mirror

log = structlog.get_logger()

BATCH = 500
IDEMPOTENCY_KEPT = timedelta(hours=24)
FEED_KEPT = timedelta(hours=24)
FEED_ROWS_KEPT = 10_000  # however old, so that a client which was away over a quiet night need not start anew
FEED_BATCH = 5_000
RUNS_KEPT = 500  # of the autoscaler; those that changed something for RUNS_KEPT_FOR
RUNS_KEPT_FOR = timedelta(days=7)


class Janitor:
    """`timeout` is seconds a cluster request; `every` seconds between rounds."""

    def __init__(
        self,
        api: KubeApi,
        db: Database,
        leadership: Leadership,
        mirror: Mirror,
        clock: Clock,
        *,
        timeout: float,
        served: NamespaceSet = EVERY_NAMESPACE,
    ) -> None:
        self._api = api
        self._db = db
        self._leadership = leadership
        self._mirror = mirror
        self._clock = clock
        self._timeout = timeout
        self._served = served

    async def keep_clean(self, every: float) -> None:
        await _repeat(every, self.free_strangers)

    async def keep_small(self, every: float) -> None:
        await _repeat(every, self._forget_old_rows)

    async def free_strangers(self) -> None:
        """Delete and let go of pods of this installation whose job Postgres does not know, in served namespaces."""
        uids = {uid for uid in self._mirror.job_uids() if _is_uuid(uid)}
        known = await self._known(uids)
        for pod in list(self._mirror.pods()):
            if pod.metadata.labels.get(labels.JOB_UID) not in known and pod.metadata.namespace in self._served:
                with suppress(KubeError):
                    await self._free(pod)

    async def _known(self, uids: set[str]) -> set[str]:
        known: set[str] = set()
        ordered = sorted(uids)
        for start in range(0, len(ordered), BATCH):
            found = await controller.existing(self._db, [UUID(uid) for uid in ordered[start : start + BATCH]])
            known |= {str(uid) for uid in found}
        return known

    async def _free(self, pod: Pod) -> None:
        metadata = pod.metadata
        log.warning("janitor.unknown_pod", namespace=metadata.namespace, pod=metadata.name)
        self._leadership.guard(self._timeout)
        if metadata.deletion_timestamp is None:
            with suppress(NotFound, Conflict):
                await self._api.delete(POD, metadata.name, metadata.namespace, uid=metadata.uid, timeout=self._timeout)
        await release(self._api, POD, metadata, labels.EVIDENCE_FINALIZER, request_seconds=self._timeout)

    async def _forget_old_rows(self) -> None:
        now = self._clock.now()
        await idempotency.forget(self._db, now - IDEMPOTENCY_KEPT, BATCH)
        await feed.forget(self._db, before=now - FEED_KEPT, keep=FEED_ROWS_KEPT, limit=FEED_BATCH)
        await autoscaler_runs.forget(self._db, before=now - RUNS_KEPT_FOR, keep=RUNS_KEPT, limit=BATCH)


async def _repeat(every: float, action: Callable[[], Awaitable[None]]) -> None:
    for _ in rounds():
        try:
            await action()
        except DatabaseUnavailable as error:
            log.warning("janitor.database_unavailable", error=str(error))
        await asyncio.sleep(every)


def _is_uuid(text: str) -> bool:
    with suppress(ValueError):
        return str(UUID(text)) == text
    return False
