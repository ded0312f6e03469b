"""Rows for tests of lists, filters of all sorts, and the number of rows that a statement reads."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

import asyncpg

from app.domain.access.namespaces import NamespaceSet
from app.domain.kubernetes.selectors import parse_selector
from app.domain.listing import ListItem
from tests.db.factories import NOW

FILL_JOBS = """
INSERT INTO jobs (uid, namespace, name, kind, api_version, manifest, labels, created_at, created_by, created_by_id,
                  phase, reason, message, quiet, status, finished_at, deleted_at)
SELECT md5(n::text)::uuid, (ARRAY['team-a', 'team-a', 'team-b', 'kube-system', 'team-c'])[1 + n % 5],
       CASE WHEN n % 700 = 4 THEN 'rare-' ELSE 'job-' END || md5(n::text),
       CASE WHEN n % 900 = 6 THEN 'MxJob' ELSE 'GenericJob' END, 'v1', '{}',
       jsonb_build_object('team', 'vision', 'tier', 't' || n % 3) || CASE WHEN n % 800 = 10 THEN '{"rare": "yes"}' ELSE
       '{}'::jsonb END, $1::timestamptz + n / 2 * interval '1 second', 'me',
       CASE WHEN n % 1000 = 14 THEN 'token:rare' WHEN n % 2 = 0 THEN 'token:often' END, phase, '', '', n % 150 <> 12,
       CASE WHEN n % 300 = 12 THEN '{"still_running": 2}' ELSE '{}'::jsonb END
       || CASE WHEN n % 2 = 1 THEN '{}' WHEN n % 800 = 8 THEN '{"queueing": {"name": "rare"}}'
          ELSE '{"queueing": {"name": "often"}}' END::jsonb,
       CASE WHEN phase <> 'Running' THEN $1::timestamptz + n * interval '1 second' END,
       CASE WHEN n % 4 = 1 THEN now() END
FROM (SELECT n, CASE WHEN n % 600 = 11 THEN 'Running' WHEN n % 500 = 12 THEN 'Failed' ELSE 'Succeeded' END AS phase
      FROM generate_series(1, $2::integer) AS n) AS numbered
"""
FILL_SAMPLES = """
INSERT INTO samples (uid, kind, namespace, name, api_version, manifest, set_name, created_at, created_by, phase, reason,
                     message, finished_at, delete_requested_at)
SELECT md5(kind || n)::uuid, kind, 'team-' || n % 3, 'job-' || md5(n::text), 'v1', '{}', 's' || n % 40,
       $1::timestamptz + n / 2 * interval '1 second', 'me', '', '', '',
       CASE WHEN kind = 'SampleJob' THEN $1::timestamptz + n * interval '1 second' END,
       CASE WHEN n % 4 = 1 THEN now() END
