"""Completes logs whose pods are gone, removes those that have expired, and deletes objects that no chunk has.

One process does this, which rendezvous hashing chooses as for a pod. Two at once do no harm.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final
from uuid import uuid4

import structlog

from app.base.cancellation import rounds
from app.db import kept_logs, log_removal
from app.db.installation import heartbeats
from app.db.kept_logs import LogWrite
from app.db.postgres.errors import DatabaseUnavailable
from app.domain.kept_logs.keys import LogKey, place_of_chunk, probe_prefix
from app.domain.kept_logs.records import GapReason, KeptLog, KeptLogState, gap_at_end
from app.domain.kubernetes.objects import Pod
from app.domain.status.pods.log_keys import log_keys
from app.log_store import LogStore, ObjectMissing, StoredObject, StoreUnavailable
from app.loops.logs import metrics
from app.loops.logs.context import LogContext
from app.loops.logs.membership import Membership

log = structlog.get_logger(__name__)

_EVERY: Final = 60.0  # seconds
_SWEEP_EVERY: Final = timedelta(days=1)
_FIRST_SWEEP: Final = timedelta(hours=1)  # after the start, because many processes live less than a day
_BATCH: Final = 500
# A follower can have written the object of a chunk, and its row not yet. Every call of it is much shorter.
_IN_FLIGHT: Final = timedelta(hours=1)
_WORK: Final = "upkeep"  # the key by which this work belongs to a process


class Upkeep:
    """`pods` returns the pods of the cluster that have logs."""

    def __init__(
        self, context: LogContext, store: LogStore, membership: Membership, pods: Callable[[], Iterable[Pod]]
    ) -> None:
        self._context = context
        self._store = store
        self._membership = membership
        self._pods = pods
        self._suspects: set[LogKey] = set()  # logs that had no pod the last time
        self._sweep_at = context.clock.now() + _FIRST_SWEEP

    async def run(self) -> None:
        """Do all of it again and again until cancelled."""
        for _ in rounds():
            await asyncio.sleep(_EVERY)
            try:
                await self.once()
            except (DatabaseUnavailable, StoreUnavailable, ObjectMissing) as error:
                log.warning("log_upkeep.failed", error=str(error))

    async def once(self) -> None:
        """Do what is due of it."""
        if not self._membership.owns(_WORK):
            return
        await self._complete_orphans()
        await self._remove_expired()
        await self._delete_objects()
        await self._sweep_if_due()

    async def _complete_orphans(self) -> None:
        """Complete the logs of which nothing more can come, because the cluster has them no more.

        A log must be without its run twice in a row: its pod can be newer than the copy of the cluster here. Another
        cluster has none of the pods.
        """
        beat = await heartbeats.read(self._context.db)
        if beat is not None and beat.state == "WrongCluster":
            return
        present = {key for pod in self._pods() for key in log_keys(pod)}
        suspects: set[LogKey] = set()
        last: LogKey | None = None
        while found := await kept_logs.following(self._context.db, last, _BATCH):
            last = found[-1].key
            for kept in found:
                if kept.key in self._suspects and kept.key not in present:
                    await self._complete(kept)
                elif kept.key not in present:
                    suspects.add(kept.key)
        self._suspects = suspects

    async def _complete(self, kept: KeptLog) -> None:
        gap = gap_at_end(kept, (), GapReason.POD_GONE)
        step = LogWrite(chunks=[gap], state=KeptLogState.COMPLETE)
        if await kept_logs.write(self._context.db, kept, step, self._context.clock.now()) is not None:
            metrics.GAPS.labels(GapReason.POD_GONE).inc()

    async def _remove_expired(self) -> None:
        db, now = self._context.db, self._context.clock.now()
        ends = self._context.retention.ends(await log_removal.namespaces(db), now)
        for namespace, before in ends.items():
            while await log_removal.remove_expired(db, namespace, before, now, _BATCH):
                await self._delete_objects()

    async def _delete_objects(self) -> None:
        while names := await log_removal.due_deletions(self._context.db, _BATCH):
            await self._store.delete(names)
            await log_removal.note_deleted(self._context.db, names)

    async def _sweep_if_due(self) -> None:
        now = self._context.clock.now()
        if now >= self._sweep_at:
            await self.sweep()
            await log_removal.recount(self._context.db)
            self._sweep_at = now + _SWEEP_EVERY

    async def sweep(self) -> None:
        """Delete the objects that no chunk has: those of writes that were overtaken, or cut off by a crash.

        Objects with other names stay: the store can also have the exports of the installation.
        """
        before = await self._store_time() - _IN_FLIGHT
        folder = f"{self._context.installation}/"
        async for page in self._store.list(folder):
            await self._delete_unknown([item for item in page if item.modified_at < before])
        await self._store.remove_unfinished(f"{folder}**/*", _IN_FLIGHT)

    async def _store_time(self) -> datetime:
        """Return the time by the clock of the store: that of objects can be hours from the one of this process."""
        probe = f"{probe_prefix(self._context.installation)}{uuid4()}"
        await self._store.put(probe, b"")
        try:
            return await self._store.modified_at(probe)
        finally:
            await self._store.delete([probe])

    async def _delete_unknown(self, objects: Sequence[StoredObject]) -> None:
        probes = [item.name for item in objects if item.name.startswith(probe_prefix(self._context.installation))]
        places = {item.name: place for item in objects if (place := place_of_chunk(item.name)) is not None}
        known = await log_removal.known_objects(self._context.db, [(*place, name) for name, place in places.items()])
        if unknown := [*probes, *(name for name in places if name not in known)]:
            await self._store.delete(unknown)
            log.info("log_store.swept", objects=len(unknown))
