"""Whether the logs of a pod are kept whole, so that the pod may be released.

The evidence of its attempt is stored before. So a log store that does not work costs the rest of a log, and never holds
a job back for longer than the deadline.
"""

from typing import Final

import structlog

from app.base.caches import BoundedCache
from app.base.clock import Clock
from app.db import kept_logs, log_keepers
from app.db.postgres.engine import Database
from app.domain.kept_logs.sharing import owner_of
from app.domain.kubernetes.objects import Pod
from app.domain.status.pods.log_keys import attempt_key, log_keys
from app.loops import metrics

log = structlog.get_logger(__name__)

_REMEMBERED: Final = 200_000  # pods that wait: more than a cluster has


class WholeLogs:
    """Answers for pods that have ended. `deadline` is in seconds; None if no whole logs are kept."""

    def __init__(self, db: Database, clock: Clock, deadline: float | None) -> None:
        self._db = db
        self._clock = clock
        self._deadline = deadline
        # Only in memory: a new controller gives each pod the full time again.
        self._since: BoundedCache[str, float] = BoundedCache(_REMEMBERED)

    async def may_release(self, pod: Pod) -> bool:
        """Return whether the pod has no log that is still being written, or waiting for that has taken too long."""
        if self._deadline is None or await self._are_kept(pod):
            return True
        uid, now = pod.metadata.uid, self._clock.monotonic()
        since = self._since.get(uid)
        if since is None:
            self._since.put(uid, now)
        elif now - since >= self._deadline:
            metrics.UNKEPT_LOGS.labels("deadline").inc()
            log.warning("pod.released_before_logs_are_kept", pod=pod.metadata.name)
            return True
        if await self._store_fails(uid):
            metrics.UNKEPT_LOGS.labels("store").inc()
            return True
        return False

    async def _are_kept(self, pod: Pod) -> bool:
        attempt, keys = attempt_key(pod), log_keys(pod)
        if attempt is None or not keys:
            return True
        known = await kept_logs.of_attempt(self._db, attempt.job_uid, attempt.replica, attempt.attempt)
        return {kept.key for kept in known if kept.is_final}.issuperset(keys)

    async def _store_fails(self, pod_uid: str) -> bool:
        """Return whether the process that keeps the logs of the pod cannot write to the log store.

        Another one can still believe that it can, because it keeps no logs. Without a process, one may be starting.
        """
        errors = {keeper.id: keeper.store_error for keeper in await log_keepers.live(self._db)}
        owner = owner_of(pod_uid, errors)
        return owner is not None and errors[owner] is not None
