"""Selective filters of lists read few rows, also over all namespaces: the planner uses an index for them."""

from datetime import timedelta
from typing import Any

import asyncpg

from app.db.jobs.rows import STORED_JOBS
from app.db.queries import Query
from app.db.resources import Stored, restrict
from app.domain.listing import Criteria
from tests.db.factories import NOW
from tests.db.samples.factories import JOBS as SAMPLE_JOBS
from tests.db.samples.factories import SETS

ROWS = 1000
FILL_JOBS = f"""
INSERT INTO jobs (uid, namespace, name, kind, api_version, manifest, created_at, created_by, phase, reason, message,
                  quiet)
SELECT gen_random_uuid(), 'team-' || n % 50, 'job-' || md5(n::text), 'GenericJob', 'v1', '{{}}',
       $1::timestamptz + n * interval '1 second', 'me', 'Succeeded', '', '', true
FROM generate_series(1, {ROWS}) AS n
"""
FILL_SAMPLES = f"""
INSERT INTO samples (uid, kind, namespace, name, api_version, manifest, set_name, created_at, created_by, phase, reason,
                     message, finished_at)
SELECT gen_random_uuid(), kind, 'team-' || n % 50, 'job-' || md5(n::text), 'v1', '{{}}', 's',
       $1::timestamptz + n * interval '1 second', 'me', '', '', '',
       CASE WHEN kind = 'SampleJob' THEN $1::timestamptz + n * interval '1 second' END
FROM generate_series(1, {ROWS}) AS n, unnest(ARRAY['SampleSet', 'SampleJob']) AS kind
"""
LATE = NOW + timedelta(seconds=ROWS - 3)
EARLY = NOW + timedelta(seconds=3)
CASES: list[tuple[Stored[Any], Criteria, str]] = [
    (STORED_JOBS, Criteria(name="job-abc"), "jobs_by_name_anywhere"),
    (STORED_JOBS, Criteria(prefix="job-abc"), "jobs_by_name_anywhere"),
    (SETS, Criteria(name="job-abc"), "samples_by_name_anywhere"),
    (SETS, Criteria(prefix="job-abc"), "samples_by_name_anywhere"),
    (SAMPLE_JOBS, Criteria(name="job-abc"), "samples_by_name_anywhere"),
    (SAMPLE_JOBS, Criteria(finished_after=LATE), "samples_finished"),
    (SAMPLE_JOBS, Criteria(finished_before=EARLY), "samples_finished"),
]


async def test_a_selective_filter_uses_an_index(database_url: str) -> None:
    connection = await asyncpg.connect(database_url, timeout=60)
    await connection.execute(FILL_JOBS, NOW)
    await connection.execute(FILL_SAMPLES, NOW)
    await connection.execute("ANALYZE jobs, samples")
    for stored, where, index in CASES:
        query = Query(f"SELECT * FROM {stored.table}", stored.alias)
        query.add(stored.only)
        restrict(query, stored.deleted, where)
        plan = await connection.fetch(f"EXPLAIN {query.text(101)}", *query.arguments)
        assert f" {index} " in "\n".join(line[0] for line in plan), (stored.resource, where)
    await connection.close()
