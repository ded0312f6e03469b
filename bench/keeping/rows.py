"""Stores ended jobs by SQL, each with the rows of a job of one pod that failed.

Indexes are built after the rows: with them, the rows of a million jobs take many times as long.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final

import asyncpg

_AT_ONCE: Final = 10_000
_WRITERS: Final = 2
_SECONDS: Final = 600.0  # for a statement
_DAY: Final = "interval '1 day'"

# One job of one pod that failed: it has six rows of history and three conditions. Every invariant holds.
_FILL: Final = """
WITH n AS (SELECT n FROM generate_series(1, $1::int) AS n), j AS (
    INSERT INTO jobs ({columns}) SELECT {values} FROM template, n RETURNING uid, finished_at AS at
), h AS (
    INSERT INTO status_history (job_uid, seq, at, phase, reason, message, actor)
    SELECT uid, seq, at, CASE seq WHEN 6 THEN 'Failed' ELSE 'Running' END, 'ReplicasStarted', 'all replicas run',
        'controller'
    FROM j, generate_series(1, 6) AS seq
), c AS (
    INSERT INTO conditions (job_uid, type, position, status, reason, message, last_transition_at, observed_generation)
    SELECT uid, type, place, status, 'Failed', 'the replica worker[0] failed', at, 1
    FROM j, (VALUES (1, 'Running', 'False'), (2, 'Completed', 'False'), (3, 'Failed', 'True')) AS c(place, type, status)
), r AS (
    INSERT INTO replicas (job_uid, task, rank, pod_name, attempt, phase, evidence, restarts, disruptions)
    SELECT uid, 'worker', 0, 'train-worker-0', 1, 'Failed', 'Captured', 0, 0 FROM j
), a AS (
    INSERT INTO attempts (job_uid, task, rank, attempt, phase, evidence, containers)
    SELECT uid, 'worker', 0, 1, 'Failed', 'Captured', '[{{"name": "main", "state": "terminated", "exit_code": 1}}]'
    FROM j
), l AS (
    INSERT INTO attempt_logs (job_uid, task, rank, attempt, container, tail)
    SELECT uid, 'worker', 0, 1, 'main', convert_to(repeat('a line of the log' || chr(10), 20), 'UTF8') FROM j
)
INSERT INTO attempt_events (job_uid, task, rank, attempt, events)
SELECT uid, 'worker', 0, 1, '[{{"reason": "Scheduled", "message": "assigned to a node"}}]' FROM j
"""
TABLES: Final = (
    *("jobs", "status_history", "conditions", "replicas", "attempts", "attempt_logs", "attempt_events", "purged"),
    "job_events",
)
_INDEXES: Final = """
SELECT i.indexrelid::regclass::text AS name, i.indrelid::regclass::text AS of_table, c.conname AS constraint_name,
    COALESCE(pg_get_constraintdef(c.oid), pg_get_indexdef(i.indexrelid)) AS definition
FROM pg_index AS i LEFT JOIN pg_constraint AS c ON c.conindid = i.indexrelid
WHERE i.indrelid::regclass::text = ANY($1) ORDER BY 1
"""
# Triggers read each manifest. The rows have what they would derive, because the template has it.
_FAST: Final = (
    "SET session_replication_role = replica; SET synchronous_commit = off; SET maintenance_work_mem = '512MB'"
)


class Rows:
    """The rows of ended jobs, which are copies of a submitted one."""

    def __init__(self, url: str, fill: str) -> None:
        self._url = url
        self._fill = fill

    @classmethod
    async def like(cls, url: str, namespace: str, namespaces: int) -> "Rows":
        """Return rows like the job that was submitted to a namespace, in so many others."""
        connection: Any = await asyncpg.connect(url, timeout=60)
        try:
            await connection.execute(
                f"CREATE UNLOGGED TABLE template AS SELECT * FROM jobs WHERE namespace = '{namespace}' LIMIT 1"
            )
            found = await connection.fetch(
                "SELECT column_name FROM information_schema.columns "
                "WHERE table_name = 'jobs' AND is_generated = 'NEVER'"
            )
        finally:
            await connection.close()
        other = {
            "uid": "gen_random_uuid()",
            "namespace": f"'team-' || n % {namespaces}",
            "name": "'job-' || n",
            "phase": "'Failed'",
            "quiet": "true",
            "history_count": "6",
            "observed_generation": "1",
            "status": """jsonb_set(status, '{aggregate}', '{"Failed": 1}')""",
            "created_at": "$2::timestamptz",
            "finished_at": f"$2::timestamptz + random() * {_DAY}",
            "gone_at": f"$2::timestamptz + 2 * {_DAY}",
            "intent_at": "NULL",
        }
        columns = [row["column_name"] for row in found]
        values = [other.get(column, column) for column in columns]
        return cls(url, _FILL.format(columns=", ".join(columns), values=", ".join(values)))

    async def add(self, jobs: int, *, days_ago: float) -> None:
        """Store ended jobs of one day."""
        async with self._writers(1) as (connection,):
            await self._add(connection, jobs, days_ago)

    async def add_days(self, of_day: int, days: int) -> None:
        """Store the jobs of each of the last days, with `of_day` on each. Build the indexes afterwards."""
        async with self._writers(_WRITERS) as connections:
            first = connections[0]
            for statement in ("ALTER SYSTEM SET autovacuum = off", "SELECT pg_reload_conf()"):
                await first.execute(statement)
            indexes = await first.fetch(_INDEXES, TABLES)
            for index in indexes:
                table, constraint = index["of_table"], index["constraint_name"]
                await first.execute(
                    f"ALTER TABLE {table} DROP CONSTRAINT {constraint}" if constraint else f"DROP INDEX {index['name']}"
                )
            left = iter([day + 0.9 for day in range(days)])

            async def fill(connection: Any) -> None:
                for day in left:
                    await self._add(connection, of_day, day)

            await asyncio.gather(*map(fill, connections))
            unbuilt = iter(
                f"ALTER TABLE {index['of_table']} ADD CONSTRAINT {index['constraint_name']} {index['definition']}"
                if index["constraint_name"]
                else index["definition"]
                for index in indexes
            )

            async def build(connection: Any) -> None:
                for statement in unbuilt:
                    await connection.execute(statement, timeout=_SECONDS)

            await asyncio.gather(*map(build, connections))
            await first.execute("VACUUM ANALYZE", timeout=_SECONDS)
            for statement in ("ALTER SYSTEM RESET autovacuum", "SELECT pg_reload_conf()"):
                await first.execute(statement)

    async def _add(self, connection: Any, jobs: int, days_ago: float) -> None:
        day = await connection.fetchval("SELECT now() - $1::float * interval '1 day'", days_ago)
        for start in range(0, jobs, _AT_ONCE):
            await connection.execute(self._fill, min(_AT_ONCE, jobs - start), day, timeout=_SECONDS)

    @asynccontextmanager
    async def _writers(self, number: int) -> AsyncIterator[list[Any]]:
        async with AsyncExitStack() as stack:
            connections: list[Any] = []
            for _ in range(number):
                connections.append(await asyncpg.connect(self._url, timeout=60))
                stack.push_async_callback(connections[-1].close)
                await connections[-1].execute(_FAST)
            yield connections
