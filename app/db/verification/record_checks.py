"""Checks of what belongs to objects, names and the feed: nothing is about an object that does not exist."""

from typing import Final
from uuid import UUID

from app.db.objects.records import JOB_LOGS, JOB_RECORDS, JOB_RESERVATIONS, SAMPLE_RECORDS, RecordTable
from app.db.verification.check import SAMPLES, WHOLE, Invariant, Subjects, numbering

_MANY: Final = 5000  # rows of which an object has many
# A purge deletes the rows about an object in batches, and notes that some are left.
# The uids of purged objects are forgotten, and the last entries of the feed stay, however old they are.
_LATELY: Final = "now() - interval '1 day'"
_IS_BEING_PURGED: Final = "EXISTS (SELECT FROM purged AS p WHERE p.uid = k.uid AND p.has_records)"


def _owners(records: RecordTable, objects: str) -> Invariant:
    name, key = records.table.name, records.owner
    return Invariant(
        name=f"owners-of-{name.replace('_', '-')}",
        why=f"the rows of {objects} and all rows about them are stored and deleted together",
        subjects=Subjects(
            name=f"rows of {name}",
            first=UUID(int=0),
            page=f"SELECT {key} AS key FROM {name} WHERE {key} > $1 ORDER BY {key} LIMIT $2",  # noqa: S608
            batch=_MANY,
        ),
        sql=f"""
        SELECT uid AS key, uid::text AS subject, '{name} has rows, and {objects} has none' AS found
        FROM (SELECT DISTINCT unnest($1::uuid[]) AS uid) AS k
        WHERE NOT EXISTS (SELECT FROM {objects} AS o WHERE o.uid = k.uid) AND NOT {_IS_BEING_PURGED}
        AND EXISTS (SELECT FROM {name} AS r WHERE r.{key} = k.uid)
        """,  # noqa: S608  names of tables and columns
    )


def _is_paged(records: RecordTable) -> bool:
    """Return whether an index finds the rows by their owner. Totals are found by namespace."""
    return next(iter(records.table.primary_key)).name == records.owner


# Of two ranges that share a name, one begins within the other, so an index finds it. Names without a number
# share their stem only if they are equal.
_NAMES: Final = Subjects(
    name="rows of names",
    first=UUID(int=0),
    page="SELECT job_uid AS key FROM names WHERE job_uid > $1 ORDER BY job_uid LIMIT $2",
    batch=_MANY,
)
_KEYS: Final = Subjects(
    name="idempotency keys",
    first='["", ""]',
    page="""
    SELECT jsonb_build_array(scope, key)::text AS key FROM idempotency_keys
    WHERE (scope, key) > ($1::text::jsonb ->> 0, $1::text::jsonb ->> 1) ORDER BY scope, idempotency_keys.key LIMIT $2
    """,
)
_FEED: Final = Subjects(
    name="entries of the feed",
    first=-1,
    page="SELECT seq AS key FROM job_events WHERE seq > $1 ORDER BY seq LIMIT $2",
    batch=_MANY,
)

