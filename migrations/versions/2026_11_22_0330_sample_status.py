"""The conditions, the begin and the end of SampleSets and SampleJobs, as jobs have them; indexes for filters of lists.

Stored rows get what their history tells: the begin and the end of a SampleJob, and the conditions of SampleJobs that
have ended and of everything that was deleted. The conditions of all others follow with the controller's next reconcile.
"""

from collections.abc import Sequence

from alembic import op

revision: str = "0006"
down_revision: str | None = "0005"
branch_labels: str | Sequence[str] | None = None
depends_on: str | Sequence[str] | None = None

blocks_writes = "and reads of samples, while it rewrites all of them"
undoing_loses = "conditions, start and end of samples"

COLUMNS = ("conditions", "started_at", "finished_at")
# For the filters `name`, `prefix`, `finishedAfter` and `finishedBefore` over all namespaces.
INDEXES = {
    "jobs_by_name_anywhere": "jobs (name text_pattern_ops, created_at DESC, uid DESC)",
    "samples_by_name_anywhere": "samples (kind, name, created_at DESC, uid DESC)",
    "samples_finished": "samples (kind, finished_at) WHERE finished_at IS NOT NULL",
}

# The lines of a try are those after the last line without a phase: a job that is tried again has none at first. A line
# that only repeats the phase, such as an edit, may follow the line with which a phase began.
TIMES = """
UPDATE samples AS s
SET started_at = (
        SELECT min(at) FROM sample_history AS h
        WHERE h.uid = s.uid
          AND h.seq > (SELECT COALESCE(max(seq), 0) FROM sample_history AS o WHERE o.uid = s.uid AND o.phase = '')),
    finished_at = CASE
        WHEN s.phase IN ('Succeeded', 'Failed') THEN (
            SELECT min(at) FROM sample_history AS h
            WHERE h.uid = s.uid
              AND h.seq > (SELECT COALESCE(max(seq), 0) FROM sample_history AS o
                           WHERE o.uid = s.uid AND o.phase <> s.phase))
        ELSE s.gone_at END
WHERE s.kind = 'SampleJob' AND s.phase <> ''
"""
# Nothing reconciles a deleted object again. A job that was deleted before it ended has no Completed and no Failed.
CONDITIONS = """
UPDATE samples AS s
SET conditions = (
    SELECT jsonb_agg(jsonb_build_object(
        'type', c.type, 'status', CASE WHEN c.holds THEN 'True' ELSE 'False' END, 'reason', c.reason,
        'message', c.message, 'last_transition_at', c.at, 'observed_generation', s.observed_generation))
    FROM ({found}) AS c(type, holds, reason, message, at))
WHERE {where}
"""
ENDED_JOBS = CONDITIONS.format(
    found="""VALUES ('Running', false, s.phase, s.message, s.finished_at),
                    ('Completed', s.phase = 'Succeeded', s.phase, s.message, s.finished_at),
                    ('Failed', s.phase = 'Failed', s.phase, s.message, s.finished_at)""",
    where="s.kind = 'SampleJob' AND s.phase IN ('Succeeded', 'Failed') AND s.finished_at IS NOT NULL",
)
DELETED_JOBS = CONDITIONS.format(
    found="VALUES ('Running', false, 'Deleted', '', s.gone_at)",
    where="s.kind = 'SampleJob' AND s.phase = 'Running' AND s.gone_at IS NOT NULL",
)
DELETED_SETS = CONDITIONS.format(
    found="""SELECT * FROM (VALUES ('Ready', false, 'Deleted', '', s.gone_at),
                                   ('Synced', false, 'Deleted', '', s.gone_at)) AS d(type, holds, reason, message, at)
             WHERE d.type = 'Ready' OR s.record ->> 'synced' = 'true'""",
    where="s.kind = 'SampleSet' AND s.gone_at IS NOT NULL",
)
# Every object is shown otherwise than before, so that no client may keep what it has under an old ETag.
VERSIONS = """
WITH changed AS (UPDATE samples SET version = version + 1 RETURNING kind, namespace, uid, version)
INSERT INTO job_events (at, type, resource, namespace, job_uid, version)
SELECT clock_timestamp(), 'status', lower(kind) || 's', namespace, uid, version FROM changed
"""


def upgrade() -> None:
    op.execute("ALTER TABLE samples ADD COLUMN conditions JSONB DEFAULT '[]' NOT NULL")
    op.execute("ALTER TABLE samples ADD COLUMN started_at TIMESTAMP WITH TIME ZONE")
    op.execute("ALTER TABLE samples ADD COLUMN finished_at TIMESTAMP WITH TIME ZONE")
    for statement in (TIMES, ENDED_JOBS, DELETED_JOBS, DELETED_SETS, VERSIONS):
        op.execute(statement)
    op.execute(
        "UPDATE samples SET reason = 'Deleted'"
        " WHERE kind = 'SampleJob' AND phase NOT IN ('Succeeded', 'Failed') AND gone_at IS NOT NULL"
    )
    # Not CONCURRENTLY, which is not possible in the transaction that all migrations share.
    for name, definition in INDEXES.items():
        op.execute(f"CREATE INDEX {name} ON {definition}")


def downgrade() -> None:
    for name in INDEXES:
        op.execute(f"DROP INDEX {name}")
    for column in reversed(COLUMNS):
        op.execute(f"ALTER TABLE samples DROP COLUMN {column}")
