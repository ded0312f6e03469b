"""Compares the recorded attempts with the pods that an independent watch has seen."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from app.domain.reconcile.lifecycle import NO_POD
from app.domain.vocabulary import Evidence, Outcome
from tests.crash.pods import Attempt

_NAMED: Final = 20  # attempts of each sentence: enough for a diagnosis
# An attempt says that it had no pod only if it also shows nothing that a pod alone can show.
_ROWS: Final = """
WITH rows AS (
    SELECT 'attempts' AS stored_in, job_uid, task, rank, attempt FROM attempts
    UNION ALL SELECT 'attempt_logs', job_uid, task, rank, attempt FROM attempt_logs
    UNION ALL SELECT 'attempt_events', job_uid, task, rank, attempt FROM attempt_events
)
SELECT stored_in, namespace, name, job_uid::text, task, rank, attempt, a.pod_uid, COALESCE(
    a.outcome = $1 AND a.evidence = $2 AND a.evidence_reason = $3 AND num_nonnulls(
        a.pod_uid, a.node, a.pod_ip, a.created_at, a.started_at, a.finished_at, a.exit_code
    ) = 0, false
) AS had_none
FROM rows JOIN jobs ON uid = job_uid LEFT JOIN attempts AS a USING (job_uid, task, rank, attempt)
ORDER BY stored_in, namespace, name, task, rank, attempt
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRow:
    """A row about an attempt, with the pod that the attempt says it had.

    `had_none` is True if the attempt says that it never had a pod; both are unset if the attempt itself has no row.
    """

    table: str
    namespace: str
    job: str
    attempt: Attempt
    pod_uid: str | None = None
    had_none: bool = False

    @property
    def name(self) -> str:
        key = self.attempt
        return f"{self.namespace}/{self.job}/{key.task}[{key.rank}]/{key.number}"


async def stored_rows(connection: Any) -> list[StoredRow]:
    """Read the rows of all tables about ended attempts."""
    found = await connection.fetch(_ROWS, Outcome.STOPPED, Evidence.UNAVAILABLE, NO_POD, timeout=300)
    return [
        StoredRow(
            table=row["stored_in"],
            namespace=row["namespace"],
            job=row["name"],
            attempt=Attempt(row["job_uid"], row["task"], row["rank"], row["attempt"]),
            pod_uid=row["pod_uid"],
            had_none=row["had_none"],
        )
        for row in found
    ]


def without_pod(rows: Sequence[StoredRow], seen: Mapping[Attempt, Collection[str]]) -> int:
    """Return the number of attempts that say that they never had a pod, and of which none was seen.

    A job that is deleted before the create of its decided attempt has such an attempt.
    """
    return sum(row.table == "attempts" and row.had_none and not seen.get(row.attempt) for row in rows)


def differences(rows: Sequence[StoredRow], seen: Mapping[Attempt, Collection[str]]) -> list[str]:
    """Return what the rows and the pods that were seen, by attempt, do not explain of each other, as sentences."""
    strange: dict[str, list[str]] = {}
    for row in rows:
        if not _is_explained(row, seen.get(row.attempt, ())):
            strange.setdefault(row.table, []).append(row.name)
    recorded = {row.attempt for row in rows if row.table == "attempts"}
    lost = [
        f"{attempt.job}/{attempt.task}[{attempt.rank}]/{attempt.number}" for attempt in seen if attempt not in recorded
    ]
    return [
        *(f"the table {table} has rows that no pod explains: {_name_some(names)}" for table, names in strange.items()),
        *([f"attempts that had a pod are not recorded: {_name_some(lost)}"] if lost else []),
    ]


def _is_explained(row: StoredRow, pods: Collection[str]) -> bool:
    if pods:
        return row.pod_uid in pods
    return row.had_none and row.table == "attempts"


def _name_some(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")
