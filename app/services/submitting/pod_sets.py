"""Refuses jobs of more pod sets than the Kueue of the cluster accepts, as far as the controller has recorded it."""

from app.db import queues
from app.db.postgres.engine import Database
from app.domain.plan import JobPlan
from app.domain.queueing.requests import DEFAULT_QUEUE, check_pod_sets, requested_queue
from app.domain.queueing.workload import MOST_UNMERGED, pod_sets
from app.domain.status.observed import KueueState


class PodSetCheck:
    """Every known version of Kueue accepts MOST_UNMERGED pod sets, so a job of fewer costs no query."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def __call__(self, plan: JobPlan) -> None:
        """Check the queue that the job requests, or that its namespace has by default.

        Raises:
            InvalidManifest: Kueue would refuse the Workload of the job.
        """
        if len(plan.tasks) <= MOST_UNMERGED:
            return
        count = len(pod_sets(plan))
        if count <= MOST_UNMERGED:
            return
        known = await queues.read_kueue(self._db)
        if known is None or known.most_pod_sets is None or known.state is KueueState.ABSENT:
            return
        names = {DEFAULT_QUEUE, *([plan.queue.name] if plan.queue is not None else [])}
        rows = await queues.read(self._db, plan.identity.namespace, names)
        if requested_queue(plan, rows) is not None or DEFAULT_QUEUE in rows:
            check_pod_sets(count, known.most_pod_sets)