FROM generate_series(1, $2::integer) AS n, unnest(ARRAY['SampleSet', 'SampleJob']) AS kind
"""
AT_300 = NOW + timedelta(seconds=300)
TEAMS = NamespaceSet.of("team-a", "team-b")
FILTERS: dict[str, dict[str, Any]] = {
    "none": {},
    "namespace": {"namespaces": NamespaceSet.of("team-a")},
    "namespaces": {"namespaces": TEAMS},
    "absent namespace": {"namespaces": NamespaceSet.of("team-x")},
    "never": {"namespaces": NamespaceSet(never=frozenset({"team-a"}))},
    "kind": {"kinds": ["GenericJob"]},
    "rare kind": {"kinds": ["MxJob"]},
    "absent kind": {"kinds": ["DIJob"]},
    "phase": {"phases": ["Succeeded"]},
    "rare phases": {"phases": ["Failed", "Running"]},
    "absent phase": {"phases": ["TimedOut"]},
    "absent live phase": {"phases": ["Pending"]},
    "label": {"labels": parse_selector("team=vision")},
    "rare label": {"labels": parse_selector("rare in (yes,no)")},
    "absent label": {"labels": parse_selector("team=speech")},
    "label exists": {"labels": parse_selector("rare")},
    "no such label": {"labels": parse_selector("!team")},
    "another value": {"labels": parse_selector("rare!=yes,tier notin (t0)")},
    "name": {"name": "job-" + "c4ca4238a0b923820dcc509a6f75849b"},
    "prefix": {"prefix": "job-"},
    "rare prefix": {"prefix": "rare-"},
    "search": {"search": "ab"},
    "creator": {"creator_id": "token:often"},
    "rare creator": {"creator_id": "token:rare"},
    "absent creator": {"creator_id": "user:https://id.example#nobody"},
    "name of the creator": {"creator_name": "me"},
    "absent name of the creator": {"creator_name": "you"},
    "queue": {"queue": "often"},
    "rare queue": {"queue": "rare"},
    "absent queue": {"queue": "none"},
    "absent search": {"search": "nothing"},
    "uids": {"uids": [UUID("c4ca4238a0b923820dcc509a6f75849b"), UUID("c81e728d9d4c2f636f067f89cc14862c")]},
    "deleted": {"deleted": True},
    "created": {"created_after": NOW + timedelta(seconds=20), "created_before": AT_300},
    "finished": {"finished_after": AT_300},
    "still running": {"still_running": True},
    "finished early": {"finished_before": NOW + timedelta(seconds=10)},
}


@asynccontextmanager
async def filled(url: str, rows: int, *, analyze: bool = True) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(url, timeout=60)
    await connection.execute(FILL_JOBS, NOW, rows)
    await connection.execute(FILL_SAMPLES, NOW, rows // 4)
    if analyze:
        await connection.execute("ANALYZE jobs, samples")
    try:
        yield connection
    finally:
        await connection.close()


class Explained:
    """A connection that executes each statement also under EXPLAIN, and adds up the rows that it reads of a table."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self.examined = 0
        self.plans: list[str] = []
        self.statements: list[str] = []

    async def fetch(self, statement: str, *arguments: Any) -> Any:
        await self._explain(statement, arguments)
        return await self._connection.fetch(statement, *arguments)

    async def fetchrow(self, statement: str, *arguments: Any) -> Any:
        await self._explain(statement, arguments)
        return await self._connection.fetchrow(statement, *arguments)

    async def execute(self, statement: str) -> None:
        await self._connection.execute(statement)

    async def fetchval(self, statement: str, *arguments: Any) -> Any:
        await self._explain(statement, arguments)
        return await self._connection.fetchval(statement, *arguments)

    async def _explain(self, statement: str, arguments: Any) -> None:
        text = await self._connection.fetchval(f"EXPLAIN (ANALYZE, TIMING off, FORMAT json) {statement}", *arguments)
        plan = json.loads(text)[0]["Plan"] if isinstance(text, str) else text[0]["Plan"]
        self.examined += rows_read(plan)
        self.plans.append(json.dumps(plan, indent=1))
        self.statements.append(statement)


def rows_read(plan: dict[str, Any]) -> int:
    """The entries of tables and indexes that a plan and its parts read."""
    own = 0
    if "Relation Name" in plan or "Index Name" in plan:
        removed = plan.get("Rows Removed by Filter", 0) + plan.get("Rows Removed by Index Recheck", 0)
        own = int((plan["Actual Rows"] + removed) * plan["Actual Loops"])
    return own + sum(rows_read(part) for part in plan.get("Plans", ()))


async def stored_items(connection: Any) -> list[ListItem]:
    """The jobs as filters see them, in the order of lists."""
    rows = await connection.fetch(
        "SELECT uid, namespace, name, kind, phase, labels, created_at, created_by, created_by_id, finished_at, "
        "deleted_at, status ? 'still_running' AS still_running, "
        "coalesce(status -> 'queueing' ->> 'name', '') AS queue FROM jobs ORDER BY created_at DESC, uid DESC"
    )
    return [
        ListItem(deleted=row["deleted_at"] is not None, labels=json.loads(row["labels"]), **_taken(row)) for row in rows
    ]


def _taken(row: Any) -> dict[str, Any]:
    names = ("uid", "namespace", "name", "kind", "phase", "created_at", "created_by", "created_by_id", "finished_at")
    return {name: row[name] for name in (*names, "still_running", "queue")}
