"""Explains the number of rows of each table after a run."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from app.loops.maintenance.sweeper import FEED_ROWS_KEPT, RUNS_KEPT

_SIZES: Final = """
SELECT relname, pg_total_relation_size(relid) AS bytes FROM pg_stat_user_tables
WHERE relname NOT IN ('alembic_version', 'schema_revision')
"""
_FOREVER: Final = "stays with its job"
_CONSTANT: Final = "constant"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The most rows that a table has for each accepted job, for each pod, for each live job, and otherwise.

    `without_pod` are those for each attempt that says that it never had a pod.
    """

    reason: str
    job: int = 0
    pod: int = 0
    without_pod: int = 0
    live: int = 0
    others: int = 0

    def limit(self, *, jobs: int, pods: int, without_pod: int, live: int) -> int:
        return self.job * jobs + self.pod * pods + self.without_pod * without_pod + self.live * live + self.others


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSize:
    rows: int
    bytes: int


# A paused job is submitted, paused and cancelled. One with a pod also starts, runs and ends.
EXPLANATIONS: Final[Mapping[str, Explanation]] = {
    "jobs": Explanation(reason="stays until the time of its retention is over", job=1),
    "status_history": Explanation(reason=_FOREVER, job=6, pod=4),
    "conditions": Explanation(reason=_FOREVER, job=5),
    "replicas": Explanation(reason=_FOREVER, job=1),
    "attempts": Explanation(reason=f"{_FOREVER}: one for each pod, also if it was never created", pod=1, without_pod=1),
    "attempt_logs": Explanation(reason=f"{_FOREVER}: one for each container of a pod", pod=1),
    "attempt_events": Explanation(reason=f"{_FOREVER}: one for each pod", pod=1),
    "scale_records": Explanation(reason=_FOREVER),
    "job_events": Explanation(reason=f"24 hours, and the last {FEED_ROWS_KEPT}", job=10, pod=10, others=FEED_ROWS_KEPT),
    "idempotency_keys": Explanation(reason="24 hours", job=1),
    "names": Explanation(reason="until the objects of the job are gone", live=4),
    "planned_pods": Explanation(reason="changes, which a reader folds into one", live=2, others=512),
    "autoscaler_runs": Explanation(
        reason=f"the last {RUNS_KEPT}, besides those of 7 days with a change", others=RUNS_KEPT
    ),
    "purged": Explanation(reason="one for each purged object; none in this run"),
    "samples": Explanation(reason="none in this run"),
    "sample_history": Explanation(reason="none in this run"),
    "sample_events": Explanation(reason="none in this run"),
    "feed": Explanation(reason=_CONSTANT, others=1),
    "installation": Explanation(reason=_CONSTANT, others=1),
    "timekeeping": Explanation(reason=_CONSTANT, others=1),
    "leases": Explanation(reason=_CONSTANT, others=10),
    "heartbeats": Explanation(reason=_CONSTANT, others=10),
    "api_tokens": Explanation(reason=_CONSTANT, others=1),
    "kueue": Explanation(reason=_CONSTANT, others=1),
    "queues": Explanation(reason="one for each LocalQueue of the cluster; none in this run"),
    "kept_logs": Explanation(reason="one for each run of a container; none in this run, which has no log store"),
    "log_chunks": Explanation(reason="one for each part of a kept log; none in this run"),
    "kept_log_totals": Explanation(reason="one for each job and namespace with kept logs; none in this run"),
    "log_deletions": Explanation(reason="until the object is deleted; none in this run"),
    "log_keepers": Explanation(reason="one for each process that keeps logs; none in this run"),
    "room_waits": Explanation(reason="until the job has room; none in this run, whose namespace has no limit"),
    "usage_days": Explanation(reason="stays: one for each day, group of jobs and resource", others=30),
    "usage_groups": Explanation(reason="stays: one for each namespace, user, kind, queue and labels", others=5),
    "usage_months": Explanation(reason="stays: one for each month, group of jobs and resource", others=30),
    "usage_rates": Explanation(reason="while the job waits or holds nodes", live=8),
    "cluster_namespaces": Explanation(reason="one for each namespace of the cluster", others=100),
}


async def sizes(connection: Any) -> dict[str, TableSize]:
    """Count the rows of all tables."""
    found = {}
    for row in await connection.fetch(_SIZES):
        rows = await connection.fetchval(f'SELECT count(*) FROM "{row["relname"]}"', timeout=300)
        found[row["relname"]] = TableSize(rows=rows, bytes=row["bytes"])
    return found


def unexplained(found: Mapping[str, TableSize], *, jobs: int, pods: int, without_pod: int, live: int) -> list[str]:
    """Return the tables with more rows than their explanation allows, or without one, as sentences."""
    limits = dict.fromkeys(found, 0) | {
        table: explanation.limit(jobs=jobs, pods=pods, without_pod=without_pod, live=live)
        for table, explanation in EXPLANATIONS.items()
    }
    return [
        f"the table {table} has {size.rows} rows; {limits[table]} are explained"
        for table, size in found.items()
        if size.rows > limits[table]
    ]