RECORD_CHECKS: Final[tuple[Invariant, ...]] = (
    *(_owners(each, "jobs") for each in (*JOB_RECORDS, *JOB_LOGS, *JOB_RESERVATIONS) if _is_paged(each)),
    *(_owners(each, "samples") for each in SAMPLE_RECORDS),
    Invariant(
        name="names-apart",
        why="no two live jobs have the same name of an object in a namespace",
        subjects=_NAMES,
        sql="""
        SELECT a.job_uid AS key, format('%s/%s %s', a.namespace, a.kind, a.name) AS subject,
            format('held by the jobs %s and %s', a.job_uid, b.job_uid) AS found
        FROM names AS a JOIN names AS b ON (b.namespace, b.stem, b.kind) = (a.namespace, a.stem, a.kind)
            AND b.number BETWEEN a.number AND CASE WHEN a.number < 0 THEN a.number ELSE a.number + a.count - 1 END
            AND b.job_uid <> a.job_uid AND (b.number > a.number OR b.job_uid > a.job_uid) AND NOT b.released
        WHERE a.job_uid = ANY($1) AND NOT a.released
        """,
    ),
    Invariant(
        name="idempotency-keys",
        why="a key and the object that it has created are stored in one transaction",
        subjects=_KEYS,
        sql=f"""
        SELECT k AS key, k AS subject, 'its object ' || i.job_uid || ' does not exist' AS found
        FROM unnest($1::text[]) AS k
        JOIN idempotency_keys AS i ON (i.scope, i.key) = (k::jsonb ->> 0, k::jsonb ->> 1)
        WHERE i.created_at > {_LATELY} AND NOT EXISTS (SELECT FROM jobs WHERE uid = i.job_uid)
        AND NOT EXISTS (SELECT FROM samples WHERE uid = i.job_uid)
        AND NOT EXISTS (SELECT FROM purged WHERE uid = i.job_uid)
        """,  # noqa: S608  a constant
    ),
    Invariant(
        name="feed-numbers",
        why="the publisher numbers committed entries without gaps, and only the oldest are deleted",
        subjects=_FEED,
        sql="""
        SELECT k AS key, 'entry ' || k AS subject,
            format('the entry before it is missing, or it is not within %s and %s', f.first, f.last) AS found
        FROM unnest($1::bigint[]) AS k CROSS JOIN feed AS f
        WHERE EXISTS (SELECT FROM job_events AS e WHERE e.seq = k) AND (k NOT BETWEEN f.first AND f.last
            OR k > f.first AND NOT EXISTS (SELECT FROM job_events AS e WHERE e.seq = k - 1))
        """,
    ),
    Invariant(
        name="feed-bounds",
        why="the stored entries of the feed are those between its bounds",
        subjects=WHOLE,
        sql="""
        SELECT 1 AS key, 'the feed' AS subject,
            format('the bounds are %s and %s, the numbers %s to %s', f.first, f.last, e.low, e.high) AS found
        FROM feed AS f CROSS JOIN (SELECT min(seq) AS low, max(seq) AS high FROM job_events) AS e
        WHERE 1 = ANY($1::int[])
        AND CASE WHEN e.low IS NULL THEN f.first <> f.last + 1 ELSE (e.low, e.high) <> (f.first, f.last) END
        """,
    ),
    Invariant(
        name="feed-backlog",
        why="a committed entry gets its number within a second",
        subjects=WHOLE,
        sql="""
        SELECT 1 AS key, 'entry with the id ' || id AS subject, 'it has no number' AS found
        FROM (SELECT id FROM job_events WHERE seq IS NULL AND 1 = ANY($1::int[]) ORDER BY id LIMIT 1000) AS waiting
        """,
    ),
    Invariant(
        name="feed-objects",
        why="an entry shares the transaction of its change, so its object has at least that version",
        subjects=_FEED,
        sql=f"""
        SELECT e.seq AS key, 'entry ' || e.seq AS subject,
            format('it has version %s of %s %s, which has version %s', e.version, e.resource, e.job_uid,
                   COALESCE(o.version::text, 'none')) AS found
        FROM job_events AS e LEFT JOIN LATERAL (
            SELECT version FROM jobs WHERE uid = e.job_uid UNION ALL SELECT version FROM samples WHERE uid = e.job_uid
        ) AS o ON true
        WHERE e.seq = ANY($1::bigint[]) AND (o.version IS NULL AND e.at > {_LATELY} OR o.version < e.version)
        AND NOT EXISTS (SELECT FROM purged WHERE uid = e.job_uid)
        """,  # noqa: S608  a constant
    ),
    Invariant(
        name="planned-pods",
        why="the number of planned pods of a namespace is that of its live jobs",
        subjects=WHOLE,
        sql="""
        SELECT 1 AS key, COALESCE(c.namespace, j.namespace) AS subject,
            format('%s pods are counted, and live jobs plan %s', COALESCE(c.pods, 0), COALESCE(j.pods, 0)) AS found
        FROM (SELECT namespace, sum(pods) AS pods FROM planned_pods GROUP BY namespace) AS c
        FULL JOIN (
            SELECT namespace, sum(planned_pods) AS pods FROM jobs WHERE NOT quiet AND finished_at IS NULL
            GROUP BY namespace
        ) AS j USING (namespace)
        WHERE 1 = ANY($1::int[]) AND COALESCE(c.pods, 0) <> COALESCE(j.pods, 0)
        """,
    ),
    Invariant(
        name="waits-for-room",
        why="a job that waits for room is live and plans no pods",
        subjects=WHOLE,
        sql="""
        SELECT 1 AS key, format('%s/%s %s', j.namespace, j.name, j.uid) AS subject,
            format('it waits for room with %s planned pods in the phase %s', j.planned_pods, j.phase) AS found
        FROM room_waits AS w JOIN jobs AS j ON j.uid = w.job_uid
        WHERE 1 = ANY($1::int[]) AND (j.planned_pods <> 0 OR j.finished_at IS NOT NULL)
        """,
    ),
    numbering(
        "sample-history-numbers",
        "a change and its history row share a transaction, so the history of a sample has no gap",
        SAMPLES,
        table="samples",
        rows="sample_history",
        key="uid",
        count="history_count",
    ),
    numbering(
        "sample-event-numbers",
        "the events of a sample are numbered by its row",
        SAMPLES,
        table="samples",
        rows="sample_events",
        key="uid",
        count="event_count",
    ),
    Invariant(
        name="sample-names-apart",
        why="no two samples of a kind that have objects have the same name in a namespace",
        subjects=SAMPLES,
        sql="""
        SELECT a.uid AS key, format('%s/%s %s', a.namespace, a.kind, a.name) AS subject,
            format('held by %s and %s', a.uid, b.uid) AS found
        FROM samples AS a JOIN samples AS b ON (b.kind, b.namespace, b.name) = (a.kind, a.namespace, a.name)
            AND b.uid > a.uid AND b.gone_at IS NULL
        WHERE a.uid = ANY($1) AND a.gone_at IS NULL
        """,
    ),
)
